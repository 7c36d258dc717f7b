"""The systems of a comparison: the graph that they get, and what each of them has to offer.

The graph is made simple first (of parallel edges the first, no self-loops), because systems differ in what they make of
the others; it gets weights where it has none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.tools.bench.graphs import in_memory

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.storage.format.graph import Graph

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


@dataclass(frozen=True)
class Implementation:
    """A system's own algorithm for a query: `run` is timed; `answer` turns its result into an array.

    Answers: levels and distances as float64 with infinity where not reached, ranks as float64,
    components as any labels; one value per vertex.
    """

    run: Callable[[], Any]
    answer: Callable[[Any], Values]


class System(Protocol):
    """A system to compare."""

    name: str

    def take(self, edges: SimpleEdges) -> None:
        """Make the system's own graph of arrays (not timed)."""

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """What this system has on the graph that it took or read, by the names of QUERIES."""

    def close(self) -> None:
        """Free everything."""


class TextSystem(System, Protocol):
    """A system that reads text, too."""

    def read(self, text: Path, vertices: int) -> None:
        """Read an edge list until algorithms can run (timed)."""

    def read_weights(self, text: Path) -> None:
        """Read the same edges with a third column of weights, for SSSP (not timed)."""


class Peer:
    """A system in this process: what it holds are its attributes."""

    def close(self) -> None:
        """Forget them."""
        vars(self).clear()


def package(name: str) -> Any:
    """A package that Penstock does not need, without types."""
    return importlib.import_module(name)


def marked(count: int, vertices: Iterable[int]) -> Values:
    """1 for these vertices, else 0."""
    found = np.zeros(count)
    found[np.asarray(list(vertices), dtype=np.int64)] = 1
    return found
