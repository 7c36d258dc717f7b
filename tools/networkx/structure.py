"""Cores, triangles and degrees: functions of networkx."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.networkx.held import Held, Node, PenstockGraph, held, networkx

if TYPE_CHECKING:
    from numpy.typing import NDArray

# ruff: noqa: N803 networkx calls the graph G


def core_number(G: Any, **options: Any) -> Mapping[Node, int]:
    """As `networkx.core_number`; of a stored graph self-loops do not count, where networkx refuses them."""
    graph = held(G)
    if isinstance(graph, PenstockGraph) and graph.loops(options).any():
        raise networkx().NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; Consider using "
            "G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return graph.values(graph.run("coreness", options).fields["core"])


def triangles(G: Any, nodes: Any = None, **options: Any) -> Any:
    """As `networkx.triangles`: of one node a number, else a dictionary."""
    graph = held(G)
    return _of_nodes(graph, graph.run("triangles", options).fields["triangles"], nodes)


def clustering(G: Any, nodes: Any = None, weight: str | None = None, **options: Any) -> Any:
    """As `networkx.clustering` of an undirected graph, without weights."""
    graph = held(G)
    found = _of_nodes(graph, graph.run("lcc", options).fields["lcc"], nodes)
    return {node: value or 0 for node, value in found.items()} if isinstance(found, dict) else found or 0


def average_clustering(
    G: Any, nodes: Any = None, weight: str | None = None, count_zeros: bool = True, **options: Any
) -> float:
    """As `networkx.average_clustering` of an undirected graph, without weights."""
    graph = held(G)
    chosen = None if nodes is None else graph.bunch(nodes)
    values = graph.run("lcc", options).fields["lcc"]
    chosen = np.arange(len(values)) if chosen is None else chosen
    chosen = chosen if count_zeros else chosen[values[chosen] != 0]
    average: float = sum(graph.values(values, chosen).values()) / len(chosen)
    return average


def transitivity(G: Any, **options: Any) -> float:
    """As `networkx.transitivity` of an undirected graph."""
    from penstock.tools.networkx.counts import CountPairs

    graph = held(G)
    if len(graph) == 0:
        return 0
    result = graph.run(CountPairs(), options)
    closed, neighbors = int(result.fields["linked"].sum()), result.fields["neighbors"]
    return closed / int((neighbors * (neighbors - 1)).sum()) if closed else 0


def _of_nodes(graph: Held, values: NDArray[Any], nodes: Any) -> Any:
    """Values of all nodes, of one or of some."""
    if nodes is None:
        return graph.values(values)
    if (vertex := graph.find(nodes)) is not None:
        return values[vertex].item()
    return graph.values(values, graph.bunch(nodes))


def degree_centrality(G: Any, **options: Any) -> Mapping[Node, float]:
    """As `networkx.degree_centrality`."""
    return _share_of_others(held(G), "degree", options)


def in_degree_centrality(G: Any, **options: Any) -> Mapping[Node, float]:
    """As `networkx.in_degree_centrality`."""
    return _share_of_others(held(G), "in_degree", options)


def out_degree_centrality(G: Any, **options: Any) -> Mapping[Node, float]:
    """As `networkx.out_degree_centrality`."""
    return _share_of_others(held(G), "out_degree", options)


def isolates(G: Any, **options: Any) -> Iterator[Node]:
    """As `networkx.isolates`."""
    graph = held(G)
    return iter(graph.members(np.flatnonzero(_degrees(graph, options) == 0)))


def number_of_isolates(G: Any, **options: Any) -> int:
    """As `networkx.number_of_isolates`."""
    return int(np.count_nonzero(_degrees(held(G), options) == 0))


def _degrees(graph: Held, options: dict[str, Any]) -> NDArray[Any]:
    return graph.run("degrees", options).fields["degree"]


def _share_of_others(graph: Held, field: str, options: dict[str, Any]) -> Mapping[Node, float]:
    """Degrees, divided by the number of other nodes; a self-loop of an undirected graph counts twice."""
    if len(graph) <= 1:
        return graph.values(np.ones(len(graph), np.int64))
    degrees = graph.run("degrees", options).fields[field]
    if not graph.is_directed():
        degrees = degrees + graph.loops(options)
    return graph.values(degrees * (1.0 / (len(graph) - 1.0)))
