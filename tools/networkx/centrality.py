"""Centralities of networkx: PageRank, HITS, Katz, and those by shortest paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.tools.networkx.distances import check_lengths
from penstock.tools.networkx.held import Held, LeftToNetworkxError, Node, held, networkx, random_of

if TYPE_CHECKING:
    from random import Random

    from numpy.typing import NDArray

# ruff: noqa: N803 networkx calls the graph G

ARNOLDI_STEPS = 20
"""Products with the matrix in one iteration of ARPACK, of which networkx's `max_iter` is the number."""


def pagerank(
    G: Any,
    alpha: float = 0.85,
    personalization: Mapping[Node, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Node, float] | None = None,
    weight: str | None = "weight",
    dangling: Mapping[Node, float] | None = None,
    **options: Any,
) -> Mapping[Node, float]:
    """As `networkx.pagerank`. Raises PowerIterationFailedConvergence, ZeroDivisionError as that does."""
    from penstock.engine.programs.pagerank import PageRank

    graph = held(G)
    if len(graph) == 0:
        return {}
    program = PageRank(
        tol=len(graph) * tol,
        max_iter=max_iter,
        personalization=_shares(graph, personalization, "personalization"),
        weight=weight is not None,
        dangling=_shares(graph, dangling or None, "dangling"),
        nstart=_shares(graph, nstart or None, "nstart"),
    )
    program.damping, program.non_negative_weights = alpha, False  # any, as networkx takes
    result = graph.run(program, {"mode": "sync", **options})
    if not result.converged:
        raise networkx().PowerIterationFailedConvergence(max_iter)
    return graph.values(result.fields["rank"])


def _shares(graph: Held, given: Mapping[Node, float] | None, name: str) -> NDArray[np.float64] | None:
    """Numbers of nodes as a vector; None without any."""
    if given is None:
        return None
    vector = np.zeros(len(graph))
    for node, share in given.items():
        if (vertex := graph.find(node)) is not None:
            vector[vertex] = share
    if vector.sum() == 0:
        raise ZeroDivisionError(f"{name} gives no node of the graph a share")
    return vector


def hits(
    G: Any,
    max_iter: int = 100,
    tol: float = 1e-8,
    nstart: Mapping[Node, float] | None = None,
    normalized: bool = True,
    **options: Any,
) -> tuple[Mapping[Node, float], Mapping[Node, float]]:
    """As `networkx.hits`, from vectors of equal values. Raises PowerIterationFailedConvergence as that does."""
    graph = held(G)
    if len(graph) == 0:
        return {}, {}
    if max_iter <= 0:
        raise networkx().PowerIterationFailedConvergence(max_iter)
    extent = graph.graph.weight_range
    if graph.graph.edges == 0 or (extent is not None and extent[0] < 0):
        raise LeftToNetworkxError("HITS of a graph without edges, or with negative weights, is left to networkx")
    result = graph.run("hits", {"max_iter": max_iter * ARNOLDI_STEPS, "tol": tol, **options})
    if not result.converged:
        raise networkx().PowerIterationFailedConvergence(max_iter)
    return graph.values(result.fields["hub"]), graph.values(result.fields["authority"])


def katz_centrality(
    G: Any,
    alpha: float = 0.1,
    beta: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-6,
    nstart: Mapping[Node, float] | None = None,
    normalized: bool = True,
    weight: str | None = None,
    **options: Any,
) -> Mapping[Node, float]:
    """As `networkx.katz_centrality`. Raises PowerIterationFailedConvergence as that does."""
    from penstock.engine.programs.katz import DivergedError

    graph = held(G)
    if len(graph) == 0:
        return {}
    failed = networkx().PowerIterationFailedConvergence(max_iter)
    if max_iter <= 0:
        raise failed
    given = {"alpha": alpha, "beta": float(beta), "max_iter": max_iter, "tol": tol, "normalized": normalized}
    try:
        result = graph.run("katz", {**given, "weight": weight is not None, **options})
    except DivergedError as error:
        raise failed from error
    if not result.converged:
        raise failed
    return graph.values(result.fields["katz"])


def eigenvector_centrality(
    G: Any,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Node, float] | None = None,
    weight: str | None = None,
    **options: Any,
) -> Mapping[Node, float]:
    """As `networkx.eigenvector_centrality`. Raises PowerIterationFailedConvergence and NetworkXPointlessConcept so."""
    graph = held(G)
    if len(graph) == 0:
        raise networkx().NetworkXPointlessConcept("cannot compute centrality for the null graph")
    failed = networkx().PowerIterationFailedConvergence(max_iter)
    if max_iter <= 0:
        raise failed
    extent = graph.graph.weight_range if weight is not None else None
    if extent is not None and extent[0] < 0:
        raise LeftToNetworkxError("eigenvector centrality with negative weights is left to networkx")
    given = {"max_iter": max_iter, "tol": tol * len(graph) ** 0.5, "weight": weight is not None}
    result = graph.run("eigenvector", {**given, **options})
    if not result.converged:
        raise failed
    return graph.values(result.fields["eigenvector"])


def betweenness_centrality(
    G: Any,
    k: int | None = None,
    normalized: bool = True,
    weight: str | None = None,
    endpoints: bool = False,
    seed: Random | None = None,
    **options: Any,
) -> Mapping[Node, float]:
    """As `networkx.betweenness_centrality` without weights and endpoints; it draws the same `k` nodes."""
    graph = held(G)
    if k == 0 < len(graph):
        raise ZeroDivisionError("k is 0: there is no source")
    if k is not None and k != len(graph):
        drawn = np.array(random_of(seed).sample(range(len(graph)), k), np.int64)
        options = {"source": graph.ids(drawn), **options}
    if len(graph) == 0:
        return {}
    result = graph.run("betweenness", {"normalized": normalized, **options}, graph.simple())
    return graph.values(result.fields["betweenness"])


def closeness_centrality(
    G: Any, u: Node | None = None, distance: str | None = None, wf_improved: bool = True, **options: Any
) -> Any:
    """As `networkx.closeness_centrality`: of one node a number, of all a dictionary."""
    graph = held(G)
    if len(graph) == 0 and u is None:
        return {}
    check_lengths(graph, distance)
    given: dict[str, Any] = {"wf_improved": wf_improved, "weight": distance is not None}
    if u is None:
        return graph.values(graph.run("closeness", {**given, **options}).fields["closeness"])
    name, found = ("Source", "is not in G") if distance is None else ("Node", "not found in graph")
    vertex = graph.vertex(u, f"{name} {u} {found}")
    given["source"] = graph.ids(np.array([vertex]))
    return float(graph.run("closeness", {**given, **options}).fields["closeness"][vertex])


def harmonic_centrality(
    G: Any, nbunch: Any = None, distance: str | None = None, sources: Any = None, **options: Any
) -> Mapping[Node, float]:
    """As `networkx.harmonic_centrality`, from all sources; of some nodes one search each."""
    graph = held(G)
    chosen = None if nbunch is None else np.sort(graph.bunch(nbunch))
    if len(graph) == 0 or (chosen is not None and len(chosen) == 0):
        return {}
    check_lengths(graph, distance)
    given: dict[str, Any] = {"weight": distance is not None}
    if chosen is not None:
        given["source"] = graph.ids(chosen)
    return graph.values(graph.run("harmonic", {**given, **options}).fields["harmonic"], chosen)
