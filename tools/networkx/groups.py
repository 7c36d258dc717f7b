"""What connects a graph: components – weak, strong, biconnected –, communities, bridges, a spanning forest, isolates.

Groups come in the order of their first nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.tools.networkx.held import Call, Node, networkx

COUNTING_BYTES = 64 << 20
"""Memory for counters of components."""


def parts(call: Call, **given: Any) -> Iterator[Set[Node]]:
    """The nodes of each group that the program names."""
    return map(call.graph.members, _groups(call.found(**given)))


def count(call: Call) -> int:
    """How many groups there are."""
    from penstock.storage.results.group_counts import count_groups

    return count_groups(call.found(), 0, COUNTING_BYTES).groups


def is_one(call: Call) -> bool:
    """Whether there is one group. Raises NetworkXPointlessConcept without any vertex."""
    if len(call.graph) == 0:
        raise networkx().NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    labels = call.found()
    return bool(np.all(labels == labels[0]))


def part_of_node(call: Call) -> Set[Node]:
    """The group of the node `n`. Raises KeyError for a node that does not exist."""
    vertex = call.graph.find(call["n"])
    if vertex is None:
        raise KeyError(call["n"])
    labels = call.found()
    return call.graph.members(np.flatnonzero(labels == labels[vertex]))


def articulation_points(call: Call) -> Iterator[Node]:
    """In the order of the nodes."""
    yield from call.graph.members(np.flatnonzero(call.found()))


def isolates(call: Call) -> Iterator[Node]:
    """The nodes without edges."""
    return iter(call.graph.members(np.flatnonzero(call.found() == 0)))


def number_of_isolates(call: Call) -> int:
    """How many nodes have no edges."""
    return int(np.count_nonzero(call.found() == 0))


def leiden_communities(call: Call) -> list[Set[Node]]:
    """Of all levels; networkx leaves them to backends."""
    if call["max_level"] is not None and call["max_level"] <= 0:
        raise ValueError("max_level argument must be a positive integer or None")
    return list(parts(call, seed=networkx().utils.create_py_random_state(call["seed"]).getrandbits(31)))


def bridges(call: Call) -> Iterator[tuple[Node, Node]]:
    """Pairs of nodes, the first one first, in the order of the nodes."""
    yield from zip(*map(call.graph.of, _bridges(call)), strict=True)


def has_bridges(call: Call) -> bool:
    """Whether there are any."""
    return len(_bridges(call)[0]) > 0


def _bridges(call: Call) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both ends of every bridge, smaller vertices first, ascending; with a root only of its component."""
    within: Any = True
    if call["root"] is not None:
        vertex = call.vertex(call["root"])
        labels = call.run("wcc").numbers("component")[0]
        within = labels == labels[vertex]
    result = call.run("bridges")
    ends = np.flatnonzero(result.reached("bridge_to") & within)
    others = result.numbers("bridge_to")[0][ends]
    low, high = np.minimum(ends, others), np.maximum(ends, others)
    order = np.lexsort((high, low))
    return low[order], high[order]


def minimum_spanning_edges(call: Call) -> Iterator[tuple[Any, ...]]:
    """Lightest first; with `data` an edge has its weight alone."""
    if call["algorithm"] not in ("kruskal", "prim", "boruvka", "borůvka"):
        raise ValueError(f"{call['algorithm']} is not a valid choice for an algorithm.")
    graph, result = call.graph, call.run("msf")
    ends = np.flatnonzero(result.reached("parent"))
    others, lengths = (result.numbers(name)[0][ends] for name in ("parent", "weight"))
    low, high = np.minimum(ends, others), np.maximum(ends, others)
    order = np.lexsort((high, low, lengths))
    kind = graph.graph.weight_dtype
    lengths = lengths if kind is None else lengths.astype(np.float64 if kind.kind == "f" else np.int64)
    for u, v, length in zip(graph.of(low[order]), graph.of(high[order]), lengths[order].tolist(), strict=True):
        yield (u, v, {} if kind is None else {call["weight"]: length}) if call["data"] else (u, v)


def biconnected_components(call: Call) -> Iterator[Set[Node]]:
    """The nodes of each."""
    yield from map(call.graph.members, _blocks(call))


def is_biconnected(call: Call) -> bool:
    """Whether there is one that has every node."""
    return len(next(_blocks(call), ())) == len(call.graph) > 0


def _blocks(call: Call) -> Iterator[NDArray[Any]]:
    """The vertices of each biconnected component, ascending."""
    result = call.run("articulation")
    inner = np.flatnonzero(result.reached("top"))
    component, top = (result.numbers(name)[0] for name in ("component", "top"))
    for rows in _groups(component[inner]):
        yield np.sort(np.append(inner[rows], np.int64(top[inner[rows[0]]])))


def _groups(labels: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The places of each label, ascending, in the order of their first ones."""
    order = np.argsort(labels, kind="stable")
    named = labels[order]
    starts = np.flatnonzero(np.concatenate([[True], named[1:] != named[:-1]])) if len(named) else order
    firsts = order[starts]  # sorting is stable: the first vertex of each
    ends = np.append(starts[1:], len(named))
    for part in np.argsort(firsts).tolist():
        yield order[starts[part] : ends[part]]
