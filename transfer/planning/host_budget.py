"""How a host memory budget is divided: partition size, slabs, reads in flight and cache slots.

A pure function. Refuses a budget below the least that works, with the sum that shows it and the smallest --host-memory
that works. Decoding threads, their buffers, slabs and the cache share what state and index leave: as they do when a
pass over every edge takes the least time (`pass_seconds`). So a further thread, read or slab must save more of it than
the bytes that the cache would keep in its place, however many cores there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, hypot, inf
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import BudgetError
from penstock.storage.format.read_plan import LEAST_SPLIT, MOST_BYTES, buffer_bytes, read_threads, split_bytes
from penstock.transfer.values.options import TransferOptions

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency, Graph

FRAME_BYTES = 5 << 19
"""The longest frame there can be, where there is no graph yet that says more (2.3 MiB)."""
DECODE_BYTES = 3 << 20
"""What a thread needs to decode such a frame."""
SLABS = {4: 1.0, 3: 1.05, 2: 1.2}
"""Slabs of edges, and how many times as long a pass takes with so many: what is read waits for what is worked on."""
FEWEST_SLABS = 2
READS = (8, 4, 2, 1)
DECODERS = (8, 4, 2, 1)
"""Threads that decode at once. More of them wait for the interpreter's lock and for cores on which kernels work."""
COMFORT = 4
"""Decoding threads for which the rest of a plan leaves room."""
DISK_RATE, DECODE_RATE = 4e9, 2e9
"""Bytes of edges per second, when they are decoded, that a disk brings, and that one thread decodes; on disk, half of
them."""
WARM_BYTES = 2 << 20
"""Bytes on their way with which a disk gives half of its rate."""
PARTITION_SECONDS, SWEPT_SECONDS = 5e-4, 1e-3
"""What a partition that is read takes beside its bytes; of a sweep, in which all have the whole work of a kernel, every
partition (`engine/decisions/sweeps.md`)."""


@dataclass(frozen=True, slots=True)
class HostBudgetRequest:
    """What there is to divide, in bytes: `host_memory` in all, `fixed` of it taken (state, index ...).

    `partition_bytes`: neighbor bytes of a partition that the user asked for. `workers`: threads that may decode.
    `stripes`: every one has its own reads in flight. `frame_bytes`: the longest frame; `decoder_bytes`: for
    decoding it. `sweeps`: whether every iteration walks every edge on the cores. `owned_edges`: of a run of several
    ranks, the edges that this one reads, None for all.
    """

    host_memory: int
    fixed: int
    partition_bytes: int = 32 << 20
    workers: int = 1
    stripes: int = 1
    sweeps: bool = False
    frame_bytes: int = FRAME_BYTES
    decoder_bytes: int = DECODE_BYTES
    owned_edges: int | None = None

    @classmethod
    def of(cls, graph: Graph, host_memory: int, fixed: int, workers: int, **more: Any) -> HostBudgetRequest:
        """What there is to divide for runs on a graph file."""
        more["frame_bytes"], more["decoder_bytes"] = graph.frame_bytes
        return cls(host_memory, fixed, workers=workers, stripes=max(1, len(graph.files) - 1), **more)

    @property
    def left(self) -> int:
        """Bytes that are not taken; below 0 where the budget is too small for what is."""
        return self.host_memory - self.fixed

    def refusal(self, taken: str, needs: str, least: int, otherwise: str = "") -> BudgetError:
        """Why the budget cannot work, and the least that can: what takes `fixed`, and what `least` bytes beside it."""
        why = f"{taken} take {format_bytes(self.fixed)}, and {needs} {format_bytes(least)}"
        return too_small("--host-memory", self.host_memory, why, self.fixed + least, otherwise)


@dataclass(frozen=True, slots=True)
class HostBudget:
    """The division: sizes for the pipeline, the cache and the reader; `slots` and `words` 0 mean no cache.

    spare: bytes of the budget that nothing takes. decoders: threads that decode at most, None: as many as there are.
    read_bytes: of a read at most, 0: a read is one frame. reader_bytes: what the reader takes. words: of packed
    edges, those of the pieces that the cache holds; slabs are then buffers of piece_bytes each.
    """

    partition_edges: int
    slabs: int
    slots: int
    reads_in_flight: int
    whole: bool
    edge_bytes: int
    spare: int = 0
    decoders: int | None = None
    read_bytes: int = MOST_BYTES
    reader_bytes: int = 0
    words: int = 0
    piece_bytes: int = 0

    @property
    def ahead(self) -> int:
        """Tasks being read at once."""
        return max(2, self.slabs)

    @property
    def options(self) -> TransferOptions:
        """What follows for the pipeline that stages edges in host memory."""
        return TransferOptions(self.partition_edges, self.slabs, self.ahead)

    @property
    def slab_bytes(self) -> int:
        """Bytes of all slabs."""
        return self.slabs * (self.piece_bytes or self.partition_edges * self.edge_bytes)


def divide_host_budget(budget: HostBudgetRequest, sizes: Sequence[Adjacency], *, with_weights: bool) -> HostBudget:
    """Divide a budget over the adjacencies that a run reads; BudgetError when it cannot work.

    Every edge has its place where they all fit. What is chosen costs speed, never the answer.
    """
    edge_bytes = max((size.edge_bytes(with_weights) for size in sizes), default=4)
    chunk = max((size.chunk_edges for size in sizes), default=262_144)
    edges = sum(size.edges for size in sizes)
    if budget.owned_edges is not None:  # and whole chunks at both ends
        edges = min(edges, budget.owned_edges + 2 * chunk * len(sizes))
    total, readings = edges * edge_bytes, [(reading, reader_bytes(budget, *reading)) for reading in _readings(budget)]
    whole = total <= budget.left - readings[-1][1]
    best, seconds = None, inf
    steps = list(_steps(budget.partition_bytes, sizes, chunk))
    for step in steps[:1] if whole else steps:  # in place, the largest takes the least and no more room
        entries, size = sum(ceil(one.edges / step) for one in sizes), step * edge_bytes
        for reading, reader in readings:
            for slabs in (0,) if whole else SLABS:
                room = budget.left - reader - slabs * size
                if room < (total if whole else 0):
                    continue
                slots = entries if whole else min(room // size, entries - 1)
                read = total if whole else max(0, total - slots * size)
                takes = pass_seconds(budget, reading, slabs, size, read, total)
                if takes < seconds:
                    seconds = takes
                    spare = room - (total if whole else slots * size)
                    best = HostBudget(step, slabs, slots, reading.reads, whole, edge_bytes, spare, *reading[1:], reader)
    if best is None:
        least = least_reading_bytes(budget, sizes, with_weights=with_weights, one_by_one=True)
        raise _refusal(budget, least, chunk * edge_bytes)
    return best


class Reading(NamedTuple):
    """How edges are read: reads in flight of each stripe, threads that decode, bytes of a read at most (0: a frame)."""

    reads: int
    decoders: int
    read_bytes: int = MOST_BYTES


ONE_BY_ONE = Reading(1, 1, 0)
"""What takes the least memory."""


def _readings(budget: HostBudgetRequest) -> Iterator[Reading]:
    """The ways to read, the one of the least memory last."""
    for decoders, reads, size in product(DECODERS, READS, (MOST_BYTES, LEAST_SPLIT)):
        if decoders <= budget.workers:
            yield Reading(reads, decoders, size)
    yield ONE_BY_ONE


def _steps(partition_bytes: int, sizes: Sequence[Adjacency], chunk: int) -> Iterator[int]:
    """Edges of a partition: whole chunks, from what was asked for down to one chunk."""
    neighbor_bytes = max((size.edge_bytes(False) for size in sizes), default=4)
    chunks = max(1, round(partition_bytes / (chunk * neighbor_bytes)))
    while chunks:
        yield chunks * chunk
        chunks //= 2


def pass_seconds(budget: HostBudgetRequest, reading: Reading, slabs: int, size: int, read: int, total: int) -> float:
    """Seconds of a pass over edges of `total` bytes in partitions of `size`, of which it reads some from disk.

    slabs: 0 where each has a place.
    """
    request = min(reading.read_bytes or budget.frame_bytes, split_bytes(size // 2, reading.decoders))
    coming = max(1, min(budget.stripes * reading.reads * request, max(2, slabs) * size // 2))
    disk = (1 + WARM_BYTES / coming) / DISK_RATE
    seconds = read * hypot(disk, 1 / (DECODE_RATE * reading.decoders))  # nearly as long as the slower one alone
    beside = SWEPT_SECONDS * total if budget.sweeps else PARTITION_SECONDS * read
    return seconds * SLABS.get(slabs, 1.0) + beside / size


def least_reading_bytes(
    budget: HostBudgetRequest, sizes: Sequence[Adjacency], *, with_weights: bool, one_by_one: bool
) -> int:
    """Return the least that reading takes of a budget: buffers of one read at a time, and two slabs of a chunk.

    one_by_one: of frames, which one thread decodes; else a few threads do, as many as there are up to `COMFORT`.
    """
    edge_bytes = max((size.edge_bytes(with_weights) for size in sizes), default=4)
    chunk = max((size.chunk_edges for size in sizes), default=262_144)
    edges = sum(size.edges for size in sizes)
    reading = ONE_BY_ONE if one_by_one else Reading(1, min(budget.workers, COMFORT))
    return reader_bytes(budget, *reading) + min(FEWEST_SLABS * chunk, edges) * edge_bytes


def check_fixed(budget: HostBudgetRequest) -> None:
    """Refuse a budget that is too small for what is taken already, where no edge is read. Raises BudgetError."""
    if budget.fixed > budget.host_memory:
        raise _refusal(budget)


def reader_bytes(
    budget: HostBudgetRequest, reads: int, decoders: int | None = None, read_bytes: int = MOST_BYTES
) -> int:
    """Return what a reader holds at most: a buffer for each read under way or being decoded, and scratch.

    decoders, read_bytes: as in `HostBudget`. This is `Reader.memory_bytes` (storage/read/reader.py) before there is a
    reader; a test compares the two.
    """
    workers = budget.workers if decoders is None else decoders
    threads = read_threads(budget.stripes, workers, reads)
    return threads * buffer_bytes(budget.frame_bytes, read_bytes) + workers * budget.decoder_bytes


def _refusal(budget: HostBudgetRequest, least: int = 0, chunk_bytes: int = 0) -> BudgetError:
    """Why a budget cannot work; least: what reading takes of it."""
    why = f"vertex state and index take {format_bytes(budget.fixed)}"
    if least:
        reader = format_bytes(reader_bytes(budget, *ONE_BY_ONE))
        why += (
            f", and reading the graph takes at least {format_bytes(least)} ({reader} for one decoding thread and "
            f"{read_threads(budget.stripes, 1, 1)} read buffers, {FEWEST_SLABS} slabs of {format_bytes(chunk_bytes)})"
        )
    return too_small("--host-memory", budget.host_memory, why, budget.fixed + least)
