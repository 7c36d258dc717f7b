"""The graphs that functions of networkx are called with here: converted from networkx, or stored (`Graph.open`).

Both find the vertex of a node, and turn arrays of vertices into what networkx answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.format.graph import Graph
from penstock.tools.networkx.answers import NamedVertices, VertexNames, VertexPaths, VertexValues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.found_paths import ParentLinks
    from penstock.engine.state.result import Result

Node = Hashable


def networkx() -> Any:
    """The library, which is imported only where one of its classes is needed."""
    import networkx

    return networkx


def random_of(seed: Any) -> Any:
    """What draws: networkx makes one of a seed before it calls."""
    from networkx.utils import create_py_random_state

    return create_py_random_state(seed)


class LeftToNetworkxError(NotImplementedError):
    """A call that networkx goes on with by itself, as its protocol has it."""


class Held(ABC):
    """A graph, and what networkx calls its vertices."""

    graph: Graph

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.graph.directed

    def __len__(self) -> int:
        return self.graph.vertices

    def __contains__(self, node: object) -> bool:
        return self.find(node) is not None

    @abstractmethod
    def find(self, node: object) -> int | None:
        """The vertex of a node, if there is one."""

    @abstractmethod
    def values(self, values: NDArray[Any], order: NDArray[Any] | None = None) -> Mapping[Node, Any]:
        """Values (vertices,) by node; order: vertices that have one, in the order in which they come; None: all."""

    @abstractmethod
    def members(self, vertices: NDArray[Any]) -> Set[Node]:
        """The nodes of some vertices, which ascend."""

    @abstractmethod
    def named(self, vertices: NDArray[Any]) -> list[Node]:
        """The nodes of some vertices, one for each."""

    @abstractmethod
    def paths(self, links: ParentLinks, order: NDArray[Any]) -> Mapping[Node, list[Node]]:
        """The paths to some vertices, in this order, by node."""

    @abstractmethod
    def ids(self, vertices: NDArray[Any]) -> list[Any]:
        """What programs call some vertices."""

    @abstractmethod
    def simple(self) -> Graph:
        """The graph without parallel edges."""

    @abstractmethod
    def loops(self, options: dict[str, Any]) -> NDArray[Any]:
        """How many self-loops every vertex has."""

    def vertex(self, node: Node, message: str) -> int:
        """The vertex of a node. Raises networkx's NodeNotFound with `message`."""
        found = self.find(node)
        if found is None:
            raise networkx().NodeNotFound(message)
        return found

    def bunch(self, nodes: Any) -> NDArray[Any]:
        """The vertices of a node or of several, as `nbunch_iter` of networkx takes them: strangers are left out."""
        if isinstance(nodes, Hashable) and (single := self.find(nodes)) is not None:
            return np.array([single])
        if not isinstance(nodes, Iterable):
            raise networkx().NetworkXError("nbunch is not a node or a sequence of nodes.")
        found = (self.find(node) for node in nodes)
        return np.array(list(dict.fromkeys(vertex for vertex in found if vertex is not None)), np.int64)

    def run(self, program: Any, options: dict[str, Any], graph: Graph | None = None) -> Result:
        """Run a program, on another form of the graph where one is given."""
        from penstock.engine.api import run

        return run(program, graph or self.graph, **options)


class PenstockGraph(Held):
    """A networkx graph as Penstock holds it: `nodes` in networkx's order are its vertices 0 to n-1."""

    __networkx_backend__ = "penstock"

    def __init__(self, nodes: list[Node], graph: Graph, *, multigraph: bool) -> None:
        self.nodes, self.graph = nodes, graph
        self.index = {node: vertex for vertex, node in enumerate(nodes)}
        self._multigraph = multigraph

    def is_multigraph(self) -> bool:
        """Whether parallel edges may exist."""
        return self._multigraph

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def find(self, node: object) -> int | None:
        """Look into the index."""
        return self.index.get(node) if isinstance(node, Hashable) else None

    def values(self, values: NDArray[Any], order: NDArray[Any] | None = None) -> dict[Node, Any]:
        """As a dictionary."""
        if order is None:
            return dict(zip(self.nodes, values.tolist(), strict=True))
        return {self.nodes[vertex]: value for vertex, value in zip(order.tolist(), values[order].tolist(), strict=True)}

    def members(self, vertices: NDArray[Any]) -> set[Node]:
        """As a set."""
        return {self.nodes[vertex] for vertex in vertices.tolist()}

    def named(self, vertices: NDArray[Any]) -> list[Node]:
        """From the list of nodes."""
        return [self.nodes[vertex] for vertex in vertices.tolist()]

    def paths(self, links: ParentLinks, order: NDArray[Any]) -> dict[Node, list[Node]]:
        """As a dictionary."""
        return {
            self.nodes[vertex]: [self.nodes[above] for above in reversed(links.upwards(vertex))]
            for vertex in order.tolist()
        }

    def ids(self, vertices: NDArray[Any]) -> list[int]:
        """Vertices are their own ids."""
        numbers: list[int] = vertices.tolist()
        return numbers

    def simple(self) -> Graph:
        """Itself, unless networkx's is a multigraph."""
        return self._simple if self._multigraph else self.graph

    @cached_property
    def _simple(self) -> Graph:
        from penstock.storage.convert.from_arrays import from_edges

        sources, targets, _ = self.edges()
        return from_edges(sources, targets, vertices=len(self), undirected=not self.graph.directed, dedupe="first")

    def loops(self, options: dict[str, Any]) -> NDArray[Any]:
        """Count them in memory."""
        sources, targets, _ = self.edges()
        return np.bincount(sources[sources == targets], minlength=len(self))

    def edges(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Every edge once: sources, targets, weights."""
        assert self.graph.out.arrays is not None, "a converted graph is in memory"
        neighbors, weights = self.graph.out.arrays
        degrees = self.graph.out.index().degrees(0, len(self))
        sources = np.repeat(np.arange(len(self)), degrees)
        once = np.ones(len(sources), bool) if self.graph.directed else sources <= neighbors
        return sources[once], neighbors[once], None if weights is None else weights[once]


class StoredGraph(Held):
    """A graph as `Graph.open` gives it: nodes are the ids of its input, answers read them as they are walked."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.names = graph, VertexNames(graph)

    def find(self, node: object) -> int | None:
        """Look among the ids."""
        return self.names.find(node)

    def values(self, values: NDArray[Any], order: NDArray[Any] | None = None) -> VertexValues:
        """As a mapping over the array."""
        return VertexValues(self.names, values, order)

    def members(self, vertices: NDArray[Any]) -> NamedVertices:
        """As a set over the array."""
        return NamedVertices(self.names, vertices)

    def named(self, vertices: NDArray[Any]) -> list[Node]:
        """Names, as the input has them."""
        return list(self.names.of(vertices))

    def paths(self, links: ParentLinks, order: NDArray[Any]) -> VertexPaths:
        """As a mapping that follows parents when it is asked."""
        return VertexPaths(self.names, links, order)

    def ids(self, vertices: NDArray[Any]) -> list[int | str]:
        """The ids of the input."""
        return self.names.of(vertices)

    def simple(self) -> Graph:
        """Itself: `--dedupe` of the conversion has removed parallel edges, or they count."""
        return self.graph

    def loops(self, options: dict[str, Any]) -> NDArray[Any]:
        """Count them in a sweep over the edges."""
        from penstock.tools.networkx.counts import CountLoops

        return self.run(CountLoops(weight=False), options).fields["loops"]


def held(graph: Any) -> Held:
    """A graph that a function was called with, in one of the two forms."""
    return StoredGraph(graph) if isinstance(graph, Graph) else graph
