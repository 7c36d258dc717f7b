"""Trees that are linked by ranks, what each of them may leave out, and by windows, where memory has few of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Graph, Result
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution import union_find
from penstock.engine.kernels import interface
from penstock.engine.kernels.cuda import driver
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.planning import requirements
from penstock.engine.programs.wcc import WCC
from penstock.engine.session import Session
from penstock.storage.checkpoint.state_pages import Unit
from support.covering import covering
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList
from support.paged_graphs import PAGE, VERTICES, answer, forgotten, no_edges_kept, pages_of, room_for
from support.program_cases import check
from support.thread_ranks import ThreadRanks, on_ranks

__all__ = ["forgotten"]

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


def test_rows_of_one_large_tree_are_left_out_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the tree of 0 is large; that of 100 becomes larger, and an edge between late rows joins both."""
    first, second = [*range(1, 100), 398], [*range(101, 398), 399]
    pairs = [*((0, v) for v in first), *((100, v) for v in second), *((v, v + 1) for v in range(101, 390)), (398, 399)]
    edges = _edges(pairs)
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=128)
    told: list[int] = []
    link_rows = HostKernels.link_rows

    def noted(kernels: Any, view: Any, state: Any, index: Any, done_each: int, skipped: Any, symmetric: bool) -> None:
        told.append(int(skipped))
        link_rows(kernels, view, state, index, done_each, skipped, symmetric)

    monkeypatch.setattr(HostKernels, "link_rows", noted)
    options: dict[str, Any] = {"device_edge_memory": 1200, "partition_bytes": 512, "packed": "never", "route": "filter"}
    with Session(graph, device="emulated", threads=1, **options) as session:
        check("wcc", edges, session.run(WCC()).fields)
    assert len(told) > 8
    assert told[0] == union_find.NO_COMPONENT
    assert set(told[1:]) == {0}


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


def _shuffled_paths() -> EdgeList:
    """Paths of 1 to 5,000 vertices through all windows, each edge of which is stored once, or twice."""
    random = np.random.default_rng(5)
    numbers, steps = random.permutation(VERTICES), np.arange(VERTICES - 1)
    cuts = random.integers(0, VERTICES, VERTICES // 500)
    steps = steps[~np.isin(steps, cuts) & (steps % 9 != 0) | (steps < 5000)]
    ends = np.stack([numbers[steps], numbers[steps + 1]])
    return EdgeList(VERTICES, *ends, None, False)


def _skewed() -> EdgeList:
    """Half as many edges as vertices, of which few have many."""
    return EdgeList(
        VERTICES, *np.random.default_rng(6).permutation(VERTICES)[skewed(VERTICES, VERTICES // 2, 4)], None, False
    )


@pytest.fixture(scope="module", params=["paths", "skewed"])
def spread(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[bool, bool], Graph]]:
    """Graphs of many components by whether they are directed, and whether the file has windows."""
    edges = {"paths": _shuffled_paths, "skewed": _skewed}[request.param]()
    folder, found = tmp_path_factory.mktemp(request.param), {}
    with pages_of(PAGE):
        for directed, windows in product((False, True), repeat=2):
            options = {"window_vertices": 2 * PAGE} if windows else {}
            path = folder / f"{directed}{windows}.h5"
            found[directed, windows] = on_disk(replace(edges, directed=directed), path, chunk_edges=512, **options)
        yield found


@covering(
    "directed, of_file, count, few, once, threads",
    (False, True), (False, True), (1, 2, 6), (False, True), (False, True), (1, 3),
)  # fmt: skip
def test_components_by_windows_are_those_of_all_trees_in_memory(
    directed: bool, of_file: bool, count: int, few: bool, once: bool, threads: int,
    spread: dict[tuple[bool, bool], Graph], forgotten: list[Unit], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """few: pairs have room until they are joined. once: it is tried to read the edges once."""
    graph = spread[directed, of_file]
    wanted = answer(graph, WCC(), threads=1)["component"]
    forgotten.clear()
    joined = mock.patch.object(HostKernels, "join_pairs", autospec=True, side_effect=HostKernels.join_pairs)
    if few:
        monkeypatch.setattr(interface, "LEAST_PAIRS", 256)
        monkeypatch.setattr(union_find, "PAIRS_SHARE", 1 << 40)
    if not once:
        monkeypatch.setattr(union_find._PagedTrees, "link_once", lambda *_: False)
    with room_for(count, graph.vertices) as counts, joined as calls:
        found = answer(graph, WCC(), threads=threads)["component"]
    assert np.array_equal(found, wanted)
    assert len(np.unique(wanted)) > 100
    assert bool(calls.called) == (counts[-1] > 1)
    assert counts == [1] if count == 1 else (once or counts[-1] >= count)
    assert forgotten or counts == [1]
    assert not (few and counts[-1] > 1) or calls.call_count > 2 * count


def test_pairs_have_room_where_values_have_the_least(
    spread: dict[tuple[bool, bool], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values have room for the pages at hand alone; windows are used, however large the budget is."""
    graph, planned = spread[True, False], requirements.in_windows
    kept = mock.patch.object(union_find.OpenPairs, "within", side_effect=union_find.OpenPairs.within)
    with room_for(1, graph.vertices, kept=True), kept as within, monkeypatch.context() as patch:
        for name, value in {"in_windows": planned, "ALIGNMENT": 0, "left_for_edges": lambda *_: 0}.items():
            patch.setattr(requirements, name, value)
        answer(graph, WCC(), threads=1)
    assert within.call_args.args[0] >= graph.vertices // union_find.PAIRS_SHARE // 2


def _apart() -> EdgeList:
    """A star of more edges than there are pairs, and paths of three vertices."""
    random = np.random.default_rng(8)
    hub = VERTICES // 9
    leaves = random.choice(VERTICES // 2, VERTICES // 4, replace=False) * 2
    ends = np.stack([np.full(len(leaves), hub), leaves])
    odd = random.permutation(VERTICES // 2)[:1200].reshape(3, -1) * 2 + 1
    return EdgeList(VERTICES, *np.hstack([ends, odd[:2], odd[1:]]), None, False)


@pytest.mark.parametrize(("directed", "turned"), [(False, False), (True, False), (True, True)])
def test_edges_are_read_once_where_a_tree_becomes_large_and_few_pairs_have_room(
    directed: bool, turned: bool, forgotten: list[Unit], tmp_path: Path
) -> None:
    edges = replace(_apart(), directed=directed)
    if turned:
        edges = replace(edges, sources=edges.targets, targets=edges.sources)
    dropped = mock.patch.object(
        HostKernels, "drop_joined_pairs", autospec=True, side_effect=HostKernels.drop_joined_pairs
    )
    with pages_of(PAGE):
        graph = on_disk(edges, tmp_path / "star.h5", chunk_edges=512)
        wanted = answer(graph, WCC(), threads=1)["component"]
        with room_for(4, graph.vertices), no_edges_kept(), dropped as calls, Session(graph, threads=2) as session:
            told, found = session.forecast(WCC()), session.run(WCC())
    assert np.array_equal(found.fields["component"], wanted)
    assert (told.windows, told.edge_reads, len(found.records)) == (1, 1, 1)
    assert calls.called
    moved = sum(one.value_bytes for one in found.records)
    assert moved <= told.first.value_bytes <= 2 * moved, "of four pages some stay that are counted"
    assert len(np.unique(wanted)) > 1000


def test_components_by_windows_go_on_from_a_checkpoint(
    spread: dict[tuple[bool, bool], Graph], forgotten: list[Unit], tmp_path: Path
) -> None:
    graph = spread[True, True]
    for number, resume in enumerate((False, True)):
        for adjacency in graph.adjacencies:
            adjacency.drop_index()
        kept = Checkpoints(tmp_path / "kept", 1, resume=resume)
        with room_for(6, graph.vertices), Session(graph, threads=1) as session:
            steps = session.steps(WCC(), kept)
            if not number:
                next(steps), next(steps)
                steps.close()
                continue
            found = session.run(WCC(), kept).fields["component"]
    assert kept.began == 2
    assert np.array_equal(found, answer(graph, WCC(), threads=1)["component"])
