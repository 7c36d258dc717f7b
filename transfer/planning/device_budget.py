"""How a device's edge budget is divided: partition size, slabs, and resident places.

Owns the arithmetic, as pure functions. What the slabs leave is a cache of partitions; where everything fits there are
no slabs and every partition has its place. Where not even two slabs of one chunk fit there are none either, and edges
are read in place, in host memory. Refuses such a budget for routes that need slabs, and one that state exceeds.

Where edges travel packed a device has slabs of plain edges, into which pieces are unpacked, as many buffers of pieces
on their way, and with the rest a cache of pieces. A host that does not hold every piece has the same without slabs. Of
all divisions that fit the one is taken whose sweep should be the shortest; the answer is None where none fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import InputError
from penstock.storage.format.packed_layout import PackedLayout
from penstock.storage.format.read_plan import MOST_BYTES
from penstock.transfer.planning.host_budget import (
    FEWEST_SLABS,
    READS,
    HostBudget,
    HostBudgetRequest,
    reader_bytes,
)
from penstock.transfer.planning.host_budget import SLABS as HOST_BUFFERS
from penstock.transfer.staging.staging import mark_words

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency


SLABS = (3, 2)
SLAB_SHARE = 0.25
COPY_BYTES = 32 << 20
"""What a slab should hold: smaller copies do not reach the link's rate, so a small device gives most of its budget."""
CACHED = ("auto", "resident")
"""Routes under which edges stay on the device; the others, when forced, bring them again each time."""
WITHOUT = "--route auto or zero-copy, which need none"


@dataclass(frozen=True, slots=True)
class DeviceBudget:
    """partition_edges: whole chunks. slabs of `combine` partitions each; slots: places of the cache, all if `whole`.

    No slabs, and not `whole`: every edge is read in place. staged_bytes: of the slabs. words: of packed edges, those of
    the cache of pieces; slabs are then buffers of pieces on their way, beside `plain_slabs` that these are unpacked to.
    """

    partition_edges: int
    slabs: int
    slots: int
    whole: bool
    combine: int = 1
    words: int = 0
    plain_slabs: int = 0
    staged_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeviceBudgetRequest:
    """What the user asked for: neighbor bytes of a partition, partitions of a copy, a route, whether edges may stay.

    device_memory: bytes of the device in all, `fixed` of them taken (state, index), where edges get what is left; None
    where the user said how much edges get.
    """

    partition_bytes: int
    combine: int = 1
    route: str = "auto"
    stay: bool = True
    device_memory: int | None = None
    fixed: int = 0

    @property
    def cached(self) -> bool:
        """Whether edges stay on the device between iterations."""
        return self.stay and self.route in CACHED


def divide_device_budget(
    edge_memory: int, sizes: Sequence[Adjacency], wish: DeviceBudgetRequest, *, weights: bool
) -> DeviceBudget:
    """Divide `edge_memory` bytes of a device over the adjacencies that a run reads; InputError if it cannot work.

    Partitions shrink first, then the partitions of one copy, then the slabs; at last `auto` does without them.
    """
    each = max((size.edge_bytes(weights) for size in sizes), default=4)
    chunk = max((size.chunk_edges for size in sizes), default=1)
    steps = max(1, wish.partition_bytes // (chunk * max((size.edge_bytes(False) for size in sizes), default=4)))
    total = sum(size.edges for size in sizes)
    if total * each <= edge_memory and wish.cached:
        return DeviceBudget(steps * chunk, 0, _entries(sizes, steps * chunk), whole=True)
    if wish.route == "resident":
        raise InputError(
            f"route resident needs all {format_bytes(total * each)} of edges on the device, and "
            f"--device-edge-memory is {format_bytes(edge_memory)}: raise it, or use --route auto"
        )
    least = SLABS[-1] * chunk * each
    if wish.route == "zero-copy" or (wish.route == "auto" and edge_memory < least):
        if wish.device_memory is not None and wish.fixed > wish.device_memory:
            raise _too_small(edge_memory, 0, wish)
        return DeviceBudget(steps * chunk, 0, 0, whole=False)
    part = staging_bytes(edge_memory, wish, chunk * each) if wish.cached else edge_memory
    for slabs, combine, edges in _shrinking(wish.combine, steps, chunk):
        taken = slabs * combine * edges * each
        if taken <= (edge_memory if taken == least else part):
            slots = max(0, (edge_memory - taken) // (edges * each)) if wish.cached else 0
            slots = min(slots, max(1, _entries(sizes, edges)) - 1)
            return DeviceBudget(edges, slabs, slots, False, combine, staged_bytes=taken)
    raise _too_small(edge_memory, least, wish)


def _too_small(edge_memory: int, least: int, wish: DeviceBudgetRequest) -> InputError:
    """Why a budget cannot work, and the smallest that can: of the memory that was given, or came of the device."""
    slabs = f"{SLABS[-1]} slabs of one chunk take {format_bytes(least)}"
    if wish.device_memory is None:
        return InputError(
            f"--device-edge-memory {format_bytes(edge_memory)} is too small: {slabs}; give at least that, or use "
            f"{WITHOUT}"
        )
    why = f"vertex state and index take {format_bytes(wish.fixed)}{f', and {slabs}' if least else ''}"
    otherwise = f", or use {WITHOUT}" if least and wish.fixed <= wish.device_memory else ""
    return too_small("--device-memory", wish.device_memory, why, wish.fixed + least, otherwise)


def staging_bytes(edge_memory: int, wish: DeviceBudgetRequest, chunk_bytes: int) -> int:
    """What of a budget goes to slabs, where edges may stay as well: a quarter, or as much as good copies need."""
    copies = SLABS[0] * min(COPY_BYTES, wish.combine * wish.partition_bytes)
    return max(min(edge_memory, copies), least_staging_bytes(edge_memory, chunk_bytes))


def least_staging_bytes(edge_memory: int, chunk_bytes: int) -> int:
    """What of a budget is left to slabs where row prefixes may take the rest: searches that have them copy little."""
    return max(int(edge_memory * SLAB_SHARE), min(edge_memory, SLABS[-1] * chunk_bytes))


def _shrinking(combine: int, steps: int, chunk: int) -> Iterator[tuple[int, int, int]]:
    """(slabs, partitions of a slab, edges of a partition), from what was asked for down to the least that works."""
    while steps > 1:
        yield SLABS[0], combine, steps * chunk
        steps //= 2
    while combine > 1:
        yield SLABS[0], combine, chunk
        combine //= 2
    for slabs in SLABS:
        yield slabs, 1, chunk


def _entries(sizes: Sequence[Adjacency], step: int) -> int:
    return sum(-(-size.edges // step) for size in sizes)


PACKED_SLABS = {FEWEST_SLABS + 1: 1.0, FEWEST_SLABS: 1.2}
"""Slabs of plain edges, and how many times as long a sweep takes with so many: kernels are at work on one while the
next is unpacked, and a third evens out what takes longer."""
BUFFERS = {4: 1.0, 3: 1.05, 2: 1.3}
"""Pieces on their way to a device at once, and how many times as long a sweep takes with so many."""
SHARE = 0.25
"""Of what a host has for pieces on their way to a device: what those may take."""
READING = 1 / 3
"""Of what sweeps on the cores have for edges: what reads under way may take."""
DECODERS = 4
"""Threads that copy payloads: each copies 6 GB/s. More of them wait for the interpreter's lock
and for cores on which kernels are at work: 3.1 s of decoding a sweep with 16 threads, 0.9 s with 4."""
SWEPT_SLAB_BYTES = 32 << 20
"""What pieces of sweeps on the cores may take before anything is cached."""
SWEPT_BUFFERS, BYTES_A_THREAD = (6, 4, 3), 4 << 20
"""Pieces of such sweeps on their way, and what they may take for each thread, where threads are many:
what many threads take in between two reads must have been read before (sweeps on 16 cores: 2.00 GB/s with three pieces
and 16 decoders, 2.16 with six and 4; 2.55 with no kernels)."""
LINK_RATE, PACKED_TASK_SECONDS = 50e9, 3e-4
"""Bytes per second over a link, about, and what the host needs for a task that is copied and unpacked (0.2 to 0.38 ms):
they tell when larger tasks pay more than a cache."""


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
        price = PACKED_TASK_SECONDS * pieces.count / together
        if best is not None and price >= best[0]:
            break
        for found in _divisions(edge_memory, pieces, together, wish, edge_bytes, host):
            device = found[0]
            copied = (pieces.total - 4 * device.words) / LINK_RATE
            seconds = max(price, copied) * PACKED_SLABS[device.plain_slabs] * BUFFERS[device.slabs]
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

    def on_host(self, room: int, reads: int, reader: int, decoders: int, buffers: int = 0) -> HostBudget:
        """The division of a host with so much room beside its reader: buffers and a cache or, without, every piece."""
        taken = buffers * self.longest if buffers else self.total
        spare, words = (0, (room - taken) // 4) if buffers else (room - taken, taken // 4)
        return HostBudget(
            self.edges, buffers, 0, reads, not buffers, 0, spare, decoders, MOST_BYTES, reader, words, self.longest
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
    for slabs, buffers in itertools.product(PACKED_SLABS, BUFFERS):
        staged = together * (slabs * pieces.edges * edge_bytes + buffers * pieces.longest) + pieces.marks
        if staged > edge_memory:
            continue
        if together > 1 and edge_memory - staged < pieces.total <= edge_memory - staged // together:
            continue  # smaller tasks leave room for every piece
        words = min(edge_memory - staged, pieces.total) // 4 if wish.cached else 0
        yield DeviceBudget(pieces.edges, buffers, 0, False, together, words, slabs, staged), held


def _divide_host(budget: HostBudgetRequest, pieces: _Pieces) -> HostBudget | None:
    """Divide a host's budget over pieces; None: too small."""
    decoders = min(budget.workers, DECODERS)
    for reads in READS:
        reader = reader_bytes(budget, reads, decoders)
        room = budget.left - reader
        if pieces.total <= room:
            return pieces.on_host(room, reads, reader, decoders)
        for buffers in HOST_BUFFERS:
            if buffers * pieces.longest <= (SHARE * room if reads > READS[-1] else room):
                return pieces.on_host(room, reads, reader, decoders, buffers)
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
    left = budget.left
    reads = next((count for count in READS if reader_bytes(budget, count, decoders) <= READING * left), READS[-1])
    reader = reader_bytes(budget, reads, decoders)
    steps = max(1, budget.partition_bytes // (4 * chunk))
    while steps:
        pieces = _Pieces.of(layouts, steps * chunk)
        room = left - reader - steps * work_bytes
        if pieces.total <= room:
            return pieces.on_host(room, reads, reader, decoders)
        most = max(SWEPT_SLAB_BYTES, min(threads * BYTES_A_THREAD, room // 2)) if steps > 1 else room
        large = (4, 3) if threads <= DECODERS else SWEPT_BUFFERS
        for buffers in large if steps > 1 else HOST_BUFFERS:
            if buffers * pieces.longest <= min(room, most):
                return pieces.on_host(room, reads, reader, decoders, buffers)
        steps //= 2
    return None
