"""How memory is divided where edges travel packed: partition size, buffers, what stays on the device and on the host.

Owns the arithmetic, as pure functions. A device has slabs of plain edges, into which pieces are unpacked, as many
buffers of pieces on their way, and with the rest a cache of pieces. A host that does not hold every piece has the same
without slabs. Partitions shrink until these fit; the answer is None where they never do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.storage.format.packed_layout import PackedLayout
from penstock.transfer.planning.device_budget import DeviceBudgetRequest, staging_bytes
from penstock.transfer.planning.host_budget import READS, SHARE, HostBudgetRequest, reader_bytes
from penstock.transfer.planning.host_budget import SLABS as HOST_BUFFERS
from penstock.transfer.staging.packing import mark_words
from penstock.transfer.staging.staging import UNPACKED_SLABS

BUFFERS = (4, 3, 2)
"""Pieces on their way to a device at once."""


@dataclass(frozen=True, slots=True)
class PackedHost:
    """What a host holds of packed edges that are on disk: `words` of pieces in its cache, all of them if `whole`.

    buffers: pieces besides, of `buffer_bytes` in all. spare: bytes that nothing takes.
    """

    words: int
    whole: bool
    buffers: int
    buffer_bytes: int
    reads_in_flight: int
    spare: int = 0

    @property
    def ahead(self) -> int:
        """Partitions being read at once."""
        return max(2, self.buffers)


@dataclass(frozen=True, slots=True)
class PackedBudget:
    """partition_edges: whole chunks. buffers: tasks on their way; words: of the device's cache of pieces.

    staged_bytes: what slabs and buffers take. combine: partitions of a task, which a slab holds. host: None where host
    memory has every piece already.
    """

    partition_edges: int
    buffers: int
    words: int
    staged_bytes: int
    combine: int = 1
    host: PackedHost | None = None


def divide_packed_budget(
    edge_memory: int,
    layouts: Sequence[PackedLayout],
    wish: DeviceBudgetRequest,
    edge_bytes: int,
    host: HostBudgetRequest | None = None,
) -> PackedBudget | None:
    """Divide `edge_memory` bytes of a device, and the host's budget where pieces come from disk; None: it cannot work.

    edge_bytes: of a plain edge, over all arrays read.
    """
    chunk = max(layout.chunk_edges for layout in layouts)
    part = staging_bytes(edge_memory, wish, chunk * edge_bytes) if wish.cached else edge_memory
    steps = max(1, wish.partition_bytes // (4 * chunk))
    marks = sum(4 * mark_words(layout.edges) for layout in layouts)
    together = wish.combine if host is None else 1
    while steps:
        edges = steps * chunk
        tables = [layout.pieces(edges) for layout in layouts]
        longest = 4 * max(int(table.sizes.max()) for table in tables)
        total = sum(4 * int(table.sizes.sum()) for table in tables)
        for buffers in BUFFERS if together == 1 else BUFFERS[:1]:
            staged = together * (UNPACKED_SLABS * edges * edge_bytes + buffers * longest) + marks
            if staged > (part if steps > 1 or buffers > BUFFERS[-1] else edge_memory):
                continue
            if together > 1 and edge_memory - staged < total <= edge_memory - staged // together:
                continue  # smaller tasks leave room for every piece
            held = None if host is None else _divide_host(host, longest, total)
            if host is None or held is not None:
                words = min(edge_memory - staged, total) // 4 if wish.cached else 0
                return PackedBudget(edges, buffers, words, staged, together, held)
        if together > 1:
            together //= 2
        else:
            steps //= 2
    return None


def _divide_host(budget: HostBudgetRequest, longest: int, total: int) -> PackedHost | None:
    """Divide a host's budget over pieces of which the longest, and all of them, have so many bytes; None: too small."""
    left = budget.host_memory - budget.fixed
    for reads in READS:
        room = left - reader_bytes(budget, reads)
        if total <= room:
            return PackedHost(total // 4, True, 0, 0, reads, room - total)
        for buffers in HOST_BUFFERS:
            taken = buffers * longest
            if taken <= (SHARE * room if reads > READS[-1] else room):
                return PackedHost((room - taken) // 4, False, buffers, taken, reads)
    return None
