"""Edges in memory become a graph in memory, by the conversion's own steps: packed, sorted and joined in threads.

Nothing is compressed and nothing touches a disk. Refuses what `convert` refuses.
"""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.companion.process import install
from penstock.storage.convert.convert import ordering_of, read_edges, sorted_rows
from penstock.storage.convert.convert_list import InputOrder
from penstock.storage.convert.rename import InputEdges
from penstock.storage.convert.renumber.input_ids import NeedsTable
from penstock.storage.convert.renumber.name_store import NameStore, Original
from penstock.storage.convert.row_writer import csr_of
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.convert.sort.seen_ids import OccurringIds
from penstock.storage.convert.sort.workspace import Workspace, ignore
from penstock.storage.format.csr_input import Csr
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.edges import EdgeBatch, joined

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


def graph_of(arrays: EdgeArrays, options: ConvertOptions) -> Graph:
    """The graph of some edges, as ``convert`` would make it.

    Raises:
        InputError: as `convert.convert`.
    """
    install()
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
    weighted = any(batch.weights is not None for batch in batches)
    sources, targets, weights = joined(batches, edges.weights.dtype() if weighted else None)
    if edges.ids is not None:
        sources, targets = edges.ids(sources), edges.ids(targets)
    graph = Graph.from_list(
        sources,
        targets,
        weights,
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


def _rows_of(arrays: EdgeArrays, options: ConvertOptions) -> tuple[Csr, InputEdges]:
    """The out-adjacency."""
    with Workspace(arrays, Path("memory"), replace(options, host_memory=AMPLE_BYTES), ignore) as space:
        edges = read_edges(space)
        ordering = ordering_of(space, edges)
        pieces = sorted_rows(space, edges.store, ordering)
        return csr_of(pieces, edges.vertices, ordering.vertex_dtype, ordering.weight_dtype), edges


def _reversed(out: Csr) -> Csr:
    """The in-adjacency of an out-adjacency."""
    offsets, neighbors, weights = out
    vertices = len(offsets) - 1
    sources = np.repeat(np.arange(vertices, dtype=neighbors.dtype), np.diff(offsets))
    backward = EdgeArrays((neighbors, sources), weights, vertices, undirected=False)
    return _rows_of(backward, ConvertOptions())[0]
