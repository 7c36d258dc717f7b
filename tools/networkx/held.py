"""The graphs that functions of networkx are called with here, stored (`Graph.open`) or converted from networkx; a call.

Both kinds find the vertex of a node, and turn arrays of vertices into what networkx answers.
"""

from __future__ import annotations

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
    from penstock.tools.networkx.info import Absent, Function

Node = Hashable


def networkx() -> Any:
    """The library, which is imported only where one of its classes is needed."""
    import networkx

    return networkx


class LeftToNetworkxError(NotImplementedError):
    """A call that networkx goes on with by itself, as its protocol has it."""


class StoredGraph(VertexNames):
    """A graph as `Graph.open` gives it: nodes are the ids of its input, answers read them as they are walked."""

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.graph.directed

    def __len__(self) -> int:
        return self.graph.vertices

    def __contains__(self, node: object) -> bool:
        return self.find(node) is not None

    def has_negative_weights(self) -> bool:
        """Whether any weight is below 0."""
        extent = self.graph.weight_range
        return extent is not None and extent[0] < 0

    def values(self, values: NDArray[Any], order: NDArray[Any] | None = None) -> Mapping[Node, Any]:
        """Values (vertices,) by node; order: vertices that have one, in the order in which they come; None: all."""
        return VertexValues(self, values, order)

    def members(self, vertices: NDArray[Any]) -> Set[Node]:
        """The nodes of some vertices, which ascend."""
        return NamedVertices(self, vertices)

    def paths(self, links: ParentLinks, order: NDArray[Any]) -> Mapping[Node, list[Node]]:
        """The paths to some vertices, in this order, by node."""
        return VertexPaths(self, links, order)

    def ids(self, vertices: NDArray[Any]) -> list[Any]:
        """What programs call some vertices."""
        return VertexNames.of(self, vertices)

    @property
    def simple(self) -> Graph:
        """The graph without parallel edges: `--dedupe` of the conversion has removed them, or they count."""
        return self.graph

    def loops(self, call: Call) -> NDArray[Any]:
        """How many self-loops every vertex has, by a sweep over the edges."""
        from penstock.engine.programs.degrees import CountLoops

        return call.run(CountLoops(weight=False)).fields["loops"]

    def bunch(self, nodes: Any) -> NDArray[Any]:
        """The vertices of a node or of several, as `nbunch_iter` of networkx takes them: strangers are left out."""
        if isinstance(nodes, Hashable) and (single := self.find(nodes)) is not None:
            return np.array([single])
        if not isinstance(nodes, Iterable):
            raise networkx().NetworkXError("nbunch is not a node or a sequence of nodes.")
        found = (self.find(node) for node in nodes)
        return np.array(list(dict.fromkeys(vertex for vertex in found if vertex is not None)), np.int64)


class PenstockGraph(StoredGraph):
    """A networkx graph as Penstock holds it: `nodes` in networkx's order are its vertices 0 to n-1."""

    __networkx_backend__ = "penstock"

    def __init__(self, nodes: list[Node], graph: Graph, *, multigraph: bool) -> None:
        super().__init__(graph)
        self.nodes, self._multigraph = nodes, multigraph
        self.index = {node: vertex for vertex, node in enumerate(nodes)}

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
        return dict(zip(self.of(order), values[order].tolist(), strict=True))

    def members(self, vertices: NDArray[Any]) -> set[Node]:
        """As a set."""
        return set(self.of(vertices))

    def of(self, vertices: NDArray[Any]) -> list[Any]:
        """From the list of nodes."""
        return [self.nodes[vertex] for vertex in vertices.tolist()]

    def paths(self, links: ParentLinks, order: NDArray[Any]) -> dict[Node, list[Node]]:
        """As a dictionary."""
        ends = zip(self.of(order), order.tolist(), strict=True)
        return {node: [self.nodes[above] for above in reversed(links.upwards(vertex))] for node, vertex in ends}

    @cached_property
    def simple(self) -> Graph:
        """Itself, unless networkx's is a multigraph."""
        from penstock.storage.convert.from_arrays import from_edges

        if not self._multigraph:
            return self.graph
        sources, targets, _ = self.edges()
        return from_edges(sources, targets, vertices=len(self), undirected=not self.graph.directed, dedupe="first")

    def loops(self, call: Call) -> NDArray[Any]:
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


class Call:
    """A call of a function of the table: its graph, its arguments by name, and options of the run."""

    def __init__(self, function: Function, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.function, self.arguments, self.options = function, arguments, options
        graph = arguments["G"]
        self.graph: StoredGraph = StoredGraph(graph) if isinstance(graph, Graph) else graph

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def vertex(self, node: Node, absent: Absent | None = None) -> int:
        """The vertex of a node. Raises what the table says, or `absent`, where there is none."""
        found = self.graph.find(node)
        if found is None:
            error, text = absent or self.function.absent
            kind = "digraph" if self.graph.is_directed() else "graph"
            raise getattr(networkx(), error)(text.format(node, kind=kind))
        return found

    def run(self, program: Any = None, graph: Graph | None = None, **given: Any) -> Result:
        """Run the function's program, or another, with what the table passes on; options of the caller come first."""
        from penstock.engine.api import run

        if program is None:
            program = self.function.program
            passed = {name: self[name] for name in self.function.passed.split()}
            for name in {"weight", "distance"} & passed.keys():
                passed["weight"] = passed.pop(name) is not None
            given = passed | given
        return run(program, graph or self.graph.graph, **{**given, **self.options})

    def found(self, **given: Any) -> NDArray[Any]:
        """The field of the answer that the table names; vertices as internal ids."""
        return np.asarray(self.run(**given).numbers(self.function.field)[0])
