"""Cores, triangles and degrees: functions of networkx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.networkx.held import Held, LeftToNetworkxError, Node, PenstockGraph, held, networkx

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


def jaccard_coefficient(
    G: Any, ebunch: Iterable[tuple[Node, Node]] | None = None, **options: Any
) -> Iterator[tuple[Node, Node, float]]:
    """As `networkx.jaccard_coefficient` of given pairs. options: `host_memory`, `threads`."""
    from penstock.engine.similarities.similarity import similarity

    graph = held(G)
    pairs = list(ebunch or ())
    ends = np.array([[graph.vertex(node, f"Node {node} not in G.") for node in pair] for pair in pairs], np.int64)
    if not pairs:
        return iter(())
    if graph.loops(options).any():
        raise LeftToNetworkxError("networkx counts a node with a self-loop among its own neighbors")
    ids = graph.ids(ends.ravel())
    scores = similarity(graph.graph, list(zip(ids[::2], ids[1::2], strict=True)), **options).scores("jaccard")
    return ((u, v, score) for (u, v), score in zip(pairs, scores.tolist(), strict=True))


def minimum_spanning_edges(
    G: Any,
    algorithm: str = "kruskal",
    weight: str = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
    **options: Any,
) -> Iterator[tuple[Any, ...]]:
    """As `networkx.minimum_spanning_edges`, lightest first; with `data` an edge has its weight alone."""
    if algorithm not in ("kruskal", "prim", "boruvka", "borůvka"):
        raise ValueError(f"{algorithm} is not a valid choice for an algorithm.")
    from penstock.tools.networkx.counts import ForestEdges

    graph = held(G)
    result = graph.run(ForestEdges(), options)
    ends, found = np.flatnonzero(result.reached("parent")), result.fields["weight"]
    others, lengths = result.fields["parent"][ends], found[ends]
    low, high = np.minimum(ends, others), np.maximum(ends, others)
    order = np.lexsort((high, low, lengths))
    kind = graph.graph.weight_dtype
    lengths = lengths if kind is None else lengths.astype(np.float64 if kind.kind == "f" else np.int64)
    for u, v, length in zip(graph.named(low[order]), graph.named(high[order]), lengths[order].tolist(), strict=True):
        yield (u, v, {} if kind is None else {weight: length}) if data else (u, v)


def degree_assortativity_coefficient(
    G: Any, x: str = "out", y: str = "in", weight: str | None = None, nodes: Any = None, **options: Any
) -> float:
    """As `networkx.degree_assortativity_coefficient` of all nodes, without weights."""
    from penstock.tools.networkx.counts import NeighborSums

    graph = held(G)
    found = graph.run("degrees", options).fields
    loops = 0 if graph.is_directed() else graph.loops(options)
    ahead, behind = ((found[f"{side}_degree" if graph.is_directed() else "degree"] + loops) for side in (x, y))
    sums = graph.run(NeighborSums(behind.astype(np.int64)), options).fields["total"]
    leaving = found["out_degree"] if graph.is_directed() else found["degree"]
    arriving = found["in_degree"] if graph.is_directed() else leaving
    edges = float(leaving.sum(dtype=np.float64))
    if edges == 0:
        return float("nan")
    moments = [_moments(ahead, leaving, edges), _moments(behind, arriving, edges)]
    (mean, spread), (other, width) = moments
    both = float(ahead.astype(np.float64) @ sums) / edges - mean * other
    return both / (spread * width) if spread * width else float("nan")


def _moments(values: NDArray[Any], counts: NDArray[Any], total: float) -> tuple[float, float]:
    """The mean and the standard deviation of values that come so many times each."""
    mean = float(values.astype(np.float64) @ counts) / total
    return mean, float((values - mean) ** 2 @ counts / total) ** 0.5


def average_neighbor_degree(
    G: Any, source: str = "out", target: str = "out", nodes: Any = None, weight: str | None = None, **options: Any
) -> Mapping[Node, float]:
    """As `networkx.average_neighbor_degree` without weights; of a directed graph along its edges."""
    from penstock.tools.networkx.counts import NeighborSums

    graph = held(G)
    found = graph.run("degrees", options).fields
    loops = 0 if graph.is_directed() else graph.loops(options)
    own, theirs = ((found[f"{side}_degree" if graph.is_directed() else "degree"] + loops) for side in (source, target))
    sums = graph.run(NeighborSums(theirs.astype(np.int64)), options).fields["total"]
    return graph.values(
        np.where(own == 0, 0.0, sums / np.maximum(own, 1)), None if nodes is None else graph.bunch(nodes)
    )


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
