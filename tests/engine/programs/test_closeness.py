"""Closeness and harmonic centrality: of all vertices, of given ones, estimated with an error, resumed."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.programs.closeness import Closeness, Harmonic
from penstock.storage.base.errors import InputError
from support.catalogue_oracles import distances
from support.graphs import in_memory, skewed, weighed
from support.oracles import EdgeList

VERTICES, PIVOTS = 24, 8


def edges_of(*, directed: bool, weights: str | None) -> EdgeList:
    """Without parallel edges, of which networkx has one weight."""
    ends = np.unique(np.sort(skewed(VERTICES, 60, 2), axis=0), axis=1)
    edges = EdgeList(VERTICES, ends[0], ends[1], None, directed)
    return edges if weights is None else weighed(edges, weights)


def in_networkx(edges: EdgeList) -> Any:
    graph = (nx.DiGraph if edges.directed else nx.Graph)()
    graph.add_nodes_from(range(VERTICES))
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    ends = zip(edges.sources.tolist(), edges.targets.tolist(), weights.tolist(), strict=True)
    graph.add_weighted_edges_from(ends)
    return graph


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weights", [None, "float64"])
def test_of_all_vertices_as_networkx_has_them(directed: bool, weights: str | None) -> None:
    edges = edges_of(directed=directed, weights=weights)
    graph, theirs, distance = in_memory(edges), in_networkx(edges), weights and "weight"
    for improved in (True, False):
        wanted = nx.closeness_centrality(theirs, distance=distance, wf_improved=improved)
        found = run(Closeness(wf_improved=improved), graph, kernels="reference").fields
        assert list(found) == ["closeness"]
        assert found["closeness"] == pytest.approx([wanted[v] for v in range(VERTICES)])
    wanted = nx.harmonic_centrality(theirs, distance=distance)
    for scale, normalized in ((1, False), (VERTICES - 1, True)):
        found = run(Harmonic(normalized=normalized), graph, kernels="reference").fields
        assert scale * found["harmonic"] == pytest.approx([wanted[v] for v in range(VERTICES)])


def test_of_given_vertices_alone() -> None:
    edges = edges_of(directed=True, weights=None)
    wanted = nx.closeness_centrality(in_networkx(edges))
    result = run(Closeness([3, 11]), in_memory(edges), kernels="reference")
    assert np.flatnonzero(result.reached("closeness")).tolist() == [3, 11]
    assert result.fields["closeness"][[3, 11]] == pytest.approx([wanted[3], wanted[11]])


def contributions(edges: EdgeList, pivots: np.ndarray, vertex: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each pivot but the vertex itself: whether it reaches it, and over what distance (0: not)."""
    column = distances(edges, weighted=False)[[pivot for pivot in pivots if pivot != vertex], vertex]
    return np.isfinite(column), np.where(np.isfinite(column), column, 0.0)


def test_errors_are_those_of_a_sample_without_replacement() -> None:
    edges = edges_of(directed=False, weights=None)
    graph = in_memory(edges)
    pivots = np.random.default_rng(5).choice(VERTICES, PIVOTS, replace=False)
    close = run(Closeness(k=PIVOTS, seed=5), graph, kernels="reference").fields
    inverse = run(Harmonic(k=PIVOTS, seed=5), graph, kernels="reference").fields
    for vertex in range(VERTICES):
        reaches, far = contributions(edges, pivots, vertex)
        left = 1 - len(far) / (VERTICES - 1)
        if not reaches.any():
            assert close["error"][vertex] == -np.inf
            continue
        summands = np.divide(1.0, far, out=np.zeros(len(far)), where=far > 0)
        assert inverse["harmonic"][vertex] == pytest.approx((VERTICES - 1) * summands.mean())
        spread = (VERTICES - 1) * np.sqrt(np.var(summands, ddof=1) / len(far) * left)
        assert inverse["error"][vertex] == pytest.approx(spread, abs=1e-6)
        share, mean = reaches.mean(), far.mean()
        slope = np.array([2 * share / mean, -((share / mean) ** 2)])
        variance = slope @ np.cov(reaches, far) @ slope / len(far) * left
        assert close["closeness"][vertex] == pytest.approx(share**2 / mean)
        assert close["error"][vertex] == pytest.approx(np.sqrt(variance), abs=1e-6)


def test_one_pivot_tells_no_error() -> None:
    found = run(Closeness(k=1), in_memory(edges_of(directed=False, weights=None)), kernels="reference").fields
    assert (found["error"] == -np.inf).all()


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(InputError, match="harmonic takes source or k, not both"):
        Harmonic([1], k=3)
    edges = edges_of(directed=True, weights="float64")
    assert edges.weights is not None
    edges.weights[:] = 1e308
    with pytest.raises(InputError, match=r"closeness: weights up to 1e\+308 may add up.*weight=False"):
        run(Closeness(), in_memory(edges), kernels="reference")
    assert run(Closeness(weight=False), in_memory(edges), kernels="reference").fields["closeness"].max() > 0
