"""A graph file is converted once more, with the edges of another source: every edge is read, sorted and written again.

It takes the memory and the scratch files of any conversion; the new file takes the old one's name when it is whole.
Options are those that the graph was made with. Vertices keep the ids of the input; where ids were numbered, they are
numbered anew.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.graph_queries import names_of
from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import SMALLEST_MEMORY, ConvertOptions, ConvertReport
from penstock.storage.convert.sort.run import MAX_VERTICES
from penstock.storage.convert.sort.workspace import Progress
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.edges import EdgeBatch, local_names, places_of
from penstock.storage.ingest.core.source import Source
from penstock.storage.tables.edge_pieces import EdgePieces, ListPieces

KEPT = ("symmetrize", "dedupe", "drop_self_loops", "bipartite", "order")
"""Options that are as they were; the others follow from the graph itself."""

ID_BLOCK = 1 << 16
"""Vertices whose ids are given at once."""


class GrownGraph:
    """The edges of a graph, then batches of another source, in ids of the input. See `core.source.Source`."""

    undirected = False
    """What the options say of both."""
    input_edges: int
    """How many were given, of which those stay that the options leave."""

    def __init__(self, graph: Graph, more: Source, batches: Iterable[EdgeBatch]) -> None:
        self.name = f"{graph.path} and {more.name}" if more.name else str(graph.provenance.get("source", graph.path))
        self._graph, self._more, self._batches = graph, more, batches
        self._old_bytes = int(graph.out.chunk_bytes(graph.weight_dtype is not None).sum())
        self._done, self.input_edges = 0, graph.input_edges
        self.ids = names_of(graph)
        self.named = isinstance(graph.original, StringIdFrames)
        self.known_vertices: int | None = None if graph.original is not None else more.known_vertices

    @property
    def total_bytes(self) -> int | None:
        """Bytes of the graph's edges and of the other source."""
        return None if self._more.total_bytes is None else self._old_bytes + self._more.total_bytes

    @property
    def bytes_done(self) -> int:
        """How many of these were read."""
        return self._done + self._more.bytes_done

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the graph's edges, each once, the vertices without any, and the other edges. Raises as its parts."""
        graph = self._graph
        rows = graph.layout == "rows"
        pieces = EdgePieces(graph.out, once=not graph.directed) if rows else ListPieces(graph.out, both=False)
        for number in range(pieces.count):
            yield self._batch(*pieces.read(number))
            self._done = self._old_bytes * (number + 1) // pieces.count
        if self._graph.left is None:  # vertices of two sides have edges, or were in no input
            for first in range(0, self._graph.vertices, ID_BLOCK):
                yield self._vertices(np.arange(first, min(first + ID_BLOCK, self._graph.vertices)))
        for batch in self._batches:
            if (batch.weights is None) != (self._graph.weight_dtype is None) and len(batch):
                raise InputError(other_weights(self._graph, self._more.name, weighted=batch.weights is not None))
            self.input_edges += len(batch)
            yield batch

    def _batch(self, sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None) -> EdgeBatch:
        """Edges between internal ids, in ids of the input."""
        if self.ids is None:
            return EdgeBatch(sources, targets, weights)
        if not isinstance(self.ids, StringArray):
            return EdgeBatch(self.ids[sources], self.ids[targets], weights)
        both = self.ids.taken(np.stack([sources, targets], 1).reshape(-1))
        places = places_of(both.lengths.astype(np.int32))
        names, numbers = local_names(both.text, places, self._graph.left is not None)
        return EdgeBatch(numbers[:, 0].copy(), numbers[:, 1].copy(), weights, names=names)

    def _vertices(self, vertices: NDArray[np.int64]) -> EdgeBatch:
        """Vertices, which may have no edge."""
        none = np.empty(0, np.uint32)
        if isinstance(self.ids, StringArray):
            return EdgeBatch(none, none, None, names=self._batch(vertices, vertices, None).names)
        ids = vertices if self.ids is None else self.ids[vertices]
        return EdgeBatch(none, none, None, lone=ids.astype(np.uint64))


class NoEdges:
    """A source that adds nothing."""

    name, undirected, known_vertices, total_bytes, bytes_done = "", False, None, 0, 0

    def batches(self) -> Generator[EdgeBatch]:
        """Yield nothing."""
        yield from ()


def append_rows(
    source: Source,
    batches: Iterable[EdgeBatch],
    graph: Graph,
    options: ConvertOptions,
    watch: Progress,
    *,
    table: bool = False,
) -> ConvertReport:
    """Write the graph with a source's batches in its place. Raises as `convert`; before that it is as it was.

    options: memory, threads, scratch and folders of stripes; all others are the graph's own. table: as for `append`.
    """
    told = told_of(graph)
    kept = {name: told[name] for name in KEPT if name in told}
    both = GrownGraph(graph, source, batches)
    by_table = table or (isinstance(both.ids, np.ndarray) and int(both.ids.max(initial=0)) >= MAX_VERTICES)
    grown = replace(
        options,
        layout="list" if graph.layout == "list" else "rows",
        direction="both" if graph.directed and graph.into is not None else "out",
        undirected=not graph.directed and not kept.get("symmetrize"),
        renumber=False if told.get("renumber") is False else (by_table and not kept.get("bipartite")) or None,
        windows=len(graph.out.windows) or None,
        encoding="packed" if graph.layout == "list" else graph.out.encoding,
        host_memory=_room(both, options.host_memory),
        **kept,
    )
    assert graph.path is not None, "the graph is in a file"
    return convert(both, graph.path, grown, watch)


def told_of(graph: Graph) -> dict[str, Any]:
    """Return the options that a graph was made with."""
    made = graph.provenance.get("options")
    return made if isinstance(made, dict) else {}


def check_suits(source: Source, graph: Graph) -> None:
    """Refuse edges that rows, or a list with ids of its own, cannot get. Raises InputError."""
    told, target = told_of(graph), graph.path
    if graph.properties or told.get("vertices_file"):
        raise InputError(
            f"{target} has exactly the vertices of {told.get('vertices_file', 'a table')}; convert all inputs together"
        )
    if graph.edge_properties:
        listed = ", ".join(graph.edge_properties)
        raise InputError(f"{target} keeps {listed} beside its edges; convert all inputs together (--edge-properties)")
    if source.undirected and graph.directed:
        raise InputError(f"{source.name} says that its edges are undirected, and those of {target} are directed")
    strings = isinstance(graph.original, StringIdFrames)
    if strings != bool(getattr(source, "named", False)):
        kinds = ("strings", "numbers") if strings else ("numbers", "strings")
        raise InputError(f"the ids of {target} are {kinds[0]}, and those of {source.name} are {kinds[1]}")


def other_weights(graph: Graph, name: str, *, weighted: bool) -> str:
    """Say that edges of that name have weights (weighted), and those of a graph have none, or the reverse."""
    if not weighted:
        return f"{graph.path} has weights, and {name} has none; --weights or --columns takes them"
    return f"{name} has weights, and {graph.path} has none; --no-weights leaves them out"


def _room(graph: GrownGraph, host_memory: int) -> int:
    """What a conversion may take beside the ids of the graph. Raises BudgetError where that is too little."""
    held = 0 if graph.ids is None else graph.ids.nbytes
    if host_memory < held + SMALLEST_MEMORY:
        why = f"the ids of the graph take {format_bytes(held)}, and converting it once more at least "
        why += format_bytes(SMALLEST_MEMORY)
        raise too_small("--host-memory", host_memory, why, held + SMALLEST_MEMORY)
    return host_memory - held
