"""The dispatch backend of networkx: `nx.pagerank(G, backend="penstock")`.

networkx finds it by the entry points `networkx.backends` and `networkx.backend_info` and calls it with graphs converted
by `convert_from_nx`, which it keeps (so a graph may have weights that a call does not ask for). Answers have networkx's
keys, rules and exceptions. networkx and the engine are imported only when called. Options of a run may be given beside
the arguments of networkx (`threads=4`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.networkx.info import FUNCTIONS
from penstock.tools.networkx.info import get_info as get_info  # an editable installation may look for it here

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.result import Result
    from penstock.storage.format.graph import Graph

Node = Hashable

_NO_FUNCTION = "weight is a function; give the name of an edge attribute"


class PenstockGraph:
    """A networkx graph as Penstock holds it: ``nodes`` in networkx's order are its vertices 0 to n-1."""

    __networkx_backend__ = "penstock"

    def __init__(self, nodes: list[Node], graph: Graph, *, multigraph: bool) -> None:
        self.nodes, self.graph = nodes, graph
        self.index = {node: vertex for vertex, node in enumerate(nodes)}
        self._multigraph = multigraph

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.graph.directed

    def is_multigraph(self) -> bool:
        """Whether parallel edges may exist."""
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.index

    def vertex(self, node: Node, message: str) -> int:
        """The vertex of a node. Raises networkx's NodeNotFound with ``message``."""
        if node not in self.index:
            raise _networkx().NodeNotFound(message)
        return self.index[node]

    def run(self, program: Any, options: dict[str, Any]) -> Result:
        """Run a program."""
        from penstock.engine.api import run

        return run(program, self.graph, **options)


def convert_from_nx(
    graph: Any, edge_attrs: Mapping[str, Any] | None = None, node_attrs: Any = None, **asked: Any
) -> PenstockGraph:
    """Convert a networkx graph; of ``edge_attrs`` (name: default) the first becomes the weights."""
    from penstock.storage.convert.from_arrays import from_edges

    nodes = list(graph)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    ends = np.fromiter((index[node] for edge in graph.edges() for node in edge[:2]), np.int64).reshape(-1, 2)
    weights = None
    if edge_attrs:
        attribute, default = next(iter(edge_attrs.items()))
        weights = _weights([value for *_, value in graph.edges(data=attribute, default=default)], default)
    made = from_edges(ends, weights=weights, vertices=len(nodes), undirected=not graph.is_directed())
    return PenstockGraph(nodes, made, multigraph=graph.is_multigraph())


def _weights(values: list[Any], default: Any) -> NDArray[Any] | None:
    """Weights as an array; none where all are the 1 that an edge without weight counts."""
    array = np.asarray(values, dtype=None if values else np.int64)
    return None if default == 1 and array.dtype.kind in "iu" and bool((array == 1).all()) else array


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Convert a graph back to networkx; other results are networkx's already."""
    if not isinstance(result, PenstockGraph):
        return result
    nx = _networkx()
    kinds = {
        (True, True): nx.MultiDiGraph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (False, False): nx.Graph,
    }
    made = kinds[result.is_directed(), result.is_multigraph()]()
    made.add_nodes_from(result.nodes)
    sources, targets, weights = _stored(result.graph)
    ends = [(result.nodes[u], result.nodes[v]) for u, v in zip(sources.tolist(), targets.tolist(), strict=True)]
    if weights is None:
        made.add_edges_from(ends)
    else:
        made.add_weighted_edges_from((*pair, weight) for pair, weight in zip(ends, weights.tolist(), strict=True))
    return made


def _stored(graph: Graph) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Every edge once: sources, targets, weights."""
    assert graph.out.arrays is not None, "a converted graph is in memory"
    neighbors, weights = graph.out.arrays
    degrees = graph.out.index().degrees(0, graph.vertices)
    sources = np.repeat(np.arange(graph.vertices), degrees)
    once = np.ones(len(sources), bool) if graph.directed else sources <= neighbors
    return sources[once], neighbors[once], None if weights is None else weights[once]


def can_run(name: str, args: Any, kwargs: Mapping[str, Any]) -> bool | str:
    """Whether a call can be answered, or why not."""
    if callable(kwargs.get("weight")):
        return _NO_FUNCTION
    return name in FUNCTIONS


def pagerank(
    G: PenstockGraph,  # noqa: N803 - networkx calls it so
    alpha: float = 0.85,
    personalization: Mapping[Node, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Node, float] | None = None,
    weight: str | None = "weight",
    dangling: Mapping[Node, float] | None = None,
    **options: Any,
) -> dict[Node, float]:
    """As `networkx.pagerank`. Raises PowerIterationFailedConvergence, ZeroDivisionError as that does."""
    from penstock.engine.programs.pagerank import PageRank

    if len(G) == 0:
        return {}
    program = PageRank(
        tol=len(G) * tol,
        max_iter=max_iter,
        personalization=_shares(G, personalization, "personalization"),
        weight=weight is not None,
        dangling=_shares(G, dangling or None, "dangling"),
        nstart=_shares(G, nstart or None, "nstart"),
    )
    program.damping, program.non_negative_weights = alpha, False  # any, as networkx takes
    result = G.run(program, {"mode": "sync", **options})
    if not result.converged:
        raise _networkx().PowerIterationFailedConvergence(max_iter)
    return dict(zip(G.nodes, result.fields["rank"].tolist(), strict=True))


def _shares(graph: PenstockGraph, given: Mapping[Node, float] | None, name: str) -> NDArray[np.float64] | None:
    """Numbers of nodes as a vector; None without any."""
    if given is None:
        return None
    vector = np.fromiter((given.get(node, 0) for node in graph.nodes), np.float64, len(graph))
    if vector.sum() == 0:
        raise ZeroDivisionError(f"{name} gives no node of the graph a share")
    return vector


def single_source_shortest_path_length(
    G: PenstockGraph,  # noqa: N803
    source: Node,
    cutoff: float | None = None,
    **options: Any,
) -> dict[Node, int]:
    """As `networkx.single_source_shortest_path_length`, nearest first."""
    vertex = G.vertex(source, f"Source {source} is not in G")
    return _distances(G, "bfs", "level", cutoff, source=vertex, **options)


def single_source_dijkstra_path_length(
    G: PenstockGraph,  # noqa: N803
    source: Node,
    cutoff: float | None = None,
    weight: str | None = "weight",
    **options: Any,
) -> dict[Node, float]:
    """As `networkx.single_source_dijkstra_path_length`, nearest first. Raises ValueError for negative weights."""
    if callable(weight):
        raise TypeError(_NO_FUNCTION)
    vertex = G.vertex(source, f"Node {source} not found in graph")
    if weight is None:
        return _distances(G, "bfs", "level", cutoff, source=vertex, **options)
    lowest = G.graph.weight_range
    if lowest is not None and lowest[0] < 0:
        raise ValueError("Contradictory paths found:", "negative weights?")
    return _distances(G, "sssp", "distance", cutoff, source=vertex, **options)


def _distances(graph: PenstockGraph, program: str, field: str, cutoff: float | None, **options: Any) -> dict[Node, Any]:
    """Nodes that were reached (within a cutoff) and how far they are, nearest first."""
    result = graph.run(program, options)
    values, reached = result.fields[field], result.reached(field)
    if cutoff is not None:
        reached = reached & (values <= cutoff)
    found = np.flatnonzero(reached)
    found = found[np.argsort(values[found], kind="stable")]
    return {graph.nodes[vertex]: value for vertex, value in zip(found.tolist(), values[found].tolist(), strict=True)}


def has_path(G: PenstockGraph, source: Node, target: Node, **options: Any) -> bool:  # noqa: N803
    """As `networkx.has_path`."""
    vertex = G.vertex(source, f"Source {source} is not in G")
    other = G.vertex(target, f"Target {target} is not in G")
    return bool(_reached(G, vertex, options)[other])


def descendants(G: PenstockGraph, source: Node, **options: Any) -> set[Node]:  # noqa: N803
    """As `networkx.descendants`: what can be reached from ``source``, itself left out."""
    if source not in G:
        kind = "digraph" if G.is_directed() else "graph"
        raise _networkx().NetworkXError(f"The node {source} is not in the {kind}.")
    vertex = G.index[source]
    return {G.nodes[v] for v in np.flatnonzero(_reached(G, vertex, options)).tolist() if v != vertex}


def _reached(graph: PenstockGraph, source: int, options: dict[str, Any]) -> NDArray[np.bool_]:
    return graph.run("bfs", {"source": source, **options}).reached("level")


def connected_components(G: PenstockGraph, **options: Any) -> Iterator[set[Node]]:  # noqa: N803
    """As `networkx.connected_components`, in the order of their first nodes."""
    labels = _labels(G, options)
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    for part in np.split(order, starts[1:]) if len(order) else []:
        yield {G.nodes[vertex] for vertex in part.tolist()}


def number_connected_components(G: PenstockGraph, **options: Any) -> int:  # noqa: N803
    """As `networkx.number_connected_components`."""
    return len(np.unique(_labels(G, options)))


def is_connected(G: PenstockGraph, **options: Any) -> bool:  # noqa: N803
    """As `networkx.is_connected`."""
    if len(G) == 0:
        raise _networkx().NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return number_connected_components(G, **options) == 1


def _labels(graph: PenstockGraph, options: dict[str, Any]) -> NDArray[np.int64]:
    """For every vertex the first vertex of its component."""
    return graph.run("wcc", options).fields["component"].astype(np.int64)


weakly_connected_components: Callable[..., Iterator[set[Node]]] = connected_components
number_weakly_connected_components: Callable[..., int] = number_connected_components
is_weakly_connected: Callable[..., bool] = is_connected


def _networkx() -> Any:
    import networkx

    return networkx
