"""Penstock as one of the systems compared.

Ready means that the graph file is written and opened; the edges are read into memory by the first
run of each program, which is not timed for any system.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.storage.base.budget import default_host_memory
from penstock.storage.convert.convert import convert
from penstock.storage.convert.from_arrays import from_edges
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from penstock.tools.bench.queries import QUERIES, SWEPT, Query
from penstock.tools.bench.system import Implementation, SimpleEdges, Values


class Penstock:
    """Penstock with its edges in memory, weights narrow; options: of its sessions."""

    name = "penstock"

    def __init__(self, **options: Any) -> None:
        self._options = options

    def take(self, edges: SimpleEdges) -> None:
        """Make a graph in memory; the weights are whole numbers where they can be."""
        largest = int(min(edges.weights.max(initial=0), 2**32 - 1))
        narrow = edges.weights.astype(np.min_scalar_type(largest))
        weights = narrow if np.array_equal(narrow, edges.weights) else edges.weights
        made = from_edges(edges.sources, edges.targets, weights, vertices=edges.vertices, undirected=not edges.directed)
        self._plain = self._weighted = Session(made, **self._options)

    def read(self, text: Path, vertices: int) -> None:
        """Convert with both directions, and open; the file lies beside the text."""
        self._vertices = vertices
        self._plain = self._converted(text, weighted=False)

    def read_weights(self, text: Path) -> None:
        """Convert the weighted list, too."""
        self._weighted = self._converted(text, weighted=True)

    def _converted(self, text: Path, *, weighted: bool) -> Session:
        memory = default_host_memory()
        source = open_source([text], None, IngestOptions(host_memory=memory, weights=weighted))
        source.known_vertices = self._vertices  # type: ignore[misc]  # a list of edges does not say
        path = text.with_suffix(".weighted.h5" if weighted else ".h5")
        convert(source, path, ConvertOptions(direction="both", host_memory=memory, force=True))
        return Session(Graph.open(path), host_memory=memory, **self._options)

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """All of them."""

        def program(name: str, query: Query) -> Implementation:
            session = self._weighted if name == "sssp" else self._plain
            return Implementation(lambda: session.run(query.program(name, edges)), partial(_values, field=query.field))

        found = {name: program(name, query) for name, query in QUERIES.items()}
        return found | {name: program("pagerank", query) for name, query in SWEPT.items()}

    def close(self) -> None:
        """End the sessions."""
        for session in {self._plain, self._weighted}:
            session.close()


def _values(result: Result, field: str) -> Values:
    """A field's values as float64, infinity where there is none."""
    return np.where(result.reached(field), result.fields[field].astype(np.float64), np.inf)
