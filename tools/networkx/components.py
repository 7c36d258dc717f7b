"""Components – weak, strong, biconnected – and communities, in the order of their first nodes; bridges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.networkx.held import Held, Node, held, networkx, random_of

if TYPE_CHECKING:
    from random import Random

    from numpy.typing import NDArray

# ruff: noqa: N803 networkx calls the graph G

COUNTING_BYTES = 64 << 20
"""Memory for counters of components."""


def connected_components(G: Any, **options: Any) -> Iterator[Set[Node]]:
    """As `networkx.connected_components`."""
    graph = held(G)
    return _parts(graph, _labels(graph, "wcc", options))


def strongly_connected_components(G: Any, **options: Any) -> Iterator[Set[Node]]:
    """As `networkx.strongly_connected_components`, but for the order."""
    graph = held(G)
    return _parts(graph, _labels(graph, "scc", options))


def number_connected_components(G: Any, **options: Any) -> int:
    """As `networkx.number_connected_components`."""
    return _count(_labels(held(G), "wcc", options))


def number_strongly_connected_components(G: Any, **options: Any) -> int:
    """As `networkx.number_strongly_connected_components`."""
    return _count(_labels(held(G), "scc", options))


def is_connected(G: Any, **options: Any) -> bool:
    """As `networkx.is_connected`."""
    return _is_one(held(G), "wcc", options)


def is_strongly_connected(G: Any, **options: Any) -> bool:
    """As `networkx.is_strongly_connected`."""
    return _is_one(held(G), "scc", options)


def node_connected_component(G: Any, n: Node, **options: Any) -> Set[Node]:
    """As `networkx.node_connected_component`. Raises KeyError for a node that does not exist."""
    graph = held(G)
    vertex = graph.find(n)
    if vertex is None:
        raise KeyError(n)
    labels = _labels(graph, "wcc", options)
    return graph.members(np.flatnonzero(labels == labels[vertex]))


def bridges(G: Any, root: Node | None = None, **options: Any) -> Iterator[tuple[Node, Node]]:
    """As `networkx.bridges`: pairs of nodes, the first one first, in the order of the nodes."""
    graph = held(G)
    yield from zip(*map(graph.named, _bridges(graph, root, options)), strict=True)


def has_bridges(G: Any, root: Node | None = None, **options: Any) -> bool:
    """As `networkx.has_bridges`."""
    return len(_bridges(held(G), root, options)[0]) > 0


def _bridges(graph: Held, root: Node | None, options: dict[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both ends of every bridge, smaller vertices first, ascending; root: only of its component."""
    from penstock.tools.networkx.counts import BridgeEnds

    within = None
    if root is not None:
        vertex = graph.vertex(root, f"Root node {root} is not in graph")
        labels = _labels(graph, "wcc", options)
        within = labels == labels[vertex]
    result = graph.run(BridgeEnds(), options)
    ends = np.flatnonzero(result.reached("bridge_to") if within is None else result.reached("bridge_to") & within)
    others = result.fields["bridge_to"][ends]
    low, high = np.minimum(ends, others), np.maximum(ends, others)
    order = np.lexsort((high, low))
    return low[order], high[order]


def articulation_points(G: Any, **options: Any) -> Iterator[Node]:
    """As `networkx.articulation_points`, in the order of the nodes."""
    graph = held(G)
    yield from graph.members(np.flatnonzero(graph.run("articulation", options).fields["articulation"]))


def biconnected_components(G: Any, **options: Any) -> Iterator[Set[Node]]:
    """As `networkx.biconnected_components`, but for the order."""
    graph = held(G)
    for part in _blocks(graph, options):
        yield graph.members(part)


def is_biconnected(G: Any, **options: Any) -> bool:
    """As `networkx.is_biconnected`."""
    graph = held(G)
    blocks = _blocks(graph, options)
    return len(next(blocks, ())) == len(graph) > 0


def _blocks(graph: Held, options: dict[str, Any]) -> Iterator[NDArray[Any]]:
    """The vertices of each biconnected component, ascending."""
    from penstock.tools.networkx.counts import BlockTops

    result = graph.run(BlockTops(), options)
    inner, top = np.flatnonzero(result.reached("top")), result.fields["top"]
    for rows in _groups(result.fields["component"][inner]):
        yield np.sort(np.append(inner[rows], np.int64(top[inner[rows[0]]])))


def leiden_communities(
    G: Any,
    weight: str | None = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Random | None = None,
    **options: Any,
) -> list[Set[Node]]:
    """As `networkx.community.leiden_communities`, which networkx leaves to backends, of all levels."""
    if max_level is not None and max_level <= 0:
        raise ValueError("max_level argument must be a positive integer or None")
    graph = held(G)
    given = {"resolution": resolution, "weight": weight is not None, "seed": random_of(seed).getrandbits(31)}
    return list(_parts(graph, graph.run("leiden", {**given, **options}).fields["community"]))


weakly_connected_components: Callable[..., Iterator[Set[Node]]] = connected_components
number_weakly_connected_components: Callable[..., int] = number_connected_components
is_weakly_connected: Callable[..., bool] = is_connected


def _labels(graph: Held, program: str, options: dict[str, Any]) -> NDArray[Any]:
    """For every vertex what its component is named after."""
    return graph.run(program, options).fields["component"]


def _parts(graph: Held, labels: NDArray[Any]) -> Iterator[Set[Node]]:
    """The vertices of each label."""
    return map(graph.members, _groups(labels))


def _groups(labels: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The places of each label, ascending, in the order of their first ones."""
    order = np.argsort(labels, kind="stable")
    named = labels[order]
    starts = np.flatnonzero(np.concatenate([[True], named[1:] != named[:-1]])) if len(named) else order
    firsts = order[starts]  # sorting is stable: the first vertex of each
    ends = np.append(starts[1:], len(named))
    for part in np.argsort(firsts).tolist():
        yield order[starts[part] : ends[part]]


def _count(labels: NDArray[Any]) -> int:
    from penstock.storage.results.group_counts import count_groups

    return count_groups(labels, 0, COUNTING_BYTES).groups


def _is_one(graph: Held, program: str, options: dict[str, Any]) -> bool:
    """Whether there is one component. Raises NetworkXPointlessConcept without any vertex."""
    if len(graph) == 0:
        raise networkx().NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    labels = _labels(graph, program, options)
    return bool(np.all(labels == labels[0]))
