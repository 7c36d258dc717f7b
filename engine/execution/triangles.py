"""A run over triangles: every vertex gets a message from each of its triangles.

    neighbors of every vertex -> rows turned so that a triangle is met once -> strips of them, pair by pair, intersected

Needs two rows at once, and those of the neighbors are anywhere. What of the turned rows fits memory is a strip; where
that is all of them, edges are read twice, else once and once more for every pair of strips. Intersection is in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.execution.whole_rows import (
    activate_all,
    edge_streams_of,
    owned_blocks,
    visit_views,
)
from penstock.engine.program.vertex_ranges import limited_ranges
from penstock.engine.state.row_blocks import RowBlock, block_capacity

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.loop import Loop
    from penstock.engine.state.records import IterationRecord
    from penstock.storage.format.graph import Graph
    from penstock.transfer.values.view import View

SHARE = 4
"""Strips take at most this part of the memory budget."""
TILES = 4
"""Ranges of a strip's rows that each rank intersects with: ids often fall with the number of neighbors."""


def count_triangles(loop: Loop, memory_bytes: int, messages: int) -> Iterator[IterationRecord]:
    """Give every corner its messages, a strip an iteration, then run `vertex` once.

    memory_bytes: the budget of the whole run. messages: neighbors of a block of rows (`message_capacity`).
    """
    if loop.finished:
        return
    began = time.perf_counter()
    loop.kernels.use()
    memory_bytes = int(loop.gathered(memory_bytes).min())  # all ranks cut the same strips
    found = RowBlocks(loop, activate_all(loop), messages)
    try:
        for met in _intersect_all(found, memory_bytes):
            loop.met = met
            if met == loop.graph.vertices:
                loop.kernels.apply(loop.state, loop.everyone, loop.out, loop.scalars())
                loop.agree_on_floats()
                loop.total()
                loop.converged = loop.finished = True
            record = found.record
            record.totals = dict(loop.totals)
            record.seconds = time.perf_counter() - began
            loop.iteration += 1
            yield record
            began, found.record = time.perf_counter(), activate_all(loop)
    finally:
        loop.kernels.close()


def _intersect_all(found: RowBlocks, memory_bytes: int) -> Iterator[int]:
    """Count the neighbors of every vertex, and intersect every strip with itself and every other; yields the progress.

    A run that goes on from a checkpoint begins behind the vertices that have met theirs; its strips may be others.
    """
    graph, kernels, state = found.loop.graph, found.kernels, found.state
    neighbors = state.empty(graph.vertices, np.int64)
    neighbors[...] = 0
    for block in found.rows(*found.loop.owned_vertices):
        kernels.count_neighbors(block, found.buffer, neighbors)
    found.loop.share_rows([neighbors], found.record)
    if "neighbors" in state.fields:
        state.fields["neighbors"][:] = neighbors
    counts = state.to_host(neighbors)
    bounds = strips(counts, strip_edges(graph, memory_bytes))
    each, scalars = 1 if graph.directed else 2, found.loop.scalars()
    sizes = max(last - first for first, last in bounds), longest_strip(counts, bounds)
    spans = [(max(first, found.loop.met), last) for first, last in bounds if last > found.loop.met]
    alone = spans == bounds[:1]
    kept = [state.oriented_rows(*sizes) for _ in ((1,) if alone else (1, 2))]
    for span in spans:
        found.begin_strip()
        found.keep(span, neighbors, kept[0])
        for other in bounds:
            if other != span:
                found.keep(other, neighbors, kept[1])
            for part in found.dealt(kept[other != span], counts):
                kernels.intersect(kept[0], part, each, state, scalars)
        found.loop.share_counts(found.record)
        yield span[1]


def strip_edges(graph: Graph, memory_bytes: int) -> int:
    """Edges of turned rows that a strip may hold, so that two of them take their share of the memory budget."""
    return max(1, memory_bytes // SHARE // (2 * (graph.vertex_dtype.itemsize + 1)))


def strips(neighbors: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Cut the vertices into ranges [first, last) whose turned rows have at most `most` edges, but at least one row.

    A turned row has at most min(neighbors, sqrt(sum of all neighbors)) edges: sqrt(2 m).
    """
    return limited_ranges(_transposed(neighbors), most)


def longest_strip(neighbors: NDArray[np.int64], bounds: list[tuple[int, int]]) -> int:
    """How many edges the turned rows of one of these strips may have at most."""
    sums = _transposed(neighbors)
    return max(int(sums[last] - sums[first]) for first, last in bounds)


def _transposed(neighbors: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most how many edges the turned rows before each vertex have together, int64 (vertices + 1,)."""
    longest = int(np.sqrt(float(neighbors.sum()))) + 1
    return np.concatenate([[0], np.cumsum(np.minimum(neighbors, longest))])


def strip_bytes(graph: Graph, memory_bytes: int, messages: int) -> int:
    """Bytes that a run takes beyond its state: two strips, the buffer of rows, and the counts of neighbors.

    While a strip grows by a block it is copied once, which is counted; so are the ranks that a GPU gives a buffer.
    """
    adjacencies = [graph.out] if not graph.directed or graph.into is None else [graph.into, graph.out]
    buffer = block_capacity([adjacency.index() for adjacency in adjacencies], messages)
    entry = graph.vertex_dtype.itemsize + 1
    kept = min(2 * strip_edges(graph, memory_bytes), 2 * graph.edges)
    return kept * entry * 3 // 2 + buffer * (graph.vertex_dtype.itemsize + 4) + 40 * graph.vertices


class RowBlocks:
    """The way to rows of neighbors, block by block, through one buffer where the kernels compute."""

    def __init__(self, loop: Loop, record: IterationRecord, messages: int) -> None:
        self.loop, self.record, self.streams = loop, record, edge_streams_of(loop)
        self.kernels, self.state = loop.row_kernels, loop.state
        self._indexes = [stream.index for stream in self.streams]
        self.buffer = self.state.empty(block_capacity(self._indexes, messages), loop.graph.vertex_dtype)

    def rows(self, first: int, last: int) -> Iterator[RowBlock]:
        """Blocks of the rows [first, last), each when its neighbors are in the buffer."""
        for part in owned_blocks(self.loop, self._indexes, len(self.buffer), (first, last)):

            def copy(view: View, walk: int, part: RowBlock = part) -> None:
                self.kernels.copy_rows(view, part, walk, self.buffer)

            visit_views(self.loop, self.streams, part, self.record, copy)
            yield part

    def begin_strip(self) -> None:
        """Begin to count: what ranks counted together before is with the first of them."""
        if self.loop.place[0] > 0:
            assert self.state.incoming is not None, "triangles are counted apart from the fields"
            self.state.incoming[...] = self.state.identity

    def dealt(self, kept: Any, neighbors: NDArray[np.int64]) -> Iterator[Any]:
        """The tiles of these rows that this rank intersects with; without ranks all rows."""
        rank, size = self.loop.place
        if size == 1:
            yield kept
            return
        sums = np.cumsum(neighbors[kept.first : kept.last])
        ends = np.searchsorted(sums, np.linspace(0, sums[-1] if len(sums) else 0, TILES * size + 1)[1:]) + 1
        first = 0
        for number, last in enumerate(np.minimum(ends, len(sums)).tolist()):
            turn, place = divmod(number, size)
            if first < last and (place if turn % 2 == 0 else size - 1 - place) == rank:
                yield kept.part(first, last)
            first = max(first, last)

    def keep(self, span: tuple[int, int], neighbors: Any, kept: Any) -> None:
        """Let `kept` hold the turned rows of the vertices of a strip."""
        kept.begin(span[0])
        for block in self.rows(*span):
            self.kernels.keep(block, self.buffer, neighbors, kept)
