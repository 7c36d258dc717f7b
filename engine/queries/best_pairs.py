"""The K vertices that are most similar to each, among those that share a neighbor with it.

    vertices -> blocks that fit memory -> of each: lists, which vertices of the block have x as a neighbor
    for every block: the rows of all sources, piece by piece -> their neighbors' lists -> counts -> the best K so far

What is counted of a pair is counted in the block of its second vertex, so that nothing but the best K is kept from one
block to the next: a graph is read as often as there are blocks, and once more. Where all rows fit memory there is one
block, and the lists of an undirected graph are its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.whole_rows.best_similar import (
    count_lists,
    fill_lists,
    shift_starts,
    sum_lists,
    take_similar,
)
from penstock.engine.program.vertex_ids import original_ranks, surely_in_original_order
from penstock.engine.queries.pair_table import PairTable
from penstock.engine.queries.row_sets import ROW_BYTES, Room, RowSets, Runs, even_cuts, load_rows, runs
from penstock.storage.format.graph import Graph

STEPS = 64
"""Steps of each thread: how much of a row's lists is walked is not known before."""
VERTEX_BYTES = 32
"""Of each vertex: the size of its set, its list's start, its rank by ids, and bytes of its row."""

Integers = NDArray[np.int64]
Asked = tuple[int, int, bool]
"""K, the number of the measure, whether neighbors are left out."""


@dataclass(frozen=True)
class VertexLists:
    """Of every vertex x the vertices [first, last) that have x as a neighbor, less `first`, ascending."""

    first: int
    last: int
    starts: Integers
    members: NDArray[Any]


@dataclass
class Counting:
    """What all blocks share. longest: neighbors of the longest row. sizes: of every vertex' set, as far as known."""

    graph: Graph
    asked: Asked
    threads: int
    longest: int
    sizes: Integers
    order: Integers

    def take(self, ones: RowSets, block: VertexLists, found: tuple[Any, ...]) -> None:
        """Add the block's vertices to the best of rows: numbers (rows,), vertices and common neighbors (rows, k)."""
        rows, threads = len(ones.vertices), self.threads
        reach = np.zeros(rows, np.int64)
        sum_lists(threads, rows, ones.offsets, ones.neighbors, block.starts, reach)
        cuts = even_cuts(reach, max(1, min(rows, STEPS * threads)))
        take_similar(
            threads, len(cuts) - 1, cuts, (ones.vertices, ones.offsets, ones.neighbors),
            (block.first, block.starts, block.members), self.sizes, self.order,
            (self.asked[1], self.asked[2], block.last - block.first, self.longest), found,
        )  # fmt: skip


def best_pairs(graph: Graph, sources: Integers | None, asked: Asked, room: Room, threads: int) -> PairTable:
    """The most similar vertices of the sources, or of all. Raises BudgetError."""
    item, k = graph.vertex_dtype.itemsize, asked[0]
    held = _held(graph)
    longest = (int(held.max(initial=ROW_BYTES)) - ROW_BYTES) // graph.out.neighbor_dtype.itemsize
    vertices = np.arange(graph.vertices) if sources is None else sources
    answer = len(vertices) * (k * (2 * item + 24) + 16)
    room = Room(room.budget, room.taken + answer + graph.vertices * VERTEX_BYTES + threads * longest * item)
    ranked = np.empty(0, np.int64) if surely_in_original_order(graph) else original_ranks(graph).astype(np.int64)
    counting = Counting(graph, asked, threads, longest, np.zeros(graph.vertices, np.int64), ranked)
    found = (
        np.zeros(len(vertices), np.int64),
        np.zeros((len(vertices), k), graph.out.neighbor_dtype),
        np.zeros((len(vertices), k), np.uint32),
    )
    counters = threads * (4 + item)
    together = int(held.sum()) + graph.vertices * counters
    again = 0 if sources is None else int(held[sources].sum())
    if together + again + (int(held.sum()) if graph.directed else 0) <= room.left:
        _all_at_once(counting, sources, found)
    else:
        room.check(4 * int(held.max(initial=0)) + 4 * counters, "the longest row, four times,")
        blocks = runs(held - ROW_BYTES + counters, room.left * 3 // 4)
        _by_blocks(counting, vertices, blocks, (held, room.left // 4), found)
    return _table(counting, vertices, found)


def _held(graph: Graph) -> Integers:
    """Bytes of each row in memory."""
    held = graph.out.index().degrees(0, graph.vertices)
    held *= graph.out.neighbor_dtype.itemsize
    held += ROW_BYTES
    return held


def _all_at_once(counting: Counting, sources: Integers | None, found: tuple[Any, ...]) -> None:
    """Where all rows fit memory."""
    graph = counting.graph
    ones = load_rows(graph.out, np.arange(graph.vertices), counting.threads)
    counting.sizes[:] = ones.sizes
    if graph.directed:
        block = _lists(counting, 0, graph.vertices, lambda: iter([ones]))
    else:
        block = VertexLists(0, graph.vertices, ones.offsets, ones.neighbors)
    if sources is not None:
        ones = load_rows(graph.out, sources, counting.threads)
    counting.take(ones, block, found)


def _by_blocks(
    counting: Counting, vertices: Integers, blocks: Runs, pieces: tuple[Integers, int], found: tuple[Any, ...]
) -> None:
    """Where they do not. pieces: bytes of each row, and how many may be read at once."""
    graph, (held, most) = counting.graph, pieces
    cut = runs(held[vertices], most)
    kept = load_rows(graph.out, vertices, counting.threads) if len(cut) == 1 else None
    for first, last in blocks:

        def rows(first: int = first, last: int = last) -> Iterator[RowSets]:
            for low, high in runs(held[first:last], most - (0 if kept is None else int(held[vertices].sum()))):
                yield load_rows(graph.out, np.arange(first + low, first + high), counting.threads)

        block = _lists(counting, first, last, rows)
        for low, high in cut:
            ones = kept or load_rows(graph.out, vertices[low:high], counting.threads)
            counting.take(ones, block, tuple(part[low:high] for part in found))
        del block


def _lists(counting: Counting, first: int, last: int, rows: Any) -> VertexLists:
    """The lists of a block, whose rows `rows` gives twice, and the sizes of its sets."""
    starts, at = np.zeros(counting.graph.vertices + 1, np.int64), first
    for part in rows():
        counting.sizes[at : at + len(part.vertices)] = part.sizes
        count_lists(part.neighbors, starts)
        at += len(part.vertices)
    np.cumsum(starts, out=starts)
    members, at = np.empty(int(starts[-1]), counting.graph.out.neighbor_dtype), 0
    for part in rows():
        fill_lists(at, part.offsets, part.neighbors, starts, members)
        at += len(part.vertices)
    shift_starts(starts)
    return VertexLists(first, last, starts, members)


def _table(counting: Counting, vertices: Integers, found: tuple[Any, ...]) -> PairTable:
    """The answer, vertex by vertex in the order of the original ids, the most similar first."""
    numbers, best, common = found
    if len(counting.order):
        order = np.argsort(counting.order[vertices])
        vertices, numbers, best, common = vertices[order], numbers[order], best[order], common[order]
    taken = np.arange(best.shape[1]) < numbers[:, None]
    ends = np.stack([np.repeat(vertices, numbers), best[taken].astype(np.int64)], axis=1)
    return PairTable(counting.graph, ends, common[taken].astype(np.int64), counting.sizes[ends])
