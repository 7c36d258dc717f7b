"""Distances, and what can be reached: functions of networkx by breadth-first search and shortest paths."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from penstock.tools.networkx.held import Held, Node, held, networkx

if TYPE_CHECKING:
    from numpy.typing import NDArray

# ruff: noqa: N803 networkx calls the graph G


def single_source_shortest_path_length(
    G: Any, source: Node, cutoff: float | None = None, **options: Any
) -> Mapping[Node, int]:
    """As `networkx.single_source_shortest_path_length`, nearest first."""
    graph = held(G)
    return _hops(graph, graph.vertex(source, f"Source {source} is not in G"), cutoff, options)


def single_target_shortest_path_length(
    G: Any, target: Node, cutoff: float | None = None, **options: Any
) -> Mapping[Node, int]:
    """As `networkx.single_target_shortest_path_length`, nearest first."""
    graph = held(G)
    return _hops(graph, graph.vertex(target, f"Target {target} is not in G"), cutoff, options, backward=True)


def single_source_dijkstra_path_length(
    G: Any, source: Node, cutoff: float | None = None, weight: str | None = "weight", **options: Any
) -> Mapping[Node, float]:
    """As `networkx.single_source_dijkstra_path_length`, nearest first. Raises ValueError for negative weights."""
    return multi_source_dijkstra_path_length(G, {source}, cutoff, weight, **options)


def multi_source_dijkstra_path_length(
    G: Any, sources: Set[Node], cutoff: float | None = None, weight: str | None = "weight", **options: Any
) -> Mapping[Node, float]:
    """As `networkx.multi_source_dijkstra_path_length`, nearest first. Raises ValueError for negative weights."""
    if not sources:
        raise ValueError("sources must not be empty")
    graph = held(G)
    vertices = [graph.vertex(source, f"Node {source} not found in graph") for source in sources]
    return graph.values(*_weighted(graph, vertices, weight, cutoff, options))


def dijkstra_path_length(G: Any, source: Node, target: Node, weight: str | None = "weight", **options: Any) -> float:
    """As `networkx.dijkstra_path_length`. Raises NetworkXNoPath where there is none."""
    graph = held(G)
    vertex = graph.vertex(source, f"Node {source} not found in graph")
    if source == target:
        return 0
    lengths = graph.values(*_weighted(graph, [vertex], weight, None, options))
    if target not in lengths:
        raise networkx().NetworkXNoPath(f"Node {target} not reachable from {source}")
    length: float = lengths[target]
    return length


def check_method(method: str) -> None:
    """Raise as networkx does for a method of shortest paths that it has not."""
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")


def shortest_path_length(
    G: Any,
    source: Node | None = None,
    target: Node | None = None,
    weight: str | None = None,
    method: str = "dijkstra",
    **options: Any,
) -> Any:
    """As `networkx.shortest_path_length` with a source, a target, or both."""
    check_method(method)
    if source is not None and target is not None:
        return _between(G, source, target, weight, options)
    graph = held(G)
    if source is not None:
        if weight is None:
            return single_source_shortest_path_length(G, source, **options)
        return single_source_dijkstra_path_length(G, source, weight=weight, **options)
    name = "Source" if weight is None else "Node"  # of the reversed graph, whose source the target is
    found = "is not in G" if weight is None else "not found in graph"
    vertex = graph.vertex(target, f"{name} {target} {found}")
    if weight is None:
        return _hops(graph, vertex, None, options, backward=True)
    return graph.values(*_weighted(graph, [vertex], weight, None, options, backward=True))


def _between(G: Any, source: Node, target: Node, weight: str | None, options: dict[str, Any]) -> float:
    """The length of a shortest path from one node to another."""
    if weight is not None:
        return dijkstra_path_length(G, source, target, weight, **options)
    graph = held(G)
    for end, name in ((source, "Source"), (target, "Target")):
        graph.vertex(end, f"{name} {end} is not in G")
    levels = single_source_shortest_path_length(G, source, **options)
    if target not in levels:
        raise networkx().NetworkXNoPath(f"No path between {source} and {target}.")
    return levels[target]


def descendants_at_distance(G: Any, source: Node, distance: int, **options: Any) -> Set[Node]:
    """As `networkx.descendants_at_distance`."""
    graph = held(G)
    vertex = graph.find(source)
    if vertex is None:
        raise networkx().NetworkXError(f"The node {source} is not in the graph.")
    levels, reached = _levels(graph, vertex, options)
    return graph.members(np.flatnonzero(reached & (levels == distance)))


def bfs_layers(G: Any, sources: Any, **options: Any) -> Iterator[list[Node]]:
    """As `networkx.bfs_layers`: the nodes at each distance from the nearest source."""
    graph = held(G)
    given = [sources] if isinstance(sources, Hashable) and sources in graph else list(dict.fromkeys(sources))
    for source in given:
        if source not in graph:
            raise networkx().NetworkXError(f"The node {source} is not in the graph.")
    if not given:
        return
    first = np.array([graph.find(source) for source in given])
    result = graph.run("bfs", {"source": graph.ids(first), "parents": False, **options})
    levels = result.fields["level"]
    order = nearest(levels, result.reached("level"), None, first)
    yield given
    for depth in range(1, int(levels[order[-1]]) + 1):
        start, end = np.searchsorted(levels[order], [depth, depth + 1])
        yield graph.named(order[start:end])


def eccentricity(G: Any, v: Any = None, sp: Any = None, weight: str | None = None, **options: Any) -> Any:
    """As `networkx.eccentricity` of one node or of some, a search for each."""
    graph = held(G)
    found: dict[Node, float] = {}
    for vertex in graph.bunch(v).tolist():
        distances, order = _weighted(graph, [vertex], weight, None, options)
        if len(order) < len(graph):
            _raise_unconnected(graph)
        found[graph.named(np.array([vertex]))[0]] = distances[order[-1]].item()
    return found[v] if isinstance(v, Hashable) and v in graph else found


def diameter(G: Any, e: Any = None, usebounds: bool = False, weight: str | None = None, **options: Any) -> int:
    """As `networkx.diameter` of an undirected graph without weights, from few searches."""
    graph = held(G)
    if len(graph) == 0:
        raise ValueError("a graph without nodes has no diameter")
    if not _levels(graph, 0, options)[1].all():
        _raise_unconnected(graph)
    result = graph.run("diameter", {"k": len(graph), **options})
    return int(result.measures["diameter_at_least"][-1]) if len(graph) > 1 else 0


def _raise_unconnected(graph: Held) -> NoReturn:
    kind = "the digraph is not strongly" if graph.is_directed() else "the graph is not"
    raise networkx().NetworkXError(f"Found infinite path length because {kind} connected")


def has_path(G: Any, source: Node, target: Node, **options: Any) -> bool:
    """As `networkx.has_path`."""
    graph = held(G)
    vertex = graph.vertex(source, f"Source {source} is not in G")
    other = graph.vertex(target, f"Target {target} is not in G")
    return bool(_levels(graph, vertex, options)[1][other])


def descendants(G: Any, source: Node, **options: Any) -> Set[Node]:
    """As `networkx.descendants`: what can be reached from `source`, itself left out."""
    return _kin(G, source, options, backward=False)


def ancestors(G: Any, source: Node, **options: Any) -> Set[Node]:
    """As `networkx.ancestors`: what `source` can be reached from, itself left out."""
    return _kin(G, source, options, backward=True)


def _kin(G: Any, source: Node, options: dict[str, Any], *, backward: bool) -> Set[Node]:
    graph = held(G)
    vertex = graph.find(source)
    if vertex is None:
        kind = "digraph" if graph.is_directed() else "graph"
        raise networkx().NetworkXError(f"The node {source} is not in the {kind}.")
    reached = _levels(graph, vertex, options, backward=backward)[1]
    reached[vertex] = False
    return graph.members(np.flatnonzero(reached))


def _hops(
    graph: Held, vertex: int, cutoff: float | None, options: dict[str, Any], *, backward: bool = False
) -> Mapping[Node, int]:
    """Levels by node, nearest first."""
    levels, reached = _levels(graph, vertex, options, backward=backward)
    return graph.values(levels, nearest(levels, reached, cutoff, np.array([vertex])))


def _levels(
    graph: Held, vertex: int, options: dict[str, Any], *, backward: bool = False
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Hops from a vertex, or to it, and which vertices have any."""
    from penstock.engine.programs.closeness import LevelsFrom, LevelsTo

    result = graph.run(LevelsTo(vertex) if backward else LevelsFrom(vertex), options)
    return result.fields["level"], result.reached("level")


def _weighted(
    graph: Held,
    vertices: Iterable[int],
    weight: str | None,
    cutoff: float | None,
    options: dict[str, Any],
    *,
    backward: bool = False,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Distances from the nearest of some vertices, or to one, and the vertices that have any, nearest first."""
    from penstock.engine.programs.closeness import DistancesTo

    first = np.array(list(vertices), np.int64)
    check_lengths(graph, weight)
    if weight is None or graph.graph.weight_range is None:
        field = "level"
        if len(first) == 1:
            levels, reached = _levels(graph, int(first[0]), options, backward=backward)
            return levels, nearest(levels, reached, cutoff, first)
        result = graph.run("bfs", {"source": graph.ids(first), "parents": False, **options})
    else:
        field = "distance"
        searched = DistancesTo(int(first[0])) if backward else "sssp"
        result = graph.run(searched, options if backward else {"source": graph.ids(first), **options})
    distances = result.fields[field]
    return distances, nearest(distances, result.reached(field), cutoff, first)


def check_lengths(graph: Held, weight: str | None) -> None:
    """Refuse lengths below 0 as networkx does."""
    extent = graph.graph.weight_range
    if weight is not None and extent is not None and extent[0] < 0:
        raise ValueError("Contradictory paths found:", "negative weights?")


def nearest(
    distances: NDArray[Any], reached: NDArray[np.bool_], cutoff: float | None, sources: NDArray[Any]
) -> NDArray[Any]:
    """Vertices that were reached (within a cutoff, of which sources are part anyway), nearest first."""
    if cutoff is not None:
        reached = reached & (distances <= cutoff)
        reached[sources] = True
    found = np.flatnonzero(reached)
    return found[np.argsort(distances[found], kind="stable")]
