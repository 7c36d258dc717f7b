"""Which calls are left to networkx, and why: numbers in, a sentence out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Call = Mapping[str, Any]
Rule = Callable[[Call], str | None]

SIDES = (("out", "in"), ("out", "out"))
NO_FUNCTION = "weight is a function; give the name of an edge attribute"


def _weights(call: Call) -> str | None:
    return "edges count 1 each here; weight is not supported" if call["weight"] is not None else None


def _betweenness(call: Call) -> str | None:
    return _weights(call) or ("end points are not counted here" if call["endpoints"] else None)


def _undirected(call: Call) -> str | None:
    return "directed graphs have another formula in networkx" if call["G"].is_directed() else None


def _simple(call: Call) -> str | None:
    return "networkx does not define this for multigraphs" if call["G"].is_multigraph() else None


def _clustering(call: Call) -> str | None:
    return _weights(call) or _undirected(call) or _simple(call)


def _transitivity(call: Call) -> str | None:
    return _undirected(call) or _simple(call)


def _hits(call: Call) -> str | None:
    if call["nstart"] is not None:
        return "hits begins with equal values here; nstart is not supported"
    return None if call["normalized"] else "without normalized the scale is that of networkx's solver"


def _katz(call: Call) -> str | None:
    if call["nstart"] is not None or not isinstance(call["beta"], int | float):
        return "one beta for all nodes, and no nstart"
    return "alpha must not be negative here" if call["alpha"] < 0 else None


def _eigenvector(call: Call) -> str | None:
    if call["nstart"] is not None:
        return "all nodes begin alike here; nstart is not supported"
    return _simple(call)


def _harmonic(call: Call) -> str | None:
    return "all nodes are sources here" if call["sources"] is not None else None


def _length(call: Call) -> str | None:
    if call["source"] is None and call["target"] is None:
        return "all pairs would be as many runs as there are nodes; give a source"
    method = call["method"] == "bellman-ford" and call["weight"] is not None
    return "weights are not negative here; bellman-ford is not supported" if method else None


def _path(call: Call) -> str | None:
    if call["source"] is None and call["target"] is not None and call["G"].is_directed():
        return "paths to a target from all nodes would be those of the reversed graph; give a source"
    return _length(call)


def _eccentricity(call: Call) -> str | None:
    if call["v"] is None or call["sp"] is not None:
        return "all nodes would be as many searches as there are nodes; give some, or take the diameter"
    return None


def _diameter(call: Call) -> str | None:
    if call["e"] is not None or call["weight"] is not None:
        return "edges count 1 each here; weight is not supported, and e is not read"
    return _undirected(call)


def _pairs(call: Call) -> str | None:
    return "all pairs without an edge would be the square of the nodes; give pairs" if call["ebunch"] is None else None


def _of_all_nodes(call: Call) -> str | None:
    return "all nodes count here; nodes is not supported" if call["nodes"] is not None else _weights(call)


def _neighbors(call: Call) -> str | None:
    if call["G"].is_directed() and (call["source"], call["target"]) not in SIDES:
        return "degrees are averaged along the edges here: source must be out, and target in or out"
    if not call["G"].is_directed() and (call["source"], call["target"]) != ("out", "out"):
        return "source and target are for directed graphs"
    return _weights(call) or _simple(call)


def _leiden(call: Call) -> str | None:
    level = call["max_level"]
    return "every level is computed here; max_level is not supported" if level is not None and level > 0 else None


LIMITS: Mapping[str, Rule] = {
    "average_clustering": _clustering,
    "average_neighbor_degree": _neighbors,
    "betweenness_centrality": _betweenness,
    "clustering": _clustering,
    "degree_assortativity_coefficient": _of_all_nodes,
    "diameter": _diameter,
    "eccentricity": _eccentricity,
    "eigenvector_centrality": _eigenvector,
    "harmonic_centrality": _harmonic,
    "hits": _hits,
    "jaccard_coefficient": _pairs,
    "katz_centrality": _katz,
    "leiden_communities": _leiden,
    "minimum_spanning_edges": _simple,
    "shortest_path": _path,
    "shortest_path_length": _length,
    "transitivity": _transitivity,
    "triangles": _simple,
}


def reason_against(name: str, call: Call) -> str | None:
    """Why a call is left to networkx, None if it is not. call: all arguments by name."""
    if callable(call.get("weight")) or callable(call.get("distance")):
        return NO_FUNCTION
    rule = LIMITS.get(name)
    return None if rule is None else rule(call)
