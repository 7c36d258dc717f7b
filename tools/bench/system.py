"""The systems of a comparison: the graph that they get, and what each of them has to offer.

The graph is made simple first (of parallel edges the first, no self-loops), because systems differ in what they make of
the others; it gets weights where it has none. Graphs are generated in a scratch folder, and read into memory once, so
that sessions do not decode them again.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores, default_host_memory
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.synthetic import grid, rmat, web
from penstock.storage.read.reader import Reader
from penstock.tools.base.graph_making import make_graph
from penstock.tools.base.output import Console

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency

WEIGHTS = (1, 63)


def generate(folder: Path, console: Console, *, kind: str, scale: int, edge_factor: int) -> tuple[str, Graph]:
    """A generated graph of 2^scale vertices, weights 1..63, as a file in `folder`; return its name, and it, opened.

    R-MAT is undirected here, as the Graph500 has it: both rows hold every edge. A web graph has both adjacencies. A
    grid has two edges a vertex.
    """
    if kind == "grid":
        source = grid(1 << scale // 2, 1 << scale - scale // 2, weights=WEIGHTS)
    elif kind == "web":
        source = web(1 << scale, edge_factor, weights=WEIGHTS)
    else:
        source = rmat(scale, edge_factor, weights=WEIGHTS)
    options = ConvertOptions(direction="both", undirected=kind == "rmat", host_memory=default_host_memory())
    path = folder / "graph.h5"
    make_graph(lambda: source, path, options, console)
    return source.name, Graph.open(path)


def in_memory(graph: Graph) -> Graph:
    """The same graph with its edges in host memory; the graph itself where they do not fit, or are there already."""
    weight = 0 if graph.weight_dtype is None else graph.weight_dtype.itemsize
    size = sum(adjacency.edges for adjacency in graph.adjacencies) * (graph.vertex_dtype.itemsize + weight)
    if graph.out.arrays is not None or size > default_host_memory():
        return graph
    with Reader(graph, decode_threads=cores()) as reader:
        out, *into = [_arrays(reader, adjacency) for adjacency in graph.adjacencies]
    return Graph.from_arrays(
        *out, into=into[0] if into else None, directed=graph.directed, original_id=graph.original_ids()
    )


def _arrays(reader: Reader, adjacency: Adjacency) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Offsets, neighbors, weights."""
    neighbors = aligned_empty(adjacency.edges, adjacency.neighbor_dtype)
    weights = None if adjacency.weight_dtype is None else aligned_empty(adjacency.edges, adjacency.weight_dtype)
    reader.fetch_all(adjacency, neighbors, weights)
    return adjacency.index().starts(0, adjacency.vertices + 1), neighbors, weights


Values = NDArray[Any]
STARTS = 4
"""Sources of betweenness."""


@dataclass(frozen=True)
class SimpleEdges:
    """A simple graph as arrays; an undirected one has every edge once, the smaller end first.

    sources, targets: integers (edges,). weights: numbers (edges,). starts: the vertices of the most out-neighbors, the
    first of them the source of searches.
    """

    sources: Values
    targets: Values
    weights: Values
    vertices: int
    directed: bool
    starts: list[int]

    @staticmethod
    def of(graph: Graph) -> SimpleEdges:
        """The edges of a graph, by its internal ids. Weights where there are none: 1 + (31 u + 17 v) mod 64."""
        loaded = in_memory(graph).out
        assert loaded.arrays is not None, "a graph to compare on fits memory"
        neighbors, weights = loaded.arrays
        offsets = loaded.index().starts(0, loaded.vertices + 1).astype(np.int64)
        sources = np.repeat(np.arange(graph.vertices), np.diff(offsets))
        targets = neighbors.astype(np.int64)
        keep = sources != targets if graph.directed else sources < targets
        keys = sources[keep] * graph.vertices + targets[keep]
        keys, first = np.unique(keys, return_index=True)
        u, v = keys // max(1, graph.vertices), keys % max(1, graph.vertices)
        found = (1.0 + (31 * u + 17 * v) % 64) if weights is None else weights[keep][first].astype(np.float64)
        counts = np.bincount(u, minlength=graph.vertices)
        counts += 0 if graph.directed else np.bincount(v, minlength=graph.vertices)
        starts = np.argsort(-counts, kind="stable")[:STARTS].tolist()
        return SimpleEdges(u, v, found, graph.vertices, graph.directed, starts)


Implementation = tuple[Callable[[], Any], Callable[[Any], Values]]
"""A system's own algorithm for a query, which is timed; and what turns its result into an array.

Answers: levels and distances as float64 with infinity where not reached, ranks as float64, components as any labels;
one value per vertex.
"""


class System(Protocol):
    """A system to compare; what it holds are its attributes."""

    name: str

    def take(self, edges: SimpleEdges) -> None:
        """Make the system's own graph of arrays (not timed)."""

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """What this system has on the graph that it took or read, by the names of QUERIES."""

    def close(self) -> None:
        """Forget everything."""
        vars(self).clear()


class TextSystem(System, Protocol):
    """A system that reads text, too."""

    def read(self, text: Path, vertices: int) -> None:
        """Read an edge list until algorithms can run (timed)."""

    def read_weights(self, text: Path) -> None:
        """Read the same edges with a third column of weights, for SSSP (not timed)."""


def package(name: str) -> Any:
    """A package that Penstock does not need, without types."""
    return importlib.import_module(name)


def marked(count: int, vertices: Iterable[int]) -> Values:
    """1 for these vertices, else 0."""
    found = np.zeros(count)
    found[np.asarray(list(vertices), dtype=np.int64)] = 1
    return found
