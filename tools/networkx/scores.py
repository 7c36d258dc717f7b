"""Numbers of nodes and of graphs: centralities, degrees, cores, triangles, and how alike neighbors are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.tools.networkx.held import Call, LeftToNetworkxError, Node, PenstockGraph, networkx
from penstock.tools.networkx.info import NODE, SOURCE
from penstock.tools.networkx.searches import check_lengths

ARNOLDI_STEPS = 20
"""Products with the matrix in one iteration of ARPACK, of which networkx's `max_iter` is the number."""


def pagerank(call: Call) -> Mapping[Node, float]:
    """Raises PowerIterationFailedConvergence, ZeroDivisionError as networkx does."""
    from penstock.engine.programs.pagerank import PageRank

    if len(call.graph) == 0:
        return {}
    program = PageRank(
        tol=len(call.graph) * call["tol"],
        max_iter=call["max_iter"],
        weight=call["weight"] is not None,
        personalization=_shares(call, "personalization", call["personalization"]),
        dangling=_shares(call, "dangling", call["dangling"] or None),
        nstart=_shares(call, "nstart", call["nstart"] or None),
    )
    program.damping, program.non_negative_weights = call["alpha"], False  # any, as networkx takes
    return call.graph.values(_converged(call, program, mode="sync")["rank"])


def _shares(call: Call, name: str, given: Mapping[Node, float] | None) -> NDArray[np.float64] | None:
    """Numbers of nodes as a vector; None without any."""
    if given is None:
        return None
    vector = np.zeros(len(call.graph))
    for node, share in given.items():
        if (vertex := call.graph.find(node)) is not None:
            vector[vertex] = share
    if vector.sum() == 0:
        raise ZeroDivisionError(f"{name} gives no node of the graph a share")
    return vector


def _converged(call: Call, program: Any = None, *, left: str = "", **given: Any) -> Mapping[str, NDArray[Any]]:
    """The answer of iterations. Raises PowerIterationFailedConvergence as networkx does; left: why that goes on."""
    from penstock.engine.programs.katz import DivergedError

    failed = networkx().PowerIterationFailedConvergence(call["max_iter"])
    if call["max_iter"] <= 0:
        raise failed
    if left:
        raise LeftToNetworkxError(left)
    try:
        result = call.run(program, **given)
    except DivergedError as error:
        raise failed from error
    if not result.converged:
        raise failed
    return result.fields


def hits(call: Call) -> tuple[Mapping[Node, float], Mapping[Node, float]]:
    """From vectors of equal values."""
    graph = call.graph
    if len(graph) == 0:
        return {}, {}
    kind = "HITS of a graph without edges, or with negative weights, is left to networkx"
    left = kind if graph.graph.edges == 0 or graph.has_negative_weights() else ""
    fields = _converged(call, left=left, max_iter=call["max_iter"] * ARNOLDI_STEPS)
    return graph.values(fields["hub"]), graph.values(fields["authority"])


def katz_centrality(call: Call) -> Mapping[Node, float]:
    """With one `beta` for all nodes."""
    if len(call.graph) == 0:
        return {}
    return call.graph.values(_converged(call, beta=float(call["beta"]))["katz"])


def eigenvector_centrality(call: Call) -> Mapping[Node, float]:
    """Raises NetworkXPointlessConcept without any node."""
    graph = call.graph
    if len(graph) == 0:
        raise networkx().NetworkXPointlessConcept("cannot compute centrality for the null graph")
    negative = call["weight"] is not None and graph.has_negative_weights()
    left = "eigenvector centrality with negative weights is left to networkx" if negative else ""
    return graph.values(_converged(call, left=left, tol=call["tol"] * len(graph) ** 0.5)["eigenvector"])


def betweenness_centrality(call: Call) -> Mapping[Node, float]:
    """Without weights and end points; of the same `k` nodes that networkx draws."""
    graph, k = call.graph, call["k"]
    if k == 0 < len(graph):
        raise ZeroDivisionError("k is 0: there is no source")
    given: dict[str, Any] = {}
    if k is not None and k != len(graph):
        drawn = networkx().utils.create_py_random_state(call["seed"]).sample(range(len(graph)), k)
        given["source"] = graph.ids(np.array(drawn, np.int64))
    return graph.values(call.found(graph=graph.simple, **given)) if len(graph) else {}


def closeness_centrality(call: Call) -> Any:
    """Of one node a number, of all a mapping."""
    graph, node = call.graph, call["u"]
    if len(graph) == 0 and node is None:
        return {}
    check_lengths(graph, call["distance"])
    if node is None:
        return graph.values(call.found())
    vertex = call.vertex(node, SOURCE if call["distance"] is None else NODE)
    return float(call.found(source=graph.ids(np.array([vertex])))[vertex])


def harmonic_centrality(call: Call) -> Mapping[Node, float]:
    """From all sources; of some nodes one search each."""
    graph = call.graph
    chosen = None if call["nbunch"] is None else np.sort(graph.bunch(call["nbunch"]))
    if len(graph) == 0 or (chosen is not None and len(chosen) == 0):
        return {}
    check_lengths(graph, call["distance"])
    return graph.values(call.found(**({} if chosen is None else {"source": graph.ids(chosen)})), chosen)


def share_of_others(call: Call) -> Mapping[Node, float]:
    """Degrees, divided by the number of other nodes; a self-loop of an undirected graph counts twice."""
    graph = call.graph
    if len(graph) <= 1:
        return graph.values(np.ones(len(graph), np.int64))
    degrees = call.found()
    if not graph.is_directed():
        degrees = degrees + graph.loops(call)
    return graph.values(degrees * (1.0 / (len(graph) - 1.0)))


def core_number(call: Call) -> Mapping[Node, int]:
    """Of a stored graph self-loops do not count, where networkx refuses them."""
    if isinstance(call.graph, PenstockGraph) and call.graph.loops(call).any():
        raise networkx().NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; Consider using "
            "G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return call.graph.values(call.found())


def of_nodes(call: Call) -> Any:
    """Of all nodes, of one or of some."""
    graph, nodes, values = call.graph, call["nodes"], call.found()
    if nodes is not None and (vertex := graph.find(nodes)) is not None:
        return values[vertex].item()
    return graph.values(values, None if nodes is None else graph.bunch(nodes))


def clustering(call: Call) -> Any:
    """As `of_nodes`, with networkx's whole 0."""
    found = of_nodes(call)
    return {node: value or 0 for node, value in found.items()} if isinstance(found, dict) else found or 0


def average_clustering(call: Call) -> float:
    """Of all nodes or of some, and with `count_zeros` of those in no triangle too."""
    graph = call.graph
    chosen = np.arange(len(graph)) if call["nodes"] is None else graph.bunch(call["nodes"])
    values = call.found()
    chosen = chosen if call["count_zeros"] else chosen[values[chosen] != 0]
    average: float = sum(graph.values(values, chosen).values()) / len(chosen)
    return average


def transitivity(call: Call) -> float:
    """The share of pairs of neighbors that are neighbors."""
    from penstock.engine.programs.triangles import CountPairs

    if len(call.graph) == 0:
        return 0
    found = call.run(CountPairs()).fields
    closed, neighbors = int(found["linked"].sum()), found["neighbors"]
    return closed / int((neighbors * (neighbors - 1)).sum()) if closed else 0


def jaccard_coefficient(call: Call) -> Iterator[tuple[Node, Node, float]]:
    """Of given pairs. Options of the call: `host_memory`, `threads`."""
    from penstock.engine.queries.similarity import similarity

    graph, pairs = call.graph, list(call["ebunch"] or ())
    ends = np.array([[call.vertex(node) for node in pair] for pair in pairs], np.int64)
    if not pairs:
        return iter(())
    if graph.loops(call).any():
        raise LeftToNetworkxError("networkx counts a node with a self-loop among its own neighbors")
    ids = graph.ids(ends.ravel())
    scores = similarity(graph.graph, list(zip(ids[::2], ids[1::2], strict=True)), **call.options).scores("jaccard")
    return ((u, v, score) for (u, v), score in zip(pairs, scores.tolist(), strict=True))


def _degrees(call: Call, *sides: str) -> tuple[Mapping[str, Any], list[NDArray[Any]], NDArray[Any]]:
    """Degrees; those of both ends of an edge, on the sides that are asked for; sums of the second along the edges."""
    from penstock.engine.programs.degrees import NeighborSums

    found, directed = call.run().fields, call.graph.is_directed()
    loops = 0 if directed else call.graph.loops(call)
    ends = [found[f"{side}_degree" if directed else "degree"] + loops for side in sides]
    return found, ends, call.run(NeighborSums(ends[1].astype(np.int64))).fields["total"]


def degree_assortativity_coefficient(call: Call) -> float:
    """Of all nodes, without weights."""
    found, (ahead, behind), sums = _degrees(call, call["x"], call["y"])
    leaving, arriving = (found[f"{side}_degree"] for side in ("out", "in"))
    edges = float(leaving.sum(dtype=np.float64))
    if edges == 0:
        return float("nan")
    (mean, spread), (other, width) = _moments(ahead, leaving, edges), _moments(behind, arriving, edges)
    both = float(ahead.astype(np.float64) @ sums) / edges - mean * other
    return both / (spread * width) if spread * width else float("nan")


def _moments(values: NDArray[Any], counts: NDArray[Any], total: float) -> tuple[float, float]:
    """The mean and the standard deviation of values that come so many times each."""
    mean = float(values.astype(np.float64) @ counts) / total
    return mean, float((values - mean) ** 2 @ counts / total) ** 0.5


def average_neighbor_degree(call: Call) -> Mapping[Node, float]:
    """Without weights; of a directed graph along its edges."""
    _, (own, _), sums = _degrees(call, call["source"], call["target"])
    chosen = None if call["nodes"] is None else call.graph.bunch(call["nodes"])
    return call.graph.values(np.where(own == 0, 0.0, sums / np.maximum(own, 1)), chosen)
