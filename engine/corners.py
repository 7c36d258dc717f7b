"""The story of a run over triangles: every corner gets a message from each of its triangles.

    neighbors of every vertex -> rows turned so that a triangle is met once -> strips of them, pair by pair, intersected

Needs two rows at once, and those of the neighbors are anywhere. What of the turned rows fits memory is a strip; where
that is all of them, edges are read twice, else once and once more for every pair of strips. Intersection is in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.block import Block, blocks, room
from penstock.engine.frontier import Frontier
from penstock.engine.kept import KeptRows
from penstock.engine.rows import everyone, lanes_of, visit

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.lane import Lane
    from penstock.engine.loop import Loop
    from penstock.engine.trace import IterationRecord
    from penstock.storage.graph import Graph
    from penstock.transfer.view import View

SHARE = 4
"""Strips take at most this part of the memory budget."""


def meet(loop: Loop, memory_bytes: int) -> Iterator[IterationRecord]:
    """Give every corner its messages, then run `vertex` once. memory_bytes: the budget of the whole run."""
    began = time.perf_counter()
    worker, lanes, record = loop.workers[0], lanes_of(loop), everyone(loop)
    neighbors = np.zeros(loop.graph.vertices, dtype=np.int64)
    for block, buffer in _rows(loop, lanes, record, 0, loop.graph.vertices):
        worker.kernels.count_neighbors(block, buffer, neighbors)
    if "neighbors" in worker.state.fields:
        worker.state.fields["neighbors"][:] = neighbors
    each, scalars = 1 if loop.graph.directed else 2, loop.scalars()
    bounds = strips(neighbors, strip_edges(loop.graph, memory_bytes))
    for number, (first, last) in enumerate(bounds):
        ones = _keep(loop, lanes, record, (first, last), neighbors)
        worker.kernels.meet(ones, ones, each, worker.state, scalars)
        for other in bounds[:number] + bounds[number + 1 :]:
            worker.kernels.meet(ones, _keep(loop, lanes, record, other, neighbors), each, worker.state, scalars)
    worker.kernels.apply(
        worker.state, Frontier(loop.graph.vertices, loop.graph.edges, everything=True), loop.out, loop.scalars()
    )
    loop.total()
    record.totals = dict(loop.totals)
    record.seconds = time.perf_counter() - began
    loop.iteration += 1
    loop.converged = True
    yield record


def strip_edges(graph: Graph, memory_bytes: int) -> int:
    """Edges of turned rows that a strip may hold, so that two of them take their share of the memory budget."""
    return max(1, memory_bytes // SHARE // (2 * (graph.vertex_dtype.itemsize + 1)))


def strips(neighbors: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Cut the vertices into ranges [first, last) whose turned rows have at most `most` edges, but at least one row.

    A turned row has at most min(neighbors, sqrt(sum of all neighbors)) edges: sqrt(2 m).
    """
    longest = int(np.sqrt(float(neighbors.sum()))) + 1
    sums = np.concatenate([[0], np.cumsum(np.minimum(neighbors, longest))])
    found, first = [], 0
    while first < len(neighbors):
        last = max(first + 1, int(np.searchsorted(sums, sums[first] + most, side="right")) - 1)
        found.append((first, last))
        first = last
    return found


def strip_bytes(graph: Graph, memory_bytes: int) -> int:
    """Bytes that a run takes beyond its state: two strips, the buffer of rows, and the counts of neighbors.

    While a strip grows by a block it is copied once, which is counted.
    """
    adjacencies = [graph.out] if not graph.directed or graph.into is None else [graph.into, graph.out]
    buffer = room([adjacency.index() for adjacency in adjacencies])
    entry = graph.vertex_dtype.itemsize + 1
    kept = min(2 * strip_edges(graph, memory_bytes), 2 * graph.edges)
    return kept * entry * 3 // 2 + buffer * graph.vertex_dtype.itemsize + 24 * graph.vertices


def _keep(
    loop: Loop, lanes: tuple[Lane, ...], record: IterationRecord, span: tuple[int, int], neighbors: NDArray[np.int64]
) -> KeptRows:
    """The turned rows of the vertices of a strip."""
    kept = KeptRows(span[0], loop.graph.vertex_dtype)
    for block, buffer in _rows(loop, lanes, record, *span):
        loop.workers[0].kernels.keep(block, buffer, neighbors, kept)
    return kept


def _rows(
    loop: Loop, lanes: tuple[Lane, ...], record: IterationRecord, first: int, last: int
) -> Iterator[tuple[Block, Any]]:
    """Blocks of the rows [first, last), each with the neighbors in its rows."""
    kernels = loop.workers[0].kernels
    indexes = [lane.index for lane in lanes]
    buffer = np.empty(room(indexes), dtype=loop.graph.vertex_dtype)
    for block in blocks(indexes, len(buffer)):
        part = Block(max(block.first, first), min(block.last, last), block.indexes)
        if part.first < part.last:

            def copy(view: View, walk: int, part: Block = part) -> None:
                kernels.copy_rows(view, part, walk, buffer)

            visit(loop, lanes, part, record, copy)
            yield part, buffer
