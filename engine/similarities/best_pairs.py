"""The K vertices that are most similar to each, among those that share a neighbor with it.

For every row of a run of vertices, the rows against the edges of its neighbors are walked, and how often each vertex
occurs there is counted. Where all rows fit memory a run is all of them. Else the rows against the edges come part by
part, for every run, and what was counted so far is kept for each vertex in as much room as it may take at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.whole_rows import similarity as kernels
from penstock.engine.program.vertex_ids import original_ranks, surely_in_original_order
from penstock.engine.similarities.memory_plan import Room, Runs, even_cuts, runs
from penstock.engine.similarities.pair_table import PairTable
from penstock.engine.similarities.row_sets import ROW_BYTES, RowSets, load_rows, row_bounds
from penstock.storage.format.graph import Adjacency, Graph

STEPS = 8
"""Steps of each thread."""
KEPT_BYTES = 8
"""Of a vertex that was counted: its id and the count."""

Integers = NDArray[np.int64]
Asked = tuple[int, int, bool]
"""K, the number of the measure, whether neighbors are left out."""


@dataclass
class Counting:
    """What all runs share. sizes: of every vertex' set. reach: neighbors of neighbors, at most, of every vertex."""

    graph: Graph
    back: Adjacency
    asked: Asked
    threads: int
    sizes: Integers
    reach: Integers
    order: Integers

    def take(self, ones: RowSets, parts: Iterator[tuple[RowSets, bool]], *, keep: bool) -> tuple[Any, ...]:
        """Count for the rows of a run, part by part; numbers (rows,), vertices and common neighbors (rows, k)."""
        rows, k = len(ones.vertices), self.asked[0]
        starts = np.concatenate([[0], np.cumsum(self.reach[ones.vertices] if keep else np.zeros(rows, np.int64))])
        kept = np.empty(starts[-1], ones.neighbors.dtype), np.empty(starts[-1], np.uint32)
        slots = starts, np.zeros(rows, np.int64), *kept
        best = np.zeros((rows, k), ones.neighbors.dtype), np.zeros((rows, k), np.uint32)
        found = np.zeros(rows, np.int64), *best
        cuts = even_cuts(self.reach[ones.vertices], max(1, min(rows, STEPS * self.threads)))
        for others, is_last in parts:
            kernels.take_similar(
                self.threads, len(cuts) - 1, cuts, (ones.vertices, ones.offsets, ones.neighbors),
                (int(others.vertices[0]) if len(others.vertices) else 0, others.offsets, others.neighbors),
                self.sizes, self.order, slots, (self.asked[1], is_last, self.asked[2]), found,
            )  # fmt: skip
        return found


def best_pairs(graph: Graph, sources: Integers | None, asked: Asked, room: Room, threads: int) -> PairTable:
    """The most similar vertices of the sources, or of all. Raises BudgetError."""
    vertices = np.arange(graph.vertices) if sources is None else sources
    item, k = graph.vertex_dtype.itemsize, asked[0]
    answer = len(vertices) * (k * (2 * item + 24) + 8)
    scratch = graph.vertices * (32 + threads * (4 + item))
    room = Room(room.budget, room.taken + answer + scratch)
    back = graph.into if graph.into is not None and graph.directed else graph.out
    every = np.arange(graph.vertices)
    held = [_held(adjacency, every) for adjacency in ((graph.out, back) if back is not graph.out else (back,))]
    ranked = np.empty(0, np.int64) if surely_in_original_order(graph) else original_ranks(graph).astype(np.int64)
    counting = Counting(graph, back, asked, threads, np.zeros(0, np.int64), np.zeros(0, np.int64), ranked)
    again = 0 if sources is None else int(held[0][sources].sum())
    if sum(int(one.sum()) for one in held) + again <= room.left:
        return _table(counting, vertices, _all_at_once(counting, every, sources))
    return _table(counting, vertices, _by_parts(counting, vertices, held, room))


def _held(adjacency: Adjacency, vertices: Integers) -> Integers:
    """Bytes of each row in memory."""
    begins, ends = row_bounds(adjacency, vertices)
    return (ends - begins) * adjacency.neighbor_dtype.itemsize + ROW_BYTES


def _all_at_once(counting: Counting, every: Integers, sources: Integers | None) -> list[tuple[Any, ...]]:
    """Where all rows fit memory."""
    ones = load_rows(counting.graph.out, every, counting.threads)
    others = ones if counting.back is counting.graph.out else load_rows(counting.back, every, counting.threads)
    counting.sizes, counting.reach = ones.sizes, _reach(ones, others.sizes, counting.threads)
    if sources is not None:
        ones = load_rows(counting.graph.out, sources, counting.threads)
    return [counting.take(ones, iter([(others, True)]), keep=False)]


def _by_parts(counting: Counting, vertices: Integers, held: list[Integers], room: Room) -> list[tuple[Any, ...]]:
    """Where they do not. The rows against the edges stay where they take half of the room."""
    graph, threads = counting.graph, counting.threads
    longest = max(int(one.max()) for one in held)
    room.check(4 * longest, "the longest row, four times,")
    parts = runs(held[-1], room.left // 4)
    counting.sizes = np.zeros(graph.vertices, np.int64)
    for first, last in runs(held[0], room.left // 4):
        counting.sizes[first:last] = load_rows(graph.out, np.arange(first, last), threads).sizes
    begins, ends = row_bounds(counting.back, np.arange(graph.vertices))
    degrees = np.minimum(ends - begins, graph.vertices)
    counting.reach = np.zeros(graph.vertices, np.int64)
    for first, last in runs(held[0][vertices], room.left // 4):
        ones = load_rows(graph.out, vertices[first:last], threads)
        counting.reach[ones.vertices] = np.minimum(_reach(ones, degrees, threads), graph.vertices)
    whole = int(held[-1].sum()) <= room.left // 2
    counted = np.zeros(len(vertices), np.int64) if whole else counting.reach[vertices] * KEPT_BYTES
    room.check(2 * int(counted.max(initial=0)), "what one vertex has two steps away, twice,")
    others = load_rows(counting.back, np.arange(graph.vertices), threads) if whole else None
    found = []
    for first, last in runs(np.maximum(2 * held[0][vertices], counted), room.left // 2):
        ones = load_rows(graph.out, vertices[first:last], threads)
        found.append(counting.take(ones, iter([(others, True)]) if others else _parts(counting, parts), keep=not whole))
    return found


def _reach(ones: RowSets, degrees: Integers, threads: int) -> Integers:
    """Of each row the degrees of its neighbors together."""
    found = np.zeros(len(ones.vertices), np.int64)
    kernels.sum_neighbor_degrees(threads, len(found), ones.offsets, ones.neighbors, degrees, found)
    return found


def _parts(counting: Counting, parts: Runs) -> Iterator[tuple[RowSets, bool]]:
    """The rows against the edges, part by part, and whether it is the last one."""
    for first, last in parts:
        yield load_rows(counting.back, np.arange(first, last), counting.threads), last == parts[-1][1]


def _table(counting: Counting, vertices: Integers, found: list[tuple[Any, ...]]) -> PairTable:
    """The answer, vertex by vertex in the order of the original ids, the most similar first."""
    numbers, best, common = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if len(counting.order):
        order = np.argsort(counting.order[vertices])
        vertices, numbers, best, common = vertices[order], numbers[order], best[order], common[order]
    taken = np.arange(best.shape[1]) < numbers[:, None]
    ends = np.stack([np.repeat(vertices, numbers), best[taken].astype(np.int64)], axis=1)
    return PairTable(counting.graph, ends, common[taken].astype(np.int64), counting.sizes[ends])
