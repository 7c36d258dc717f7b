"""Shortest paths: functions of networkx that answer with nodes, not with distances alone.

Of several shortest paths the one is answered on which each node's predecessor is the first possible one in the order of
the nodes. A search with a target ends as soon as its distance is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.networkx.distances import check_lengths, check_method, nearest
from penstock.tools.networkx.held import Held, LeftToNetworkxError, Node, held, networkx

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.found_paths import ParentLinks

# ruff: noqa: N803 networkx calls the graph G


def shortest_path(
    G: Any,
    source: Node | None = None,
    target: Node | None = None,
    weight: str | None = None,
    method: str = "dijkstra",
    **options: Any,
) -> Any:
    """As `networkx.shortest_path` with a source, a target (of an undirected graph), or both."""
    check_method(method)
    if source is None:
        found = _from_one(G, target, weight, options)
        return {node: path[::-1] for node, path in found.items()}
    if target is None:
        return _from_one(G, source, weight, options)
    if weight is None:
        return bidirectional_shortest_path(G, source, target, **options)
    return bidirectional_dijkstra(G, source, target, weight, **options)[1]


def _from_one(G: Any, source: Node | None, weight: str | None, options: dict[str, Any]) -> Mapping[Node, list[Node]]:
    if weight is None:
        return single_source_shortest_path(G, source, **options)
    return single_source_dijkstra_path(G, source, weight=weight, **options)


def single_source_shortest_path(
    G: Any, source: Node, cutoff: float | None = None, **options: Any
) -> Mapping[Node, list[Node]]:
    """As `networkx.single_source_shortest_path`, nearest first."""
    graph = held(G)
    first = np.array([graph.vertex(source, f"Source {source} not in G")])
    return _paths(graph, first, None, cutoff, options)[1]


def bidirectional_shortest_path(G: Any, source: Node, target: Node, **options: Any) -> list[Node]:
    """As `networkx.bidirectional_shortest_path`. Raises NetworkXNoPath where there is none."""
    return _between(G, source, target, None, options)[1]


def bidirectional_dijkstra(
    G: Any, source: Node, target: Node, weight: str | None = "weight", **options: Any
) -> tuple[float, list[Node]]:
    """As `networkx.bidirectional_dijkstra`. Raises NetworkXNoPath where there is no path."""
    return _between(G, source, target, weight, options)


def dijkstra_path(G: Any, source: Node, target: Node, weight: str | None = "weight", **options: Any) -> list[Node]:
    """As `networkx.dijkstra_path`. Raises NetworkXNoPath where there is none."""
    path: list[Node] = single_source_dijkstra(G, source, target, None, weight, **options)[1]
    return path


def single_source_dijkstra(
    G: Any,
    source: Node,
    target: Node | None = None,
    cutoff: float | None = None,
    weight: str | None = "weight",
    **options: Any,
) -> tuple[Any, Any]:
    """As `networkx.single_source_dijkstra`: lengths and paths, or those of the target."""
    return multi_source_dijkstra(G, {source}, target, cutoff, weight, **options)


def single_source_dijkstra_path(
    G: Any, source: Node, cutoff: float | None = None, weight: str | None = "weight", **options: Any
) -> Mapping[Node, list[Node]]:
    """As `networkx.single_source_dijkstra_path`, nearest first."""
    return multi_source_dijkstra_path(G, {source}, cutoff, weight, **options)


def multi_source_dijkstra_path(
    G: Any, sources: Collection[Node], cutoff: float | None = None, weight: str | None = "weight", **options: Any
) -> Mapping[Node, list[Node]]:
    """As `networkx.multi_source_dijkstra_path`, nearest first."""
    paths: Mapping[Node, list[Node]] = multi_source_dijkstra(G, sources, None, cutoff, weight, **options)[1]
    return paths


def multi_source_dijkstra(
    G: Any,
    sources: Collection[Node],
    target: Node | None = None,
    cutoff: float | None = None,
    weight: str | None = "weight",
    **options: Any,
) -> tuple[Any, Any]:
    """As `networkx.multi_source_dijkstra`: lengths and paths from the nearest source, or those of the target."""
    if not sources:
        raise ValueError("sources must not be empty")
    graph = held(G)
    first = np.array([graph.vertex(source, f"Node {source} not found in graph") for source in sources])
    if target is None:
        return _paths(graph, first, weight, cutoff, options)
    if target in sources:
        return 0, [target]
    end = graph.find(target)
    found = None if end is None else _path(graph, first, end, weight, options)
    if found is None or (cutoff is not None and found[0] > cutoff):
        raise networkx().NetworkXNoPath(f"No path to {target}.")
    return found


def _between(
    G: Any, source: Node, target: Node, weight: str | None, options: dict[str, Any]
) -> tuple[float, list[Node]]:
    """The length of a shortest path from one node to another, and the path."""
    graph = held(G)
    first = graph.vertex(source, f"Source {source} is not in G")
    last = graph.vertex(target, f"Target {target} is not in G")
    if first == last:
        return 0, [source]
    found = _path(graph, np.array([first]), last, weight, options)
    if found is None:
        raise networkx().NetworkXNoPath(f"No path between {source} and {target}.")
    return found


def _path(
    graph: Held, first: NDArray[Any], last: int, weight: str | None, options: dict[str, Any]
) -> tuple[float, list[Node]] | None:
    """The length of a shortest path to one vertex, and the path; None: there is none."""
    extent = graph.graph.weight_range
    if weight is not None and extent is not None and extent[0] < 0:
        raise LeftToNetworkxError("networkx may find the target before it meets a weight below 0")
    ends = {"target": graph.ids(np.array([last])), **options}
    distances, reached, links = _searched(graph, first, weight, ends)
    if not reached[last]:
        return None
    return distances[last].item(), graph.named(np.array(links.upwards(last)[::-1]))


def _paths(
    graph: Held, first: NDArray[Any], weight: str | None, cutoff: float | None, options: dict[str, Any]
) -> tuple[Mapping[Node, Any], Mapping[Node, list[Node]]]:
    """Lengths and paths to all vertices that are reached, nearest first."""
    distances, reached, links = _searched(graph, first, weight, {"parents": True, **options})
    order = nearest(distances, reached, cutoff, first)
    return graph.values(distances, order), graph.paths(links, order)


def _searched(
    graph: Held, first: NDArray[Any], weight: str | None, options: dict[str, Any]
) -> tuple[NDArray[Any], NDArray[np.bool_], ParentLinks]:
    """Distances from the nearest of some vertices, who has any, and the parents on the way."""
    from penstock.engine.state.found_paths import ParentLinks

    check_lengths(graph, weight)
    weighted = weight is not None and graph.graph.weight_range is not None
    program, field = ("sssp", "distance") if weighted else ("bfs", "level")
    result = graph.run(program, {"source": graph.ids(first), **options})
    return result.fields[field], result.reached(field), ParentLinks(graph.graph, result.fields["parent"])
