"""How memory is divided where edges travel packed: partition size, buffers, what stays on the device and on the host.

Owns the arithmetic, as pure functions. A device has slabs of plain edges, into which pieces are unpacked, as many
buffers of pieces on their way, and with the rest a cache of pieces. A host that does not hold every piece has the same
without slabs. Of all divisions that fit the one is taken whose sweep should be the shortest; the answer is None where
none fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.storage.format.packed_layout import PackedLayout
from penstock.transfer.planning.device_budget import DeviceBudget, DeviceBudgetRequest
from penstock.transfer.planning.host_budget import (
    READS,
    SHARE,
    SWEPT_SLAB_BYTES,
    HostBudget,
    HostBudgetRequest,
    reader_bytes,
)
from penstock.transfer.planning.host_budget import SLABS as HOST_BUFFERS
from penstock.transfer.staging.staging import mark_words
from penstock.transfer.values.rates import TASK_SECONDS

FEWEST_SLABS = 2
SLABS = {FEWEST_SLABS + 1: 1.0, FEWEST_SLABS: 1.2}
"""Slabs of plain edges, and how many times as long a sweep takes with so many: kernels are at work on one while the
next is unpacked, and a third evens out what takes longer."""
BUFFERS = {4: 1.0, 3: 1.05, 2: 1.3}
"""Pieces on their way to a device at once, and how many times as long a sweep takes with so many."""
READING = 1 / 3
"""Of what sweeps on the cores have for edges: what reads under way may take."""
DECODERS = 4
"""Threads that copy payloads for sweeps on the cores: each copies 6 GB/s. More of them wait for the interpreter's lock
and for cores on which kernels are at work: 3.1 s of decoding a sweep with 16 threads, 0.9 s with 4."""
SWEPT_BUFFERS, BYTES_A_THREAD = (6, 4, 3), 4 << 20
"""Pieces of such sweeps on their way, and what they may take for each thread, where threads are many:
what many threads take in between two reads must have been read before (sweeps on 16 cores: 2.00 GB/s with three pieces
and 16 decoders, 2.16 with six and 4; 2.55 with no kernels)."""
LINK_RATE = 50e9
"""Bytes per second over a link, about: with TASK_SECONDS it tells when larger partitions pay more than a cache."""


PackedParts = tuple[DeviceBudget, HostBudget | None]
"""Of the device, and of the host; None where host memory has every piece already."""


def divide_packed_budget(
    edge_memory: int,
    layouts: Sequence[PackedLayout],
    wish: DeviceBudgetRequest,
    edge_bytes: int,
    host: HostBudgetRequest | None = None,
) -> PackedParts | None:
    """Divide `edge_memory` bytes of a device, and the host's budget where pieces come from disk; None: it cannot work.

    edge_bytes: of a plain edge, over all arrays read.
    """
    chunk = max(layout.chunk_edges for layout in layouts)
    steps, together = max(1, wish.partition_bytes // (4 * chunk)), wish.combine if host is None else 1
    best: tuple[float, PackedParts] | None = None
    while steps:
        pieces = _Pieces.of(layouts, steps * chunk)
        price = TASK_SECONDS * pieces.count / together
        if best is not None and price >= best[0]:
            break
        for found in _divisions(edge_memory, pieces, together, wish, edge_bytes, host):
            device = found[0]
            copied = (pieces.total - 4 * device.words) / LINK_RATE
            seconds = max(price, copied) * SLABS[device.plain_slabs] * BUFFERS[device.slabs]
            best = (seconds, found) if best is None or seconds < best[0] else best
        if together > 1:
            together //= 2
        else:
            steps //= 2
    return None if best is None else best[1]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of partitions of so many edges: how many, bytes of the longest and of all."""

    edges: int
    count: int
    longest: int
    total: int
    marks: int

    @classmethod
    def of(cls, layouts: Sequence[PackedLayout], edges: int) -> _Pieces:
        """Of these adjacencies; marks: bytes of the marks of their blocks."""
        sizes = [layout.pieces(edges).sizes for layout in layouts]
        return cls(
            edges,
            sum(map(len, sizes)),
            4 * max(int(one.max()) for one in sizes),
            4 * sum(int(one.sum()) for one in sizes),
            sum(4 * mark_words(layout.edges) for layout in layouts),
        )

    def on_host(self, room: int, reads: int, reader: int, buffers: int = 0, decoders: int | None = None) -> HostBudget:
        """The division of a host with so much room beside its reader: buffers and a cache or, without, every piece."""
        taken = buffers * self.longest if buffers else self.total
        spare, words = (0, (room - taken) // 4) if buffers else (room - taken, taken // 4)
        return HostBudget(
            self.edges, buffers, 0, reads, not buffers, 0, spare, False, decoders, reader, words, self.longest
        )


def _divisions(
    edge_memory: int,
    pieces: _Pieces,
    together: int,
    wish: DeviceBudgetRequest,
    edge_bytes: int,
    host: HostBudgetRequest | None,
) -> Iterator[PackedParts]:
    """Divide memory for tasks of `together` pieces in every way for which it suffices."""
    held = None if host is None else _divide_host(host, pieces)
    if host is not None and held is None:
        return
    for slabs, buffers in itertools.product(SLABS, BUFFERS):
        staged = together * (slabs * pieces.edges * edge_bytes + buffers * pieces.longest) + pieces.marks
        if staged > edge_memory:
            continue
        if together > 1 and edge_memory - staged < pieces.total <= edge_memory - staged // together:
            continue  # smaller tasks leave room for every piece
        words = min(edge_memory - staged, pieces.total) // 4 if wish.cached else 0
        yield DeviceBudget(pieces.edges, buffers, 0, False, together, words, slabs, staged), held


def _divide_host(budget: HostBudgetRequest, pieces: _Pieces) -> HostBudget | None:
    """Divide a host's budget over pieces; None: too small."""
    left = budget.host_memory - budget.fixed
    for reads in READS:
        reader = reader_bytes(budget, reads)
        room = left - reader
        if pieces.total <= room:
            return pieces.on_host(room, reads, reader)
        for buffers in HOST_BUFFERS:
            if buffers * pieces.longest <= (SHARE * room if reads > READS[-1] else room):
                return pieces.on_host(room, reads, reader, buffers)
    return None


def divide_packed_sweeps(
    budget: HostBudgetRequest, layouts: Sequence[PackedLayout], work_bytes: int = 0
) -> HostBudget | None:
    """Divide a host's budget for sweeps whose kernels unpack pieces; None: too small for two of one chunk.

    work_bytes: what kernels take beside for each chunk of a partition.
    What reads are under way takes at most a third, so that pieces, from which kernels take what has been read, are
    several and large; what is left after them caches.
    """
    chunk = max(layout.chunk_edges for layout in layouts)
    threads, decoders = budget.workers, min(budget.workers, DECODERS)
    budget = replace(budget, workers=decoders)
    left = budget.host_memory - budget.fixed
    reads = next((count for count in READS if reader_bytes(budget, count) <= READING * left), READS[-1])
    reader = reader_bytes(budget, reads)
    steps = max(1, budget.partition_bytes // (4 * chunk))
    while steps:
        pieces = _Pieces.of(layouts, steps * chunk)
        room = left - reader - steps * work_bytes
        if pieces.total <= room:
            return pieces.on_host(room, reads, reader, decoders=decoders)
        most = max(SWEPT_SLAB_BYTES, min(threads * BYTES_A_THREAD, room // 2)) if steps > 1 else room
        large = HOST_BUFFERS[:-1] if threads <= DECODERS else SWEPT_BUFFERS
        for buffers in large if steps > 1 else HOST_BUFFERS:
            if buffers * pieces.longest <= min(room, most):
                return pieces.on_host(room, reads, reader, buffers, decoders)
        steps //= 2
    return None
