"""How many levels a search has: all of them on a small graph, by its growth on one that is not read whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.planning import search_depth as depth
from penstock.engine.planning.search_depth import search_depth, skew_of
from penstock.storage.format import graph as graph_module

SIDE = 120


def graph_of(vertices: int, *ends: tuple[int, int]) -> Graph:
    """A graph in memory of undirected edges."""
    both = np.array(sorted({*ends, *((b, a) for a, b in ends)}), np.int64).reshape(-1, 2)
    offsets = np.searchsorted(both[:, 0], np.arange(vertices + 1))
    return Graph.from_arrays(offsets, both[:, 1], directed=False)


def grid(side: int = SIDE) -> Graph:
    """A square grid."""
    right = [(v, v + 1) for v in range(side * side) if (v + 1) % side]
    return graph_of(side * side, *right, *((v, v + side) for v in range(side * (side - 1))))


def test_a_small_graph_is_walked_to_its_end() -> None:
    graph = grid(10)
    assert search_depth(graph, np.array([0])) == 19
    assert 10 < search_depth(graph, np.empty(0, np.int64)) <= 19
    apart = graph_of(5, (0, 1), (2, 3))
    assert search_depth(apart, np.array([0])) == 2
    assert search_depth(apart, np.array([0, 1])) == 1


@pytest.mark.parametrize("start", [0, SIDE // 2 * (SIDE + 1)])
def test_growth_tells_the_levels_of_a_graph_that_is_not_read_whole(monkeypatch: pytest.MonkeyPatch, start: int) -> None:
    graph = grid()
    whole = search_depth(graph, np.array([start]))
    rows = graph.out
    monkeypatch.setattr(rows, "chunk_edges", 2048)
    monkeypatch.setattr(depth, "READ_EDGES", rows.edges // 3)
    assert search_depth(graph, np.array([start])) == pytest.approx(whole, rel=0.5)


def test_what_cannot_be_walked_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_depth(graph_of(3), np.array([0])) == 0.0
    monkeypatch.setattr(depth, "MOST_VERTICES", 5)
    assert search_depth(grid(3), np.array([0])) == 0.0


def test_hubs_of_a_file_are_seen_without_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    star = graph_of(9, *((0, leaf) for leaf in range(1, 9)))
    assert skew_of(star) == pytest.approx((64 + 8) / 16 / (16 / 9))
    star.save(tmp_path / "star.h5")
    graph = Graph.open(tmp_path / "star.h5")
    monkeypatch.setattr(graph_module, "read_index", None)
    assert skew_of(graph) == skew_of(star)
