"""Edges in memory become a graph in memory, by the conversion's own steps: packed, sorted and joined in threads.

Nothing is compressed and nothing touches a disk. Refuses what `convert` refuses.
"""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.convert import ordering_of, read_edges, sorted_rows
from penstock.storage.convert.convert_list import InputOrder
from penstock.storage.convert.rename import InputEdges
from penstock.storage.convert.renumber.input_ids import NeedsTable
from penstock.storage.convert.renumber.name_store import NameStore, Original
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.convert.sort.seen_ids import OccurringIds
from penstock.storage.convert.sort.workspace import Workspace, ignore
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.graph import Graph

BATCH_EDGES = 1 << 20
AMPLE_BYTES = 1 << 40
"""A budget that nothing in memory exceeds, so that no scratch file is made."""


class EdgeArrays:
    """Edges in arrays, as a source. See `core/source.Source`.

    ``sources``, ``targets`` uint32 or uint64 (edges,), ``weights`` numbers (edges,) or None; ``vertices``
    exist from 0 on even without an edge (None: as far as ids go).
    """

    name = "arrays in memory"

    def __init__(
        self,
        ends: tuple[NDArray[Any], NDArray[Any]],
        weights: NDArray[Any] | None,
        vertices: int | None,
        *,
        undirected: bool,
    ) -> None:
        self.ends, self.weights = ends, weights
        self.known_vertices, self.undirected = vertices, undirected
        self.total_bytes = sum(array.nbytes for array in ends)
        self.bytes_done = 0

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges in order."""
        sources, targets = self.ends
        for first in range(0, len(sources), BATCH_EDGES):
            part = slice(first, first + BATCH_EDGES)
            yield EdgeBatch(sources[part], targets[part], None if self.weights is None else self.weights[part])
        self.bytes_done = self.total_bytes


class _Csr(NamedTuple):
    offsets: NDArray[np.int64]
    neighbors: NDArray[Any]
    weights: NDArray[Any] | None


def graph_of(arrays: EdgeArrays, options: ConvertOptions) -> Graph:
    """The graph of some edges, as ``convert`` would make it.

    Raises:
        InputError: as `convert.convert`.
    """
    named = arrays.known_vertices
    try:
        return _graph_of(arrays, options)
    except NeedsTable:
        if named:  # a table has none of them that no edge ends in
            raise
    return _graph_of(arrays, replace(options, renumber=True))


def _graph_of(arrays: EdgeArrays, options: ConvertOptions) -> Graph:
    if options.layout == "list":
        return _list_of(arrays, options)
    out, edges = _rows_of(arrays, options)
    into = None
    directed = not (arrays.undirected or options.undirected or options.symmetrize)
    if directed and options.direction == "both":
        into = _reversed(out)
    graph = Graph.from_arrays(*out, into=into, directed=directed, original_id=_ids(edges.original))
    return replace(graph, input_edges=edges.input_edges, left=edges.left)


def _list_of(arrays: EdgeArrays, options: ConvertOptions) -> Graph:
    """The graph that keeps its edges in their order."""
    named = arrays.known_vertices or 0
    if any(len(ends) and int(ends.max()) >= named for ends in arrays.ends):
        arrays.known_vertices = None  # there are other vertices, too
    with Workspace(arrays, Path("memory"), replace(options, host_memory=AMPLE_BYTES), ignore) as space:
        edges = InputOrder(space, named)
        batches = list(edges.batches())
        original = _ids(edges.original)
    ends = [[getattr(batch, name) for batch in batches] for name in ("sources", "targets")]
    sources, targets = (np.concatenate(parts) if parts else np.empty(0, np.uint32) for parts in ends)
    if edges.ids is not None:
        sources, targets = edges.ids(sources), edges.ids(targets)
    weights = [batch.weights for batch in batches if batch.weights is not None]
    graph = Graph.from_list(
        sources,
        targets,
        np.concatenate(weights).astype(edges.weights.dtype()) if weights else None,
        vertices=edges.vertices,
        directed=not space.mirror,
        original_id=original,
    )
    return replace(graph, input_edges=edges.input_edges, left=edges.left)


def _ids(original: Original) -> NDArray[Any] | None:
    """Original ids as one array."""
    if isinstance(original, NameStore):
        return np.concatenate([names.strings() for names in original.pieces()])
    return original.whole() if isinstance(original, OccurringIds) else original


def _rows_of(arrays: EdgeArrays, options: ConvertOptions) -> tuple[_Csr, InputEdges]:
    """The out-adjacency."""
    with Workspace(arrays, Path("memory"), replace(options, host_memory=AMPLE_BYTES), ignore) as space:
        edges = read_edges(space)
        ordering = ordering_of(space, edges)
        degrees = np.zeros(edges.vertices, np.int64)
        neighbors: list[NDArray[Any]] = [np.empty(0, ordering.vertex_dtype)]
        weights: list[NDArray[Any]] = [] if edges.weights is None else [np.empty(0, ordering.weight_dtype)]
        for rows in sorted_rows(space, edges.store, ordering):
            degrees[rows.first : rows.first + len(rows.degrees)] += rows.degrees
            neighbors.append(rows.neighbors)
            if rows.weights is not None:
                weights.append(rows.weights.copy())
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
    return _Csr(offsets, np.concatenate(neighbors), np.concatenate(weights) if weights else None), edges


def _reversed(out: _Csr) -> _Csr:
    """The in-adjacency of an out-adjacency."""
    vertices = len(out.offsets) - 1
    sources = np.repeat(np.arange(vertices, dtype=out.neighbors.dtype), np.diff(out.offsets))
    backward = EdgeArrays((out.neighbors, sources), out.weights, vertices, undirected=False)
    return _rows_of(backward, ConvertOptions())[0]
