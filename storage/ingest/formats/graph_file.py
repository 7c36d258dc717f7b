"""A graph file of Penstock whose edges are in the order of their input, read again: to sort it, or to renumber it.

Refuses files with sorted rows: they are what a conversion makes.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place, local
from penstock.storage.encoding.edge_keys import sources_of_keys, targets_of_keys
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.tables.properties import open_properties

if TYPE_CHECKING:
    from penstock.storage.tables.property_file import PropertyFile

KEPT = ("undirected", "drop_self_loops", "renumber", "bipartite", "vertices_file")
"""Options of a conversion that stay true of a graph that is made of its output."""


class GraphFileSource:
    """The edges of a list, in vertices. See `core.source.Source`.

    Attributes
    ----------
    left : int or None
        Of a bipartite graph, how many sources.
    original : StoredIds, ndarray or None
        The ids that its vertices had, to be read by `original_ids`; None where they are the same.
    """

    def __init__(self, path: Place, options: IngestOptions) -> None:
        graph = Graph.open(local(path))
        if graph.layout != "list":
            raise InputError(
                f"{path} is a graph with sorted rows already, and only one made by --layout list is read as input; run "
                "programs on it as it is, or convert the raw input again"
            )
        if options.columns is not None or options.string_ids or options.header:
            raise InputError(f"{path} is a graph file: it has no columns to choose; leave such options out")
        self.name = str(path)
        self._graph, self.original = graph, graph.original
        self._weights = graph.out.weights if options.weights is not False else None
        self.known_vertices: int | None = graph.vertices
        self.undirected, self.left = not graph.directed, graph.left
        self.total_bytes = int(graph.out.chunk_bytes(self._weights is not None).sum())
        self.bytes_done = 0

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges in order, a chunk at a time. Raises RunError where the file is damaged."""
        out = self._graph.out
        assert out.neighbors is not None
        sizes = out.chunk_bytes(self._weights is not None).tolist()
        values = repeat(None) if self._weights is None else self._weights.load()
        for keys, weights, size in zip(out.neighbors.load(), values, sizes, strict=False):
            yield EdgeBatch(sources_of_keys(keys).copy(), targets_of_keys(keys).copy(), weights)
            self.bytes_done += size

    def original_ids(self) -> NDArray[Any] | StringArray | None:
        """The ids that its vertices had; None where they are the same. Raises RunError."""
        original = self._graph.original
        if isinstance(original, StringIdFrames):
            return original.names()
        ids = self._graph.original_ids()
        return ids if ids is None else np.ascontiguousarray(ids)

    def properties(self) -> PropertyFile | None:
        """The properties of its vertices, None where there are none. Raises InputError where their file is missing."""
        graph = self._graph
        return open_properties(graph.path, graph.provenance, graph.vertices) if graph.properties else None

    @property
    def options(self) -> dict[str, Any]:
        """The options that it was made with, as far as they are true of what is made of it."""
        found = self._graph.provenance.get("options")
        return {name: found[name] for name in KEPT if name in found} if isinstance(found, dict) else {}
