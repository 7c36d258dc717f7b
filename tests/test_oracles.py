"""The verifiers themselves, against networkx, and each shown to catch a wrong answer."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from support.covering import covering
from support.oracles import (
    UNREACHED,
    EdgeList,
    bfs_levels,
    bfs_parents,
    check_bfs,
    check_pagerank,
    check_sssp,
    check_wcc,
    components,
    pagerank,
    shortest_distances,
    signed,
)

SEEDS = range(6)


def sample(seed: int, *, directed: bool, floats: bool = False) -> EdgeList:
    """A random multigraph with loops, parallel edges and isolated vertices."""
    random = np.random.default_rng(seed)
    vertices = int(random.integers(1, 60))
    count = int(random.integers(0, 3 * vertices))
    ends = random.integers(0, max(1, vertices - 3), size=(2, count))
    weights = random.random(count) if floats else random.integers(0, 9, count)
    return EdgeList(vertices, ends[0], ends[1], weights, directed)


def as_networkx(edges: EdgeList) -> nx.Graph:
    graph = nx.MultiDiGraph() if edges.directed else nx.MultiGraph()
    graph.add_nodes_from(range(edges.vertices))
    assert edges.weights is not None
    triples = zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True)
    graph.add_weighted_edges_from(triples)
    return graph


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_answers_equal_networkx(seed: int, directed: bool) -> None:
    edges = sample(seed, directed=directed)
    graph = as_networkx(edges)
    reached = nx.single_source_shortest_path_length(graph, 0)
    level = bfs_levels(edges, 0)
    assert level.tolist() == [reached.get(v, UNREACHED) for v in range(edges.vertices)]
    for vertex, parent in enumerate(bfs_parents(edges, 0).tolist()):
        if vertex == 0 or level[vertex] == UNREACHED:
            assert parent == (0 if vertex == 0 else UNREACHED)
        else:
            before = graph.predecessors(vertex) if directed else graph.neighbors(vertex)
            assert parent == min(v for v in before if level[v] == level[vertex] - 1)
    lengths = nx.single_source_dijkstra_path_length(graph, 0)
    assert shortest_distances(edges, 0) == [lengths.get(v) for v in range(edges.vertices)]
    groups = nx.weakly_connected_components if directed else nx.connected_components
    for group in groups(graph):
        assert set(components(edges)[list(group)].tolist()) == {min(group)}


@covering("personal, directed, seed", [False, True], [True, False], SEEDS)
def test_pagerank_equals_networkx(seed: int, directed: bool, personal: bool) -> None:
    edges = sample(seed, directed=directed)
    home = np.arange(1.0, edges.vertices + 1) if personal else None
    theirs = nx.pagerank(
        as_networkx(edges),
        tol=1e-13,
        max_iter=2000,
        weight=None,
        personalization=None if home is None else dict(enumerate(home.tolist())),
    )
    ours = pagerank(edges, personalization=home)
    assert np.abs(ours - [theirs[v] for v in range(edges.vertices)]).sum() < 1e-10


@pytest.mark.parametrize("seed", SEEDS)
def test_float_distances_equal_networkx(seed: int) -> None:
    edges = sample(seed, directed=True, floats=True)
    lengths = nx.single_source_dijkstra_path_length(as_networkx(edges), 0)
    assert shortest_distances(edges, 0) == [lengths.get(v) for v in range(edges.vertices)]


def test_sweeps_are_counted() -> None:
    edges = sample(3, directed=True)
    once = pagerank(edges, sweeps=1)
    assert np.abs(once - pagerank(edges)).sum() > 1e-6
    assert np.array_equal(pagerank(edges, sweeps=0), np.full(edges.vertices, 1 / edges.vertices))


def test_signed_maps_the_largest_unsigned_value() -> None:
    assert signed(np.array([3, 2**32 - 1], dtype=np.uint32)).tolist() == [3, UNREACHED]
    assert signed(np.array([3, 2**64 - 1], dtype=np.uint64)).tolist() == [3, UNREACHED]
    assert signed(np.array([3, -1])).tolist() == [3, UNREACHED]


def diamond() -> EdgeList:
    """0 → 1, 2 → 3, and 4 apart; two parents for 3, of which 1 is the smaller."""
    return EdgeList(5, np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.array([1, 1, 5, 4], dtype=np.uint8))


WRONG: list[tuple[str, Callable[[EdgeList], None]]] = [
    ("level is wrong", lambda g: check_bfs(g, 0, np.array([0, 1, 1, 3, -1]))),
    ("level is wrong", lambda g: check_bfs(g, 0, np.array([0, 1, 1, 2, 3]))),
    ("shape", lambda g: check_bfs(g, 0, np.array([0, 1, 1, 2]))),
    (
        "parent is wrong",
        lambda g: check_bfs(g, 0, np.array([0, 1, 1, 2, -1]), np.array([0, 0, 0, 2, -1])),
    ),
    ("not 5", lambda g: check_sssp(g, 0, np.array([0, 1, 1, 6, 2**32 - 1], dtype=np.uint32))),
    ("no path", lambda g: check_sssp(g, 0, np.array([0, 1, 1, 5, 9], dtype=np.uint32))),
    ("not 5", lambda g: check_sssp(g, 0, np.array([0, 1, 1, 5.01, np.inf]), tolerance=1e-6)),
    ("not 5", lambda g: check_sssp(g, 0, np.array([0, 1, 1, np.nan, np.inf]), tolerance=1e-6)),
    ("in L1", lambda g: check_pagerank(g, np.full(5, 0.2))),
    ("not finite", lambda g: check_pagerank(g, np.array([0.2, 0.2, np.nan, 0.2, 0.2]))),
    ("component is wrong", lambda g: check_wcc(g, np.array([0, 0, 0, 0, 0]))),
    ("component is wrong", lambda g: check_wcc(g, np.array([1, 1, 1, 1, 4]))),
]


@pytest.mark.parametrize(("message", "check"), WRONG)
def test_a_wrong_answer_is_caught(message: str, check: Callable[[EdgeList], None]) -> None:
    with pytest.raises(AssertionError, match=message):
        check(diamond())


def test_right_answers_pass() -> None:
    graph = diamond()
    top = 2**32 - 1
    level = np.array([0, 1, 1, 2, top], dtype=np.uint32)
    check_bfs(graph, 0, level, np.array([0, 0, 0, 1, top], dtype=np.uint32))
    check_sssp(graph, 0, np.array([0, 1, 1, 5, top], dtype=np.uint32))
    check_sssp(graph, 0, np.array([0, 1, 1, 5, np.inf], dtype=np.float32), tolerance=1e-6)
    check_pagerank(graph, pagerank(graph))
    check_wcc(graph, np.array([0, 0, 0, 0, 4]))
