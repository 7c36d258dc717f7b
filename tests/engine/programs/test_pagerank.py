"""PageRank by weight, in every form, gives the answer of networkx; weights that cannot be shared out are refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from penstock.engine import Graph, from_edges, run
from penstock.engine.programs.pagerank import ChebyshevPageRank, PageRank
from penstock.storage.base.errors import InputError
from support.covering import covering

COUNT = 24


def graphs(*, directed: bool, dtype: str = "uint8") -> tuple[Graph, Any]:
    """A multigraph with loops and zero weights, as ours and networkx' own; the out-weights of vertex 4 sum to 0."""
    random = np.random.default_rng(8)
    ends = random.integers(0, COUNT - 2, (2, 90))
    weights = random.integers(0, 6, 90).astype(dtype)
    weights[(ends == 4).any(axis=0) if not directed else ends[0] == 4] = 0
    theirs = (nx.MultiDiGraph if directed else nx.MultiGraph)()
    theirs.add_nodes_from(range(COUNT))
    theirs.add_weighted_edges_from(zip(*ends.tolist(), weights.tolist(), strict=True))
    ours = from_edges(*ends, weights, vertices=COUNT, undirected=not directed, direction="both" if directed else "out")
    return ours, theirs


def error(rank: Any, theirs: dict[int, float]) -> float:
    """How far ranks are from networkx', in L1."""
    return float(np.abs(rank - np.array([theirs[vertex] for vertex in range(COUNT)])).sum())


FORMS: list[dict[str, Any]] = [
    {},
    {"personalization": {3: 1.0, 7: 2.5}},
    {"dangling": {1: 1.0, 5: 1.0}},
    {"nstart": {2: 1.0}, "personalization": {0: 1}, "dangling": {9: 2}},
]


@covering("directed, asked, weight", (True, False), FORMS, ("weight", None))
def test_sweeps_equal_networkx(directed: bool, asked: dict[str, Any], weight: str | None) -> None:
    ours, theirs = graphs(directed=directed)
    wanted = nx.pagerank(theirs, tol=1e-15, max_iter=2000, weight=weight, **asked)
    found = run("pagerank", ours, tol=1e-13, max_iter=2000, weight=weight, kernels="reference", **asked)
    assert (found.weighted, found.converged) == (weight is not None, True)
    assert error(found.fields["rank"], wanted) < 1e-11


@covering(
    "way, asked, dtype",
    ({"kernels": "reference"}, {"direction": "push"}, {}),
    FORMS[:2],
    ("uint8", "float32"),
    where=lambda way, asked, dtype: dtype == "uint8" or "kernels" in way,
)
def test_residual_push_equals_networkx(way: dict[str, Any], asked: dict[str, Any], dtype: str) -> None:
    ours, theirs = graphs(directed=True, dtype=dtype)
    wanted = nx.pagerank(theirs, tol=1e-15, max_iter=2000, **asked)
    found = run("pagerank", ours, tol=1e-11, max_iter=2000, mode="async", **asked, **way)
    assert found.converged
    assert error(found.fields["rank"], wanted) < 1e-9


def test_sweeps_of_arrays_equal_those_of_mappings() -> None:
    ours, _ = graphs(directed=True)
    home = np.zeros(COUNT)
    home[[3, 7]] = 1.0, 2.5
    one, other = (
        run("pagerank", ours, personalization=given, kernels="reference").fields["rank"]
        for given in (home, {3: 1.0, 7: 2.5})
    )
    np.testing.assert_array_equal(one, other)


def test_too_few_sweeps_did_not_converge() -> None:
    """Of two phases the second says so; the first is one pass more."""
    ours, _ = graphs(directed=True)
    for mode in ("sync", "async"):
        found = run("pagerank", ours, max_iter=3, tol=1e-12, mode=mode, kernels="reference")
        assert (found.converged, found.iterations) == (False, 4)


def test_a_vertex_without_weight_is_dangling() -> None:
    """All weights 0: nobody sends anything, and ranks stay even."""
    graph = from_edges([0, 0, 1], [1, 2, 2], np.zeros(3))
    np.testing.assert_allclose(run("pagerank", graph, kernels="reference").fields["rank"], 1 / 3)


@pytest.mark.parametrize(
    ("asked", "weights", "message"),
    [
        ({}, [1.0, -2.0, 3.0], r"smallest weight is -2.*run with weight=False"),
        ({}, [1.5e308, 1.5e308, 3.0], "vertex 0 add up to inf: .* weight=False"),
        ({"mode": "async", "dangling": {0: 1}}, [1, 2, 3], 'dangling in sweeps only; run it with mode="sync"'),
        ({"mode": "async", "nstart": {0: 1}}, [1, 2, 3], "nstart in sweeps only"),
        ({"nstart": {0: 0}}, [1, 2, 3], "nstart has no positive weight"),
        ({"dangling": [1, 2, 3]}, [1, 2, 3], r"dangling \[1, 2, 3\] is no mapping"),
        ({"personalization": {0: -1}}, [1, 2, 3], "personalization of vertex 0 is -1"),
        ({"personalization": {0: "x"}}, [1, 2, 3], "personalization of vertex 0 is x"),
        ({"personalization": np.array([1, np.nan, 0])}, [1, 2, 3], r"personalization\[1\] is nan"),
        ({"personalization": {0: 1e308, 1: 1e308}}, [1, 2, 3], "personalization add up to inf"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(asked: dict[str, Any], weights: list[float], message: str) -> None:
    offsets, neighbors = [0, 2, 3, 3], [1, 2, 2]
    with np.errstate(over="ignore"):
        graph = Graph.from_arrays(offsets, neighbors, np.array(weights))
    with pytest.raises(InputError, match=message):
        run("pagerank", graph, kernels="reference", **asked)
    if np.abs(weights).max() > 3 or min(weights) < 0:
        assert run("pagerank", graph, weight=False, kernels="reference").converged


def test_chebyshev_refuses_weights() -> None:
    graph, _ = graphs(directed=False)
    with pytest.raises(InputError, match="this graph has weights: weight=False, or use pagerank"):
        run(ChebyshevPageRank(), graph)
    sweeps = run(PageRank(weight=False, tol=1e-12, max_iter=1000), graph, kernels="reference").fields["rank"]
    found = run(ChebyshevPageRank(weight=False, tol=1e-10), graph, kernels="reference").fields["rank"]
    np.testing.assert_allclose(found, sweeps, atol=1e-9)
