"""Ranks that link trees: what each of them may leave out, and what they hand out of what they have found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Result
from penstock.engine.kernels.cuda import driver
from penstock.engine.programs.wcc import WCC
from penstock.engine.session import Session
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList
from support.program_cases import check
from support.thread_ranks import ThreadRanks, on_ranks

WAYS: dict[str, dict[str, Any]] = {
    "cores": {"device": "cpu", "kernels": "reference"},
    "simulated": {"device": "emulated", "kernels": "cuda"},
}
simulated = pytest.param("simulated", marks=pytest.mark.skipif(not driver.SIMULATED, reason="tests/gpu has them"))
TREE, LEAVES = 20, 38


def _linked(edges: EdgeList, size: int, way: str, graph: Graph | None = None, **options: Any) -> list[Result]:
    graph = in_memory(edges) if graph is None else graph

    def work(ranks: ThreadRanks) -> Result:
        with Session(graph, ranks=ranks, threads=1, **WAYS[way], **options) as session:
            return session.run(WCC())

    found = on_ranks(size, work)
    for result in found:
        check("wcc", edges, result.fields)
    return found


def _edges(pairs: list[tuple[int, int]]) -> EdgeList:
    ends = np.array(pairs, dtype=np.int64)
    return EdgeList(int(ends.max()) + 1, ends[:, 0], ends[:, 1], None, False)


def _bridged() -> EdgeList:
    """Rank 0 owns 0, 1 and a long tree, rank 1 leaves of both; one edge joins the tree and a leaf.

    It is the last in its rows, which both ranks leave out, and what they have found is apart without it.
    """
    last, leaves = 2 + TREE, range(2 + TREE, 2 + TREE + LEAVES)
    tree = [(v, v + step) for v in range(2, last) for step in (1, 2) if v + step < last]
    return _edges(
        [*tree, *((hub, v) for v in leaves for hub in (0, 1)), *((v, v + 1) for v in leaves[:-1]), (last - 1, last)]
    )


@pytest.mark.parametrize(("way", "passes"), [("cores", 2), pytest.param(*simulated.values, 3, marks=simulated.marks)])
def test_trees_that_ranks_left_out_and_that_are_apart_are_linked_once_more(way: str, passes: int) -> None:
    found = _linked(_bridged(), 2, way)
    assert [len(result.records) for result in found] == [passes, passes], "the reference leaves nothing out"
    assert set(found[0].fields["component"].tolist()) == {0}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("way", ["cores", simulated])
def test_trees_that_hold_nearly_all_are_joined_once(way: str, size: int) -> None:
    hub = _edges([(0, v) for v in range(1, 60)] + [(1, v) for v in range(2, 60)])
    assert all(len(result.records) == 2 for result in _linked(hub, size, way))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_small_trees_of_ranks_are_joined_before_any_is_left_out(seed: int) -> None:
    count = 90
    ends = np.random.default_rng(seed).integers(0, count, (2, count * seed // 2))
    _linked(EdgeList(count, *ends, None, False), 3, "cores")


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("way", [simulated])
def test_what_is_at_hand_is_linked_first(tmp_path: Path, way: str, size: int) -> None:
    edges = EdgeList(300, *skewed(300, 3000, 3), None, False)
    graph = on_disk(edges, tmp_path / "skewed.h5", chunk_edges=128)
    room = graph.edges * 4 * 7 // 10 // size
    found = _linked(edges, size, way, graph, device_edge_memory=room, partition_bytes=512, packed="never")
    passes = 1 if size == 1 else 2  # in one process all that is left lies inside the largest tree
    assert [len(result.records) for result in found] == [passes] * size
