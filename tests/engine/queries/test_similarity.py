"""Similarities: of pairs and of the best K, as sets and networkx have them, within a small budget too."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numba
import numpy as np
import pytest
from penstock.engine import Graph, from_edges, similarity
from penstock.engine.kernels.cuda import driver
from penstock.engine.kernels.host.whole_rows.similarity import compare
from penstock.engine.queries import pairs as pairs_module
from penstock.engine.queries.row_sets import even_cuts, runs
from penstock.engine.queries.similarity import _held
from penstock.storage.base.errors import BudgetError, InputError
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.planning.host_budget import HostBudgetRequest
from support.graphs import in_memory, on_disk
from support.oracles import EdgeList
from support.program_cases import tangle

SCORES = {
    "jaccard": lambda one, other: Fraction(len(one & other), max(1, len(one | other))),
    "overlap": lambda one, other: Fraction(len(one & other), max(1, min(len(one), len(other)))),
    "cosine": lambda one, other: Fraction(len(one & other) ** 2, max(1, len(one) * len(other))),
    "common": lambda one, other: Fraction(len(one & other)),
}
"""Exact; of cosine the square, which has the same order."""


def as_float(by: str, score: Fraction) -> float:
    """The score as the table has it."""
    return float(score) ** 0.5 if by == "cosine" else float(score)


def neighbor_sets(edges: EdgeList) -> list[set[int]]:
    """Neighbors, or where edges lead to, without self-loops."""
    found: list[set[int]] = [set() for _ in range(edges.vertices)]
    for u, v in zip(*(side.tolist() for side in edges.arcs[:2]), strict=True):
        if u != v:
            found[u].add(v)
    return found


def best(edges: EdgeList, k: int, by: str, *, missing_only: bool = False) -> list[tuple[int, int]]:
    """The K best of every vertex, by all pairs."""
    sets, found = neighbor_sets(edges), []
    for u, mine in enumerate(sets):
        others = [v for v in range(edges.vertices) if v != u and mine & sets[v] and not (missing_only and v in mine)]
        found += [(u, v) for v in sorted(others, key=lambda v: (-SCORES[by](mine, sets[v]), v))[:k]]
    return found


@pytest.fixture
def small_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms of some rows, whatever the budget."""
    monkeypatch.setattr(HostBudgetRequest, "left", property(lambda room: 9000))
    monkeypatch.setattr("penstock.engine.queries.row_sets.PIECE_EDGES", 40)


def graph_of(edges: EdgeList, path: Path) -> Graph:
    return on_disk(edges, path / "g.h5", chunk_edges=16)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("room", ["all", "small"])
def test_pairs(room: str, directed: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    edges = tangle(directed=directed)
    graph = in_memory(edges) if room == "all" else graph_of(edges, tmp_path)
    if room == "small":
        request.getfixturevalue("small_rooms")
    pairs = [*combinations(range(edges.vertices), 2), (5, 3), (4, 4)]
    found, sets = similarity(graph, pairs), neighbor_sets(edges)
    for measure, score in SCORES.items():
        wanted = [as_float(measure, score(sets[u], sets[v])) for u, v in pairs]
        np.testing.assert_array_equal(found.scores(measure), wanted)
    assert found.sizes.tolist() == [[len(sets[u]), len(sets[v])] for u, v in pairs]
    assert found.ids.tolist() == [list(pair) for pair in pairs]


@pytest.mark.skipif(not driver.SIMULATED, reason="there is a device: tests/gpu")
@pytest.mark.parametrize("memory", [1 << 20, 1500])
def test_pairs_on_a_simulated_device(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows at once, and in runs with few pairs at a time."""
    edges = tangle(directed=True)
    graph = in_memory(edges)
    pairs = [*zip(edges.sources[:40].tolist(), edges.targets[:40].tolist(), strict=True), (5, 3), (4, 4)]
    monkeypatch.setattr(pairs_module, "CudaDevice", lambda number, most: EmulatedDevice(memory_bytes=memory))
    monkeypatch.setattr(pairs_module.cuda, "number_of", lambda name: 0)
    found = similarity(graph, pairs, device="cuda:0")
    np.testing.assert_array_equal(found.common, similarity(graph, pairs).common)
    monkeypatch.setattr(pairs_module, "CudaDevice", lambda number, most: EmulatedDevice(memory_bytes=50))
    with pytest.raises(BudgetError, match="50 B is too small: the longest row, twice, takes"):
        similarity(graph, pairs, device="cuda:0")


def test_jaccard_is_that_of_networkx() -> None:
    theirs = nx.karate_club_graph()
    pairs = list(nx.non_edges(theirs))
    ours = similarity(from_edges(list(theirs.edges), undirected=True), pairs).scores("jaccard")
    assert ours.tolist() == [score for _, _, score in nx.jaccard_coefficient(theirs, pairs)]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("room", ["all", "small"])
def test_best_pairs(room: str, directed: bool, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    edges = tangle(directed=directed)
    graph = in_memory(edges) if room == "all" else graph_of(edges, tmp_path)
    if room == "small":
        request.getfixturevalue("small_rooms")
    for by in SCORES if room == "all" else ("cosine",):
        for missing_only in (False, True):
            found = similarity(graph, k=3, by=by, missing_only=missing_only)
            assert [tuple(pair) for pair in found.ids.tolist()] == best(edges, 3, by, missing_only=missing_only)
    some = similarity(graph, k=2, sources=[9, 3, 9])
    assert [tuple(pair) for pair in some.ids.tolist()] == [one for one in best(edges, 2, "jaccard") if one[0] in (3, 9)]


def sharing(counts: dict[int, tuple[int, int]], size: int) -> Graph:
    """Vertex 0 has `size` neighbors; each other one has some of them and others of its own: (in common, size)."""
    first = 1 + max(counts)
    ends = [(0, first + at) for at in range(size)]
    for vertex, (common, wide) in counts.items():
        ends += [(vertex, first + at) for at in range(common)]
        ends += [(vertex, first + size + at) for at in range(wide - common)]
    return from_edges(ends, direction="out")


@pytest.mark.parametrize("left", [None, 3000])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_equal_scores_are_ordered_by_ids_exactly(left: int | None, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """2/√24 and 3/√54 are equal, and so in the table; in blocks too, and where the lists of hubs are not walked."""
    if left:
        monkeypatch.setattr(HostBudgetRequest, "left", property(lambda room: left))
    counts = {1: (3, 9), 2: (2, 4), 3: (1, 1), 4: (6, 36), 5: (4, 17), 6: (5, 25)}
    found = similarity(sharing(counts, 6), k=k, by="cosine", sources=[0])
    exact = {v: Fraction(common**2, 6 * wide) for v, (common, wide) in counts.items()}
    order = sorted(exact, key=lambda v: (-exact[v], v))
    assert found.ids[:, 1].tolist() == order[:k] == [1, 2, 3, 4, 6, 5][:k]
    scores = found.scores("cosine")
    assert len(set(scores[:5].tolist())) == 1
    assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize("by", SCORES)
def test_scores_are_compared_as_fractions_are(by: str) -> None:
    """Of any sizes that a graph can have, also where a float has the same score for both."""
    random, number, equal, alike = np.random.default_rng(1), list(SCORES).index(by), 0, 0
    for turn in range(3000):
        size, one, other = (int(x) for x in random.integers(1, 2 ** (3, 20, 31)[turn % 3], 3))
        sets = [(int(random.integers(1, min(size, wide), endpoint=True)), wide) for wide in (one, other)]
        one, other = one % 65536, other % 65536
        if turn % 7 == 0 and math.gcd(one, other) == 1 and min(one, other) > 1:
            wide = pow(one * one, -1, other * other)  # so that the squares differ by 1 in some 2**64
            sets, size = [(one, (one * one * wide - 1) // (other * other)), (other, wide)], 1 << 31
        exact = [
            {
                "jaccard": Fraction(common, size + wide - common),
                "overlap": Fraction(common, min(size, wide)),
                "cosine": Fraction(common**2, wide),
                "common": Fraction(common),
            }[by]
            for common, wide in sets
        ]
        assert compared(number, size, *sets[0], *sets[1]) == (exact[0] > exact[1]) - (exact[0] < exact[1])
        equal += exact[0] == exact[1]
        alike += exact[0] != exact[1] and float(exact[0]) == float(exact[1])
    assert equal
    assert alike or by != "cosine"


@numba.njit
def compared(measure: int, size: int, *sets: int) -> int:
    """`compare`, compiled."""
    return compare(measure, size, (sets[0], sets[1]), (sets[2], sets[3]))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("left", [1 << 30, 30000])
def test_long_lists_are_not_counted(left: int, directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of neighbors that hundreds have: answers as all pairs give them, whatever is left out on the way."""
    monkeypatch.setattr(HostBudgetRequest, "left", property(lambda room: left))
    random, count, hubs = np.random.default_rng(7), 500, 12
    edges = np.argwhere(random.random((count, hubs)) < np.linspace(0.1, 0.9, hubs))
    edges[: len(edges) // 2, 0] //= 4  # many of the same rows
    graph = from_edges(edges[:, 0] + hubs, edges[:, 1], undirected=not directed, vertices=count + hubs)
    has = np.zeros((graph.vertices, graph.vertices), np.int64)
    has[edges[:, 0] + hubs, edges[:, 1]] = 1
    has |= 0 if directed else has.T
    common, size = has @ has.T, has.sum(axis=1)
    np.fill_diagonal(common, 0)
    for k, by, missing_only in ((1, "jaccard", False), (4, "cosine", True), (2, "overlap", False), (3, "common", True)):
        scores = {
            "common": common,
            "jaccard": common / np.maximum(1, size[:, None] + size - common),
            "overlap": common / np.maximum(1, np.minimum(size[:, None], size)),
            "cosine": common * common / np.maximum(1, size[:, None] * size),  # squared, so that equals are equal
        }[by] * (1 - has * missing_only)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        wanted = [(u, v) for u, row in enumerate(order.tolist()) for v in row if scores[u, v] > 0]
        found = similarity(graph, k=k, by=by, missing_only=missing_only)
        assert [tuple(pair) for pair in found.ends.tolist()] == wanted
        assert found.common.tolist() == [int(common[pair]) for pair in wanted]


def test_names_and_sides(tmp_path: Path) -> None:
    towns = from_edges(["rome", "oslo", "bern", "rome"], ["oslo", "bern", "paris", "paris"], undirected=True)
    found = similarity(towns, [("rome", "bern"), ("oslo", "rome")] * 40)
    assert (found.scores()[:2].tolist(), found.columns()["other"][1]) == ([1.0, 0.0], "rome")
    with pytest.raises(InputError, match="vertex turin is not in the graph"):
        similarity(towns, [("rome", "turin")] * 40)
    rated = from_edges([1, 1, 2, 3], [1, 2, 1, 9], bipartite=True, undirected=True)
    table = similarity(rated, k=1).columns()
    assert list(table)[:4] == ["vertex", "side", "other", "other_side"]
    assert (table["vertex"].tolist(), table["other"].tolist()) == ([1, 2, 1, 2], [2, 1, 2, 1])
    assert table["side"].tolist() == table["other_side"].tolist() == [0, 0, 1, 1]


def test_tables_are_written(tmp_path: Path) -> None:
    square = from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], undirected=True)
    found = similarity(square, k=1)
    found.write(tmp_path / "s.csv")
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert [line.replace('"', "") for line in lines[:2]] == [
        "vertex,other,common,jaccard,overlap,cosine",
        "0,2,2,1,1,1",
    ]
    assert "4 pairs of 4 vertices" in repr(found)
    with pytest.raises(InputError, match="no format of pairs ends in"):
        found.write(tmp_path / "s.npy")
    assert found.best("common", 1)["vertex"].tolist() == [0]


def test_empty_graphs_and_pairs() -> None:
    alone = from_edges(np.empty(0, int), np.empty(0, int), vertices=3)
    assert similarity(alone, [(0, 1)]).scores().tolist() == [0.0]
    assert len(similarity(alone, np.empty((0, 2), int))) == 0
    assert similarity(from_edges([0, 1], [2, 2], direction="out"), k=1).ids.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "either pairs, or k"),
        ({"pairs": [(0, 1)], "k": 1}, "either pairs, or k"),
        ({"k": 0}, "k is 0"),
        ({"k": 1, "by": "dice"}, "by is 'dice'; it must be one of jaccard, overlap"),
        ({"pairs": [(0, 1)], "missing_only": True}, "leave them out with pairs"),
        ({"pairs": [(0, 1, 2)]}, r"pairs\[0\] is \(0, 1, 2\); write two ids"),
        ({"pairs": np.zeros(3, int)}, "give two columns"),
        ({"pairs": [(0, 99)]}, "vertex 99 is not in the graph"),
        ({"k": 1, "threads": 0}, "threads is 0"),
        ({"k": 1, "device": "cuda:0"}, "a GPU counts given pairs; the k most similar"),
        ({"pairs": [(0, 1)], "device": "tpu"}, "device 'tpu' is not known"),
        ({"pairs": [(0, 1)], "device_memory": 1}, "device_memory is for a GPU"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        similarity(in_memory(tangle(directed=False)), **given)


@pytest.mark.parametrize("given", [{"k": 3}, {"pairs": [(0, 1)]}])
def test_the_least_budget_works(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The number that a refusal names is accepted, and gives the same answer."""

    def to_the_byte(option: str, budget: int, why: str, least: int, otherwise: str) -> BudgetError:
        return BudgetError(option, why, least, otherwise)

    monkeypatch.setattr("penstock.transfer.planning.host_budget.too_small", to_the_byte)
    monkeypatch.setattr("penstock.engine.queries.similarity.OWN_BYTES", 0)
    graph, given, least = in_memory(tangle(directed=True)), given | {"threads": 1}, 1000
    found = None
    for _ in range(3):  # what is two steps away is known after the rows were read
        try:
            found = similarity(graph, host_memory=least, **given)
        except BudgetError as refused:
            least = refused.least_mib
    assert found is not None
    assert least > 1000
    np.testing.assert_array_equal(found.ends, similarity(graph, **given).ends)


def test_runs_and_cuts() -> None:
    assert runs(np.array([3, 3, 3, 9, 1]), 6) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert runs(np.empty(0, int), 6) == []
    assert even_cuts(np.array([7, 1, 1, 1, 1, 1]), 2).tolist() == [0, 1, 6]
    assert pairs_module.STEPS > 1


def test_one_row_index_is_counted(tmp_path: Path) -> None:
    """That of out-edges, at the bytes that an index has, also where in-edges are stored."""
    graph = on_disk(tangle(directed=True), tmp_path / "g.h5")
    index = graph.out.index()
    assert graph.into is not None
    assert index.nbytes <= _held(graph) <= index.nbytes + 4096
