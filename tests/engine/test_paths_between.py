"""All shortest paths, and the k shortest, are those that networkx finds by other algorithms."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from penstock.engine import Graph, convert, from_edges, shortest_paths
from penstock.storage.base.errors import InputError


def drawn(seed: int, *, directed: bool, weighted: bool) -> tuple[nx.Graph, Graph]:
    """A graph with ties, of small weights."""
    random = np.random.default_rng(seed)
    made = nx.gnm_random_graph(14, 34, seed=seed, directed=directed)
    for _, _, data in made.edges(data=True):
        data["weight"] = int(random.integers(1, 4)) if weighted else 1
    edges = [(u, v) for u, v in made.edges]
    weights = [made.edges[edge]["weight"] for edge in edges] if weighted else None
    return made, from_edges(edges, weights=weights, vertices=14, undirected=not directed)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_paths_are_networkxs(seed: int, directed: bool, weighted: bool) -> None:
    known, graph = drawn(seed, directed=directed, weighted=weighted)
    for target in (13, 5, 0):
        found = [(one.length, one.vertices) for one in shortest_paths(graph, 0, target)]
        simple = [(one.length, one.vertices) for one in islice(shortest_paths(graph, 0, target, k=1000), 60)]
        if not nx.has_path(known, 0, target):
            assert found == simple == []
            continue
        wanted = sorted(nx.all_shortest_paths(known, 0, target, weight="weight"))
        assert sorted(path for _, path in found) == wanted
        assert {length for length, _ in found} == {nx.path_weight(known, wanted[0], "weight")}
        every = [*nx.all_simple_paths(known, 0, target)] if target else [[0]]
        lengths = sorted(nx.path_weight(known, path, "weight") for path in every)
        assert [length for length, _ in simple] == lengths[:60]
        assert len({tuple(path) for _, path in simple}) == len(simple)
        assert all(path in every for _, path in simple)


def test_names_parallel_edges_and_detours_of_a_file(tmp_path: Path) -> None:
    rows = "a,b,2\na,b,1\nb,c,1\na,c,2\nb,a,1\nc,d,0.5\nb,d,9\nd,b,0\nx,a,1\n"
    (tmp_path / "e.csv").write_text("from,to,weight\n" + rows)
    graph = convert(tmp_path / "e.csv", tmp_path / "g.h5", string_ids=True, weights=True)
    found = list(shortest_paths(graph, "a", "d", k=9, host_memory="200MiB"))
    assert sorted((one.length, one.vertices) for one in found) == [
        (2.5, ["a", "b", "c", "d"]),
        (2.5, ["a", "c", "d"]),
        (10, ["a", "b", "d"]),
    ]
    assert sorted(one.hops for one in shortest_paths(graph, "a", "d")) == [2, 3]
    assert [one.hops for one in shortest_paths(graph, "a", "d", weight=None)] == [2, 2]
    assert list(shortest_paths(graph, "a", "x")) == []
    assert [one.vertices for one in shortest_paths(graph, "a", "a", k=4)] == [["a"]]


@pytest.mark.parametrize("k", [1, 3, 8, 40])
def test_so_many_are_the_first_of_all(k: int) -> None:
    known, graph = drawn(3, directed=False, weighted=True)
    graph.out.chunk_edges = 5
    every = sorted(nx.path_weight(known, path, "weight") for path in nx.all_simple_paths(known, 0, 13))
    assert [one.length for one in shortest_paths(graph, 0, 13, k=k)] == every[:k]


def test_edges_of_length_0_are_walked_once() -> None:
    graph = from_edges([(0, 1), (1, 2), (2, 1), (1, 3), (2, 3)], weights=[0, 0, 0, 1, 1])
    assert sorted(one.vertices for one in shortest_paths(graph, 0, 3)) == [[0, 1, 2, 3], [0, 1, 3]]


def test_sides_of_a_bipartite_graph() -> None:
    graph = from_edges([7, 8, 8], [7, 7, 9], bipartite=True, undirected=True)
    assert [one.vertices for one in shortest_paths(graph, "source:7", "target:9")] == [
        ["source:7", "target:7", "source:8", "target:9"]
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": "3"}, "k is '3'"),
        ({"target": 99}, "99"),
        ({"weight": "no"}, "weight=False"),
        ({"device": "gpu"}, "gpu"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    graph = from_edges([(0, 1), (1, 2)])
    with pytest.raises(InputError, match=message):
        shortest_paths(graph, **({"source": 0, "target": 2} | given))


def test_lists_and_weights_below_0_are_refused() -> None:
    with pytest.raises(InputError, match="convert the graph file"):
        shortest_paths(from_edges([(0, 1)], layout="list"), 0, 1)
    with pytest.raises(InputError, match="negative"):
        shortest_paths(from_edges([(0, 1)], weights=[-1]), 0, 1)


def test_a_long_path_takes_time_by_its_length() -> None:
    graph = from_edges([(at, at + 1) for at in range(40_000)], undirected=True)
    paths = shortest_paths(graph, 0, 40_000)
    began = time.process_time()
    (found,) = paths
    assert found.hops == 40_000
    assert time.process_time() - began < 10, "1.6 s were measured, and 24 where each vertex was sought in the path"
