"""A run over triangles: every vertex gets a message from each of its triangles; or edges of few of them are taken away.

    neighbors of every vertex -> rows turned so that a triangle is met once -> strips of them, pair by pair, intersected

Needs two rows at once, and those of the neighbors are anywhere. What of the turned rows fits memory is a strip; where
that is all of them, edges are read twice, else once and once more for every pair of strips. Intersection is in memory.
Programs that peel (`Program.peels`) keep the turned rows, in a file where they are many, and intersect what is left of
them in each round (as Davis' k-truss, HPEC 2018).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
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
from penstock.engine.state.state import State
from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.checkpoint.state_pages import FILE_PAGES, FILE_ROWS, PagedValues, values_in_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from penstock.engine.execution.loop import Loop
    from penstock.engine.state.records import IterationRecord
    from penstock.storage.format.graph import Graph
    from penstock.transfer.values.view import View

SHARE = 4
"""Strips take at most this part of the memory budget."""
KEY_BYTES = 16
"""Memory for an edge of a truss, as a number, while they are made."""
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
            yield found.noted(began, last=met == loop.graph.vertices)
            began = time.perf_counter()
    finally:
        loop.kernels.close()


def peel_edges(loop: Loop, memory_bytes: int, messages: int, folders: Sequence[Path]) -> Iterator[IterationRecord]:
    """Take edges of too few triangles away, round by round; then `vertex` gets the largest k of a k-truss it is in.

    The program's `k` ends at that k-truss; 0: at none. `met`: the present k.
    Every rank does all of it. memory_bytes, messages: as `count_triangles`. folders: where rows go that memory has no
    room for. Raises RunError where the disk is full or fails.
    """
    if loop.finished:
        return
    began = time.perf_counter()
    loop.kernels.use()
    memory_bytes = int(loop.gathered(memory_bytes).min()) // 2  # an edge takes twice as much as where corners count
    program: Any = loop.program
    state, wanted = loop.state, program.k
    found = RowBlocks(loop, activate_all(loop), messages)
    truss = np.array(state.to_host(state.incoming))
    loop.met = max(2, wanted, loop.met)
    try:
        rows = TurnedRows(found, memory_bytes, folders)
        while not loop.finished:
            before, fewest = rows.edges, rows.peel(loop.met - 2) if rows.edges else 0
            over = not rows.edges
            if not over and rows.edges == before:
                truss[rows.vertices()] = wanted or fewest + 2
                loop.met, over = fewest + 3, bool(wanted)
            state.from_host(state.incoming, truss)
            if over and program.keeps:
                program.left = rows.keys(memory_bytes)
            yield found.noted(began, last=over)
            began = time.perf_counter()
    finally:
        loop.kernels.close()


def _intersect_all(found: RowBlocks, memory_bytes: int) -> Iterator[int]:
    """Count the neighbors of every vertex, and intersect every strip with itself and every other; yields the progress.

    A run that goes on from a checkpoint begins behind the vertices that have met theirs; its strips may be others.
    """
    graph, kernels, state = found.loop.graph, found.kernels, found.state
    neighbors = found.count_neighbors()
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


def peeling_bytes(graph: Graph, memory_bytes: int, messages: int) -> int:
    """Bytes that a run takes that peels: also the triangles of edges, rows that stay, their starts, and the answer."""
    memory_bytes, item = memory_bytes // 2, graph.vertex_dtype.itemsize
    kept = min(2 * strip_edges(graph, memory_bytes), 2 * graph.edges)
    rows = (graph.edges if _rows_stay(graph, memory_bytes) else FILE_PAGES * FILE_ROWS) * item
    return strip_bytes(graph, memory_bytes, messages) + kept * (2 * item + 4) + rows + 25 * graph.vertices


def _rows_stay(graph: Graph, memory_bytes: int) -> bool:
    """Whether the turned rows of all vertices stay in memory: it has room, or a file would hold as much of it."""
    return graph.edges <= max(FILE_PAGES * FILE_ROWS, memory_bytes // (2 * SHARE) // graph.vertex_dtype.itemsize)


class TurnedRows:
    """The turned rows of all vertices, of which edges are taken away."""

    def __init__(self, found: RowBlocks, memory_bytes: int, folders: Sequence[Path]) -> None:
        from penstock.engine.kernels.host.whole_rows.triangles import sort_rows  # Numba takes long to import

        self._kernels, self._state, graph = found.kernels, found.state, found.loop.graph
        self._most = strip_edges(graph, memory_bytes)
        neighbors = found.count_neighbors()
        counts = self._state.to_host(neighbors)
        self.edges = int(counts.sum()) // 2
        self._starts = np.zeros(graph.vertices + 1, np.int64)
        self._targets: NDArray[Any] | PagedValues = (
            np.empty(self.edges, graph.vertex_dtype)
            if _rows_stay(graph, memory_bytes)
            else values_in_file(folders, self.edges, graph.vertex_dtype, 0)
        )
        bounds = strips(counts, self._most)
        kept = self._room(bounds, longest_strip(counts, bounds))
        for first, last in bounds:
            found.keep((first, last), neighbors, kept)
            _, starts, *_, targets, _ = kept.arrays
            begins, at = self._state.to_host(starts), int(self._starts[first])
            some = self._state.to_host(targets[: begins[-1]])
            if not isinstance(self._state, State):  # a device takes rows that ascend, the host by their degrees
                sort_rows(1, last - first, begins, some)
            self._starts[first : last + 1] = begins + at
            self._targets[at : at + begins[-1]] = some

    def peel(self, least: int) -> int:
        """Take away edges of fewer than `least` triangles; return the fewest that one which is left had before."""
        from penstock.engine.kernels.host.whole_rows.triangles import drop_sides

        kernels, state, starts = self._kernels, self._state, self._starts
        bounds = limited_ranges(starts, self._most)
        strips = [(first, starts[first : last + 1] - starts[first], int(starts[first])) for first, last in bounds]
        kept = [self._room(bounds, max(int(begins[-1]) for _, begins, _ in strips)) for _ in strips[:2]]
        fewest, self.edges = np.iinfo(np.int64).max, 0
        for number, (first, begins, place) in enumerate(strips):
            targets, sides = self._filled(kept[0], first, begins, place)
            for other in strips:
                if other[0] == first:
                    kernels.count_sides(kept[0], kept[0], sides, sides)
                else:
                    _, others = self._filled(kept[1], *other)
                    kernels.count_sides(kept[0], kept[1], sides, others)
                    kernels.count_sides(kept[1], kept[0], others, sides)
            fewest = min(fewest, drop_sides(begins, targets, state.to_host(sides), least))
            strips[number] = first, begins, self.edges
            starts[first : first + len(begins)] = begins + self.edges
            self._targets[self.edges : self.edges + begins[-1]] = targets[: begins[-1]]
            self.edges += int(begins[-1])
        return int(fewest)

    def vertices(self) -> NDArray[np.bool_]:
        """Which vertices have an edge that is left."""
        found = np.diff(self._starts) > 0
        for first in range(0, self.edges, self._most):
            found[self._targets[first : min(first + self._most, self.edges)]] = True
        return found

    def keys(self, memory_bytes: int) -> NDArray[np.uint64]:
        """The edges that are left, ascending: one end * vertices + the other. Raises BudgetError for too many."""
        vertices, needed = len(self._starts) - 1, KEY_BYTES * self.edges
        if needed > memory_bytes // 2:
            why = f"half of it does not hold the {self.edges:,} edges of the truss, which take {format_bytes(needed)}"
            raise too_small("--host-memory", memory_bytes, why, 2 * needed)
        ends = np.repeat(np.arange(vertices, dtype=np.uint64), np.diff(self._starts))
        ends *= np.uint64(vertices)
        ends += self._targets[: self.edges].astype(np.uint64)
        ends.sort()
        return ends

    def _room(self, bounds: list[tuple[int, int]], edges: int) -> Any:
        return self._state.oriented_rows(max((last - first for first, last in bounds), default=0), edges)

    def _filled(self, kept: Any, first: int, begins: NDArray[np.int64], place: int) -> tuple[NDArray[Any], Any]:
        """Let `kept` hold a strip; return its targets, and 0 triangles for each."""
        targets = self._targets[place : place + int(begins[-1])]
        kept.fill(first, begins, targets, self._state.from_host)
        sides = self._state.empty(len(targets), np.int32)
        sides[...] = 0
        return targets, sides


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

    def count_neighbors(self) -> Any:
        """How many distinct neighbors every vertex has, where kernels compute."""
        neighbors = self.state.empty(self.loop.graph.vertices, np.int64)
        neighbors[...] = 0
        for block in self.rows(*self.loop.owned_vertices):
            self.kernels.count_neighbors(block, self.buffer, neighbors)
        self.loop.share_rows([neighbors], self.record)
        return neighbors

    def noted(self, began: float, *, last: bool) -> IterationRecord:
        """The record of an iteration that ends now, after the last of which `vertex` runs; begin the next one."""
        loop, record = self.loop, self.record
        if last:
            loop.kernels.apply(loop.state, loop.everyone, loop.out, loop.scalars())
            loop.agree_on_floats()
            loop.total()
            loop.converged = loop.finished = True
        record.totals = dict(loop.totals)
        record.seconds = time.perf_counter() - began
        loop.iteration += 1
        self.record = activate_all(loop)
        return record

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
