"""A graph whose vertices are groups of another's: edges between two groups become one, with the sum of their weights.

Edges are read chunk by chunk. Those inside a group are added up at once; the others are kept in memory while they are
few, and are else sorted and joined by a conversion within the budget, into a file that has no name any more when it is
read. The edges of the new graph are undirected.
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from os import W_OK, X_OK, access
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import BudgetError
from penstock.storage.base.missing_code import are_left
from penstock.storage.base.threads import pooled_map
from penstock.storage.convert.sort.options import SMALLEST_MEMORY, ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.core.edges import EdgeBatch, joined
from penstock.storage.tables.edge_pieces import EdgePieces, Edges

EDGE_BYTES = 128
"""Memory for an edge that is kept: its ends and weight, both rows of it while they are sorted, and the graph."""
VERTEX_BYTES = 24
"""Memory for a vertex, or a group: its row, its group, the sum inside a group, and row starts."""
LEAST_BYTES = SMALLEST_MEMORY
"""Least memory in which any graph is contracted, beside `VERTEX_BYTES` a vertex and `CODE_BYTES`."""
CODE_BYTES = 24 << 20
"""Memory for chunks that are read, and for modules of a conversion, loaded when a graph is first contracted so."""
RUN_BYTES, GROUP_RUN_BYTES = 40 << 20, 96
"""Memory that is left for a run on a graph that is kept, in all and for a group."""


@dataclass(frozen=True)
class Grouping:
    """Which vertex belongs where.

    group: integers (vertices,), from 0; `groups` and more: the vertex is left out, with its edges. groups: how many.
    scale: weights are multiplied by it and rounded, to be added up exactly. weighted: whether edges count by weights.
    """

    group: NDArray[Any]
    groups: int
    scale: float = 1.0
    weighted: bool = True

    def whole(self, weights: NDArray[Any]) -> NDArray[np.int64]:
        """Weights as the whole numbers that are added up."""
        return (weights.astype(np.float64) * self.scale + 0.5).astype(np.int64)


def contract(graph: Graph, grouping: Grouping, memory_bytes: int, threads: int) -> Graph:
    """Make the graph of groups.

    Parameters
    ----------
    graph : Graph
        In rows; of a directed one directions are ignored.
    grouping : Grouping
        The groups, and how weights are added up.
    memory_bytes : int
        Bytes that may be used, with the grouping.
    threads : int
        Most threads that read and sort.

    Returns
    -------
    Graph
        Undirected, with whole weights. Its file, if it has one, is removed with it.

    Raises
    ------
    BudgetError
        There is too little memory to sort the edges.
    InputError, RunError
        The graph cannot be read, or what does not fit into memory cannot be written.
    """
    room = memory_bytes - VERTEX_BYTES * graph.vertices - CODE_BYTES
    keeps = min(room, memory_bytes - RUN_BYTES - GROUP_RUN_BYTES * grouping.groups)
    source = _Contracted(graph, grouping, threads)
    few: list[EdgeBatch] = []
    kept = 0
    with closing(source.batches()) as batches:
        for batch in batches:
            few.append(batch)
            kept += len(batch)
            if kept * EDGE_BYTES > keeps:
                break
        else:
            sources, targets, weights = joined(few, np.int64)
            if are_left(2 * kept):
                return _in_chunks(_of_few(sources, targets, weights, grouping.groups), graph.out.chunk_edges)
            from penstock.storage.convert.in_memory import EdgeArrays, graph_of  # Numba takes long to import

            arrays = EdgeArrays((sources, targets), weights, grouping.groups, undirected=True)
            found = graph_of(arrays, ConvertOptions(undirected=True, dedupe="sum"))
            return _in_chunks(found, graph.out.chunk_edges)
        if room < LEAST_BYTES:
            raise BudgetError(
                "--host-memory",
                f"sorting the edges between {grouping.groups} groups needs {format_bytes(LEAST_BYTES)}, and "
                f"{format_bytes(max(0, room))} are left",
                -(-(LEAST_BYTES - room) >> 20) + (memory_bytes >> 20),
            )
        from penstock.storage.convert.convert import convert

        source.first = chain(few, batches)
        with scratch_folder(_folder_of(graph)) as folder:
            options = ConvertOptions(
                undirected=True,
                dedupe="sum",
                host_memory=max(LEAST_BYTES, room // 2),
                scratch=folder,
                threads=threads,
                encoding="packed",
            )
            convert(source, folder / "groups.h5", options)
            return Graph.open(folder / "groups.h5")  # open files stay readable when the folder is gone


def _of_few(sources: NDArray[Any], targets: NDArray[Any], weights: Any, groups: int) -> Graph:
    """The graph of few edges, as `graph_of` makes it, without compiled code."""
    both = sources != targets  # a loop is stored once
    rows = np.append(sources, targets[both]).astype(np.int64)
    places = rows * groups + np.append(targets, sources[both])
    found, edge = np.unique(places, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, edge, np.append(weights, weights[both]))
    offsets = np.append(0, np.cumsum(np.bincount(found // max(1, groups), minlength=groups)))
    neighbors = (found % max(1, groups)).astype(vertex_dtype(groups))
    return Graph.from_arrays(offsets, neighbors, sums, directed=False)


def _in_chunks(graph: Graph, chunk_edges: int) -> Graph:
    """The same graph in chunks of so many edges: a device that has room for those of one level has it for the next."""
    out = replace(graph.out, chunk_edges=chunk_edges, _packed={})
    if graph.into is None or graph.into is graph.out:
        return graph.with_adjacencies(out, None if graph.into is None else out)
    return graph.with_adjacencies(out, replace(graph.into, chunk_edges=chunk_edges, _packed={}))


def contraction_bytes(vertices: int) -> int:
    """Bytes in which any graph of so many vertices is contracted."""
    return LEAST_BYTES + VERTEX_BYTES * vertices + CODE_BYTES


def _folder_of(graph: Graph) -> Path | None:
    """The folder for what does not fit into memory: beside the graph, or the system's place."""
    if graph.path is None:
        return None
    place = graph.path.absolute().parent
    while not place.is_dir():  # a level's own folder is gone
        place = place.parent
    return place if access(place, W_OK | X_OK) else None


class _Contracted:
    """The edges between groups, and one within each group that has some, as a source. See `ingest.core.source.Source`.

    first: batches that have been read already, and those that follow; None: from the start.
    """

    undirected = True
    total_bytes = None
    bytes_done = 0

    def __init__(self, graph: Graph, grouping: Grouping, threads: int) -> None:
        self.name = f"groups of {graph.path or 'a graph in memory'}"
        self.known_vertices = grouping.groups
        self.first: Iterator[EdgeBatch] | None = None
        self._graph, self._grouping, self._threads = graph, grouping, threads

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges, once."""
        if self.first is not None:
            yield from self.first
            return
        inside = np.zeros(self._grouping.groups, np.int64)
        pieces = EdgePieces(self._graph.out, once=not self._graph.directed)
        with closing(pooled_map(pieces.read, range(pieces.count), self._threads, "penstock-contract")) as read:
            for edges in read:
                batch = self._between(edges, inside)
                if len(batch):
                    yield batch
        groups = np.flatnonzero(inside).astype(vertex_dtype(self._grouping.groups))
        if len(groups):
            yield EdgeBatch(groups, groups, inside[groups])

    def _between(self, edges: Edges, inside: NDArray[np.int64]) -> EdgeBatch:
        """The edges of a piece that join two groups; the weights of the others are added to `inside`."""
        grouping = self._grouping
        sources, targets = grouping.group[edges[0]], grouping.group[edges[1]]
        if edges[2] is None or not grouping.weighted:
            weights = np.full(len(sources), grouping.whole(np.ones(1))[0], np.int64)
        else:
            weights = grouping.whole(edges[2])
        counted = (sources < grouping.groups) & (targets < grouping.groups) & (weights > 0)
        within = counted & (sources == targets)
        np.add.at(inside, sources[within], weights[within])
        counted &= ~within
        dtype = vertex_dtype(grouping.groups)
        return EdgeBatch(sources[counted].astype(dtype), targets[counted].astype(dtype), weights[counted])
