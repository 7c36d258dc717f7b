"""How a host memory budget is divided: partition size, slabs, reads in flight and cache slots.

A pure function. Refuses a budget below the least that works, with the sum that shows it and the smallest --host-memory
that works. What is left after state and index goes first to what makes the pipeline overlap (a few slabs, reads in
flight), at most a quarter of it where possible; the rest caches. A run that reads every edge in every iteration gets
larger slabs first: they save work for each partition, while a small cache saves only its own share of the edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import BudgetError
from penstock.storage.format.read_plan import MOST_BYTES, buffer_bytes, read_threads
from penstock.transfer.values.options import TransferOptions

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency, Graph

FRAME_BYTES = 5 << 19
"""The longest frame there can be, where there is no graph yet that says more (2.3 MiB)."""
DECODE_BYTES = 3 << 20
"""What a thread needs to decode such a frame."""
SLABS = (4, 3, 2)
READS = (8, 4, 2, 1)
SHARE = 0.25
SWEPT_SLAB_BYTES, SWEPT_READS = 32 << 20, 4
"""Of sweeps: what slabs may take before anything is cached, and the fewest reads in flight with which they do."""


@dataclass(frozen=True, slots=True)
class HostBudgetRequest:
    """What there is to divide, in bytes: `host_memory` in all, `fixed` of it taken (state, index ...).

    `partition_bytes`: neighbor bytes of a partition that the user asked for. `workers`: threads that decode.
    `stripes`: every one has its own reads in flight. `frame_bytes`: the longest frame; `decoder_bytes`: for
    decoding it. `sweeps`: whether every iteration reads every edge. `owned_edges`: of a run of several ranks, the edges
    that this one reads, None for all.
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

    spare: bytes of the budget that nothing takes. one_by_one: one thread decodes, and a read is one frame. decoders:
    threads that decode at most, None: as many as there are. reader_bytes: what the reader takes. words: of packed
    edges, those of the pieces that the cache holds; slabs are then buffers of piece_bytes each.
    """

    partition_edges: int
    slabs: int
    slots: int
    reads_in_flight: int
    whole: bool
    edge_bytes: int
    spare: int = 0
    one_by_one: bool = False
    decoders: int | None = None
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

    The largest reads, slabs and partitions that fit are taken; smaller ones cost speed, never the answer.
    """
    edge_bytes = max((size.edge_bytes(with_weights) for size in sizes), default=4)
    chunk = max((size.chunk_edges for size in sizes), default=262_144)
    edges = sum(size.edges for size in sizes)
    left = budget.left
    for step, reads, one_by_one in _choices(budget.partition_bytes, sizes, chunk):
        entries = sum(ceil(size.edges / step) for size in sizes)
        reader = reader_bytes(budget, reads, one_by_one=one_by_one)
        room = left - reader
        if budget.owned_edges is not None:  # and whole chunks at both ends
            edges = min(edges, budget.owned_edges + 2 * chunk * len(sizes))
        if edges * edge_bytes <= room:
            spare = room - edges * edge_bytes
            return HostBudget(step, 0, entries, reads, True, edge_bytes, spare, one_by_one, None, reader)
        least = SWEPT_SLAB_BYTES if budget.sweeps and reads >= SWEPT_READS else 0
        limit = max(SHARE * room, min(room, least)) if step > chunk or reads > 1 else room
        fitted = next((count for count in SLABS if count * step * edge_bytes <= limit), 0)
        if fitted:
            slots = min((room - fitted * step * edge_bytes) // (step * edge_bytes), entries - 1)
            spare = room - (fitted + slots) * step * edge_bytes
            return HostBudget(step, fitted, slots, reads, False, edge_bytes, spare, one_by_one, None, reader)
    least = least_reading_bytes(budget, sizes, with_weights=with_weights, one_by_one=True)
    raise _refusal(budget, least, chunk * edge_bytes)


def least_reading_bytes(
    budget: HostBudgetRequest, sizes: Sequence[Adjacency], *, with_weights: bool, one_by_one: bool
) -> int:
    """Return the least that reading takes of a budget: buffers of one read at a time, and two slabs of a chunk.

    one_by_one: as in `HostBudget`; else every worker decodes.
    """
    edge_bytes = max((size.edge_bytes(with_weights) for size in sizes), default=4)
    chunk = max((size.chunk_edges for size in sizes), default=262_144)
    edges = sum(size.edges for size in sizes)
    return reader_bytes(budget, 1, one_by_one=one_by_one) + min(SLABS[-1] * chunk, edges) * edge_bytes


def check_fixed(budget: HostBudgetRequest) -> None:
    """Refuse a budget that is too small for what is taken already, where no edge is read. Raises BudgetError."""
    if budget.fixed > budget.host_memory:
        raise _refusal(budget)


def _choices(partition_bytes: int, sizes: Sequence[Adjacency], chunk: int) -> Iterator[tuple[int, int, bool]]:
    """Partition sizes in edges, reads in flight, and whether these are one frame each, best first.

    Partitions are whole chunks, from what was asked for down to one chunk.
    """
    neighbor_bytes = max((size.edge_bytes(False) for size in sizes), default=4)
    chunks = max(1, round(partition_bytes / (chunk * neighbor_bytes)))
    while chunks > 1:
        yield from ((chunks * chunk, reads, False) for reads in READS)
        chunks //= 2
    yield from ((chunk, reads, False) for reads in READS)
    yield chunk, READS[-1], True


def reader_bytes(budget: HostBudgetRequest, reads: int, *, one_by_one: bool = False) -> int:
    """Return what a reader holds at most: a buffer for each read under way or being decoded, and scratch.

    This is `Reader.memory_bytes` (storage/read/reader.py) before there is a reader; a test compares the two.
    """
    workers = 1 if one_by_one else budget.workers
    threads = read_threads(budget.stripes, workers, reads)
    return threads * buffer_bytes(budget.frame_bytes, 0 if one_by_one else MOST_BYTES) + workers * budget.decoder_bytes


def _refusal(budget: HostBudgetRequest, least: int = 0, chunk_bytes: int = 0) -> BudgetError:
    """Why a budget cannot work; least: what reading takes of it."""
    why = f"vertex state and index take {format_bytes(budget.fixed)}"
    if least:
        reader = format_bytes(reader_bytes(budget, 1, one_by_one=True))
        why += (
            f", and reading the graph takes at least {format_bytes(least)} ({reader} for one decoding thread and "
            f"{read_threads(budget.stripes, 1, 1)} read buffers, {SLABS[-1]} slabs of {format_bytes(chunk_bytes)})"
        )
    return too_small("--host-memory", budget.host_memory, why, budget.fixed + least)
