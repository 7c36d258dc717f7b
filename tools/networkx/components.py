"""Connected components: weakly and strongly, in the order of their first nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.networkx.held import Held, Node, held, networkx

if TYPE_CHECKING:
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


weakly_connected_components: Callable[..., Iterator[Set[Node]]] = connected_components
number_weakly_connected_components: Callable[..., int] = number_connected_components
is_weakly_connected: Callable[..., bool] = is_connected


def _labels(graph: Held, program: str, options: dict[str, Any]) -> NDArray[Any]:
    """For every vertex what its component is named after."""
    return graph.run(program, options).fields["component"]


def _parts(graph: Held, labels: NDArray[Any]) -> Iterator[Set[Node]]:
    """The vertices of each label."""
    order = np.argsort(labels, kind="stable")
    named = labels[order]
    starts = np.flatnonzero(np.concatenate([[True], named[1:] != named[:-1]])) if len(named) else order
    firsts = order[starts]  # sorting is stable: the first vertex of each
    ends = np.append(starts[1:], len(named))
    for part in np.argsort(firsts).tolist():
        yield graph.members(order[starts[part] : ends[part]])


def _count(labels: NDArray[Any]) -> int:
    from penstock.storage.results.group_counts import count_groups

    return count_groups(labels, 0, COUNTING_BYTES).groups


def _is_one(graph: Held, program: str, options: dict[str, Any]) -> bool:
    """Whether there is one component. Raises NetworkXPointlessConcept without any vertex."""
    if len(graph) == 0:
        raise networkx().NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    labels = _labels(graph, program, options)
    return bool(np.all(labels == labels[0]))
