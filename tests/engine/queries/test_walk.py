"""Random walks: every step is an edge, chosen with its probability, and the same whatever memory and threads are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray
from penstock.engine import Graph, from_edges, walk
from penstock.engine.queries.walk_memory import WalkMemory
from penstock.storage.base.errors import BudgetError, InputError
from support.covering import covering
from support.graphs import in_memory, on_disk, shape

HOUSE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]
"""A triangle on a square, and a vertex that hangs from it."""
WEIGHTS = np.array([3, 1, 2, 0.5, 0, 4, 1.5])
"""Of its edges; one is 0."""


def matrix(weights: NDArray[Any]) -> NDArray[np.float64]:
    """Weights of the house by both ends."""
    dense = np.zeros((6, 6))
    for (u, v), weight in zip(HOUSE, weights, strict=True):
        dense[u, v] = dense[v, u] = weight
    return dense


def first_order(dense: NDArray[np.float64], previous: int, v: int) -> NDArray[np.float64]:
    """Probabilities of the next vertex."""
    row: NDArray[np.float64] = dense[v] / dense[v].sum()
    return row


def second_order(p: float, q: float) -> Callable[..., NDArray[np.float64]]:
    """Probabilities of the next vertex by equation 2 of node2vec (Grover and Leskovec, KDD 2016)."""

    def probabilities(dense: NDArray[np.float64], previous: int, v: int) -> NDArray[np.float64]:
        if previous < 0:
            return first_order(dense, previous, v)
        bias = np.where(dense[previous] > 0, 1.0, 1 / q)
        bias[previous] = 1 / p
        row: NDArray[np.float64] = dense[v] * bias
        return row / row.sum()

    return probabilities


def check_frequencies(walks: NDArray[Any], expected: Callable[[int, int], NDArray[np.float64]]) -> None:
    """Steps are as frequent as expected after every pair of vertices (chi-square, p above 1e-4)."""
    from scipy.stats import chisquare  # half a second to import

    before = np.concatenate([np.full((len(walks), 1), -1), walks[:, :-2]], axis=1).ravel()
    at, after = walks[:, :-1].ravel(), walks[:, 1:].ravel()
    pairs = 0
    for previous, v in {(int(a), int(b)) for a, b in zip(before, at, strict=True)}:
        counts = np.bincount(after[(before == previous) & (at == v)], minlength=6)
        probabilities = expected(previous, v)
        assert (counts[probabilities == 0] == 0).all()
        possible = probabilities > 0
        if possible.sum() > 1:
            found = chisquare(counts[possible], probabilities[possible] * counts.sum())
            assert found.pvalue > 1e-4, (previous, v, counts, probabilities)
            pairs += 1
    assert pairs > 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"weight": False}, first_order),
        ({}, first_order),
        ({"weight": False, "p": 0.25, "q": 2.0}, second_order(0.25, 2.0)),
        ({"p": 4.0, "q": 0.5}, second_order(4.0, 0.5)),
        ({"p": 0.01, "q": 1.0}, second_order(0.01, 1.0)),
    ],
)
def test_steps_have_their_probabilities(options: dict[str, Any], expected: Any) -> None:
    ends = np.array(HOUSE)
    graph = from_edges(ends[:, 0], ends[:, 1], WEIGHTS, undirected=True)
    dense = matrix(WEIGHTS if options.get("weight", True) else np.ones(len(HOUSE)))
    walks = walk(graph, length=20, walks_per_vertex=500, seed=3, **options).to_numpy()
    check_frequencies(walks, lambda previous, v: expected(dense, previous, v))


def test_seeds_and_walks_differ() -> None:
    graph = in_memory(shape("skewed", directed=False))
    found = [walk(graph, length=10, walks_per_vertex=2, seed=seed).to_numpy() for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], found[1])
    moving = (found[0] >= 0).all(axis=1)
    assert (found[0][moving] != found[2][moving]).any(axis=1).mean() > 0.9
    first, second = np.split(found[0][:, 1:], 2)
    assert (first != second).any(axis=1)[moving[: len(first)]].mean() > 0.9


def small(**sizes: int) -> Any:
    """Little memory, whatever the budget is."""
    memory = WalkMemory(**{"piece_edges": 256, "batch": 1 << 30, "block": 200, "log_bytes": 1000, **sizes})
    return mock.patch("penstock.engine.queries.walks.divide_walk_memory", return_value=memory)


@covering(
    "options, directed",
    ({"weight": False}, {"restart": 0.1, "dead_ends": "restart"}, {"p": 0.3, "q": 3.0}, {"p": 2.0, "q": 0.2}),
    (True, False),
    strength=1,
)
def test_walks_are_the_same_out_of_core(options: dict[str, Any], directed: bool, tmp_path: Path) -> None:
    edges = shape("skewed", directed=directed, weights="uint8")
    graph = on_disk(edges, tmp_path / "g.h5", both=False)
    given = {"length": 6, "walks_per_vertex": 1, "seed": 5} | options
    expected = walk(in_memory(edges), **given).to_numpy()
    np.testing.assert_array_equal(walk(graph, threads=1, **given).to_numpy(), expected)
    longest = int(graph.out.index().degrees(0, graph.vertices).max()) // 64 * 64 + 128
    for sizes in (
        {"kept_edges": 0, "slab_edges": longest},
        {"kept_edges": 300, "slab_edges": 2 * longest, "batch": 600},
    ):
        with small(**sizes):
            swept = walk(graph, scratch=tmp_path, **given)
        np.testing.assert_array_equal(swept.to_numpy(), expected)
        assert swept.progress.sweeps > 2
        assert swept.progress.log_bytes > 0
        assert swept.progress.steps == (expected[:, 1:] >= 0).sum()


def test_every_step_is_an_edge_and_dead_ends_end() -> None:
    graph = from_edges(["a", "b", "b", "c"], ["b", "c", "d", "a"])
    walks = walk(graph, length=6, walks_per_vertex=5).to_arrow()["walk"].to_pylist()
    edges = {("a", "b"), ("b", "c"), ("b", "d"), ("c", "a")}
    assert {pair for path in walks for pair in pairwise(path)} == edges
    assert all(len(path) == 7 or path[-1] == "d" for path in walks)
    again = walk(graph, length=6, walks_per_vertex=5, dead_ends="restart").to_arrow()["walk"].to_pylist()
    for path in again:
        assert len(path) == 7 or path == ["d"]
        jumps = set(pairwise(path)) - edges
        assert jumps <= {("d", path[0])}


def test_restarts_are_as_frequent_as_asked() -> None:
    ring = np.arange(50)
    graph = from_edges(ring, (ring + 1) % 50)
    walks = walk(graph, length=40, walks_per_vertex=20, restart=0.2).to_numpy()
    back = walks[:, 1:] == walks[:, :1]
    assert ((walks[:, 1:] == (walks[:, :-1] + 1) % 50) | back).all()
    assert back.mean() == pytest.approx(0.2, abs=0.01)


def test_sources_are_ids_of_the_input_in_their_order() -> None:
    graph = from_edges(["a", "b", "c"], ["b", "c", "a"])
    sources = ["c", "a", "c"] * 4
    table = pyarrow.table(walk(graph, length=1, walks_per_vertex=2, sources=sources))
    follow = {"a": "b", "b": "c", "c": "a"}
    assert table["walk"].to_pylist() == [[one, follow[one]] for one in sources * 2]
    numbered = from_edges([7, 1], [1, 7])
    assert walk(numbered, length=2, walks_per_vertex=1, sources=np.array([7])).to_numpy().tolist() == [[7, 1, 7]]
    sparse = from_edges([700, 10], [10, 700], renumber=True)
    assert (
        walk(sparse, length=1, walks_per_vertex=1, sources=[700, 10] * 6).to_numpy().tolist()
        == [[700, 10], [10, 700]] * 6
    )
    with pytest.raises(InputError, match="vertex 11 is not in the graph"):
        walk(sparse, sources=[700, 11] * 6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "length is 0; give a whole number from 1"),
        ({"p": 0}, "p is 0; give a number from 0.001 to 1000"),
        ({"restart": 1.0}, "restart is 1.0; give a probability"),
        ({"dead_ends": "jump"}, "choose one of end, restart"),
        ({"pace": 3}, "unknown option 'pace'"),
        ({"sources": [5, 900]}, "vertex 900 is not in the graph"),
        ({"sources": np.array([900])}, "vertex 900 is not in the graph"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        walk(from_edges([(0, 1), (1, 5)]), **options)


def test_weights_below_zero_are_refused() -> None:
    graph = from_edges([0, 1], [1, 0], [1.0, -2.0])
    with pytest.raises(InputError, match=r"between -2 and 1.*weight=False"):
        walk(graph)
    assert walk(graph, weight=False).count == 20


def test_a_list_is_refused_and_so_is_too_little_memory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="penstock convert"):
        walk(Graph.from_list([0, 1], [1, 0]))
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=1 << 18)
    with pytest.raises(BudgetError, match=r'host_memory="\d+MiB" or more') as refused:
        walk(graph, host_memory=1000)
    assert walk(graph, host_memory=refused.value.least_mib << 20).count == 10 * graph.vertices
