"""The graphs that functions of networkx are called with here, stored (`Graph.open`) or converted from networkx; a call.

Both kinds find the vertex of a node, and turn arrays of vertices into what networkx answers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping, Set, ValuesView
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.vertex_ids import VertexFinder, labels_of
from penstock.storage.format.graph import Graph

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.found_paths import ParentLinks
    from penstock.engine.state.result import Result
    from penstock.storage.format.graph import Graph
    from penstock.tools.networkx.info import Absent, Function

BLOCK = 1 << 14
"""Vertices that become Python objects together."""
SHOWN = 5
"""Vertices that a `repr` shows."""


class _Walked:
    """Vertices by name, as far as they are walked. order: of the vertices that are here; None: all `count` of them."""

    def __init__(self, names: StoredGraph, order: NDArray[Any] | None, count: int = 0) -> None:
        self._names, self._order, self._count = names, order, count if order is None else len(order)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Hashable]:
        for vertices in self.blocks():
            yield from self._names.of(vertices)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Vertices in their order."""
        for first in range(0, len(self), BLOCK):
            last = min(first + BLOCK, len(self))
            yield np.arange(first, last) if self._order is None else self._order[first:last]

    def vertex(self, node: Hashable) -> int:
        """The vertex of a name. Raises KeyError for one that is not here."""
        vertex = self._names.find(node)
        if vertex is None or not (self._order is None or (vertex < len(self._present) and self._present[vertex])):
            raise KeyError(node)
        return vertex

    @cached_property
    def _present(self) -> NDArray[np.bool_]:
        assert self._order is not None, "all vertices are present"
        present = np.zeros(int(self._order.max(initial=-1)) + 1, np.bool_)
        present[self._order] = True
        return present

    def _braced(self, some: Iterable[str]) -> str:
        """The first of them."""
        return f"{{{', '.join(islice(some, SHOWN))}{', ...' * (len(self) > SHOWN)}}}"


class VertexValues(_Walked, Mapping[Hashable, Any]):
    """Values of vertices by name. order: vertices that have one, in the order in which they come; None: all."""

    def __init__(self, names: StoredGraph, values: NDArray[Any], order: NDArray[Any] | None = None) -> None:
        super().__init__(names, order, len(values))
        self.array = values

    def __getitem__(self, node: Hashable) -> Any:
        return self.array[self.vertex(node)].item()

    def items(self) -> ItemsView[Hashable, Any]:
        """Names and values, block by block."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """Values, block by block."""
        return _Values(self)

    def __repr__(self) -> str:
        """How many, and the first of them."""
        shown = self._braced(f"{name!r}: {value!r}" for name, value in self.items())
        return f"<values of {len(self):,} vertices: {shown}>"


class _Items(ItemsView[Hashable, Any]):
    _mapping: VertexValues

    def __iter__(self) -> Iterator[tuple[Hashable, Any]]:
        return zip(self._mapping, self._mapping.values(), strict=True)


class _Values(ValuesView[Any]):
    _mapping: VertexValues

    def __iter__(self) -> Iterator[Any]:
        for vertices in self._mapping.blocks():
            yield from self._mapping.array[vertices].tolist()


class VertexPaths(_Walked, Mapping[Hashable, list[Hashable]]):
    """Paths to vertices by name, from the source to each, put together when one is asked for. order: of the mapping."""

    def __init__(self, names: StoredGraph, links: ParentLinks, order: NDArray[Any]) -> None:
        super().__init__(names, order)
        self._links = links

    def __getitem__(self, node: Hashable) -> list[Hashable]:
        return list(self._names.of(np.array(self._links.upwards(self.vertex(node))[::-1])))

    def __repr__(self) -> str:
        """How many, and the first of their ends."""
        return f"<paths to {len(self):,} vertices: {', '.join(map(repr, islice(self, SHOWN)))}>"


class NamedVertices(_Walked, Set[Hashable]):
    """Vertices by name. vertices: ascending."""

    def __init__(self, names: StoredGraph, vertices: NDArray[Any]) -> None:
        super().__init__(names, vertices)
        self._vertices = vertices

    @classmethod
    def _from_iterable(cls, members: Any) -> Any:
        """What set operations make."""
        return set(members)

    def __contains__(self, node: object) -> bool:
        vertex = self._names.find(node)
        if vertex is None:
            return False
        at = int(np.searchsorted(self._vertices, vertex))
        return at < len(self) and int(self._vertices[at]) == vertex

    def __repr__(self) -> str:
        """How many, and the first of them."""
        return f"<{len(self):,} vertices: {self._braced(map(repr, self))}>"


Node = Hashable


def networkx() -> Any:
    """The library, which is imported only where one of its classes is needed."""
    import networkx

    return networkx


class LeftToNetworkxError(NotImplementedError):
    """A call that networkx goes on with by itself, as its protocol has it."""


class StoredGraph:
    """A graph as `Graph.open` gives it: nodes are the ids of its input, answers read them as they are walked."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self._finder = graph, VertexFinder(graph)

    def of(self, vertices: NDArray[Any]) -> list[Any]:
        """The ids of some vertices (bipartite: `"source:7"`); of a file only their chunks are read."""
        return labels_of(self.graph, vertices)

    def find(self, node: object) -> int | None:
        """The vertex of a name, if there is one.

        The first look-up of a graph with ids of its own reads them: 4 to 8 bytes a vertex, of strings their text and
        16, and 8 more where they do not ascend. One id is looked for here, since
        `VertexFinder`, which finds many at once, takes 1.1 to 1.8 times as long for one (6.2 and 11.9 us).
        """
        if not isinstance(node, int | np.integer | str):
            return None
        if self.graph.original is None or self.graph.left is not None:
            found = int(self._finder.found([node])[0])  # type: ignore[list-item]
            return None if found < 0 else found
        ids, order = self._sorted
        if isinstance(node, str) != (ids.dtype.kind == "T"):
            return None
        wanted: Any = node
        places = range(len(ids))
        at = bisect_left(places, wanted, key=lambda place: ids[place if order is None else order[place]])
        if at == len(ids):
            return None
        vertex = at if order is None else int(order[at])
        return vertex if ids[vertex] == node else None

    @cached_property
    def _sorted(self) -> tuple[NDArray[Any], NDArray[np.intp] | None]:
        """All ids, and the vertices by ascending id where that is another order."""
        ids = self.graph.original_ids()
        assert ids is not None, "numbers of vertices are not looked up"
        rising = self.graph.reordered is False or bool(np.all(ids[1:] >= ids[:-1]))
        return ids, None if rising else np.argsort(ids, kind="stable")

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
        return StoredGraph.of(self, vertices)

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
