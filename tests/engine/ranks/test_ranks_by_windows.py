"""Ranks whose values of vertices are in files of theirs, and come by windows, give the answers of one process."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from penstock.engine import Graph, Session
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution import owned_values, windows
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.wcc import WCCByLabels
from penstock.storage.checkpoint.state_pages import Unit
from support.catalogue_oracles import SOURCE
from support.covering import covering
from support.forced_moves import moving
from support.graphs import on_disk
from support.paged_graphs import (
    PAGE,
    InMemory,
    answer,
    assert_equal,
    edges,
    forgotten,
    graphs_in_windows,
    in_memory,
    no_edges_kept,
    no_pages_left,
    paged_graphs,
    pages_of,
    room_for,
)
from support.paged_places import by_windows
from support.paged_programs import ALL, MAKERS, OTHERS, TRIED, WAYS
from support.program_cases import Fields
from support.thread_ranks import ThreadRanks, on_ranks

__all__ = ["forgotten", "graphs_in_windows", "in_memory", "paged_graphs"]


@covering(
    "name, way, directed, count, kept",
    sorted(MAKERS),
    WAYS,
    (True, False),
    (1, 2, 6),
    (True, False),
    strength=1,
    rare=MAKERS.keys() - TRIED,
)
def test_answers_are_those_of_one_process(
    name: str, way: str, directed: bool, count: int, kept: bool, paged_graphs: dict[bool, Graph],
    in_memory: InMemory, forgotten: list[Unit],
) -> None:  # fmt: skip
    graph, wanted = paged_graphs[directed], in_memory(ALL[name], directed)
    for found in by_windows(MAKERS[name], graph, 2, count, kept=kept, **WAYS[way]):
        assert_equal(found, wanted)
    assert forgotten or count < 6


@covering(
    "name, way, directed, size", sorted(MAKERS), WAYS, (True, False), (2, 3), strength=1,
    rare=MAKERS.keys() - TRIED,
)  # fmt: skip
def test_windows_of_the_file_give_the_same_answers_while_bounds_move(
    name: str, way: str, directed: bool, size: int, graphs_in_windows: dict[bool, Graph],
    in_memory: InMemory, forgotten: list[Unit],
) -> None:  # fmt: skip
    graph = graphs_in_windows[directed]
    with no_edges_kept(), moving():
        for found in by_windows(MAKERS[name], graph, size, 6, **WAYS[way]):
            assert_equal(found, in_memory(ALL[name], directed))


def test_a_sweep_both_ways_along_out_edges_alone_pulls_from_all_vertices(tmp_path: Path) -> None:
    with pages_of(PAGE):
        graph = on_disk(edges(directed=True), tmp_path / "out.h5", both=False, chunk_edges=1 << 13)
        wanted = answer(graph, OTHERS["heat"](), threads=1)
        for found in by_windows(OTHERS["heat"], graph, 2, 6):
            assert_equal(found, wanted)


@pytest.mark.parametrize("name", ["bfs", "pagerank", "sssp", "wcc"])
def test_ranks_divide_what_is_read_and_written_of_values(name: str, paged_graphs: dict[bool, Graph]) -> None:
    graph = paged_graphs[True]

    def moved(ranks: ThreadRanks) -> int:
        with Session(Graph.open(graph.files[0]), ranks=ranks, threads=1) as session:
            program = WCCByLabels() if name == "wcc" else MAKERS[name]()  # one process links trees
            return sum(one.value_bytes for one in session.run(program).records)

    with room_for(6, graph.vertices):
        (alone,) = on_ranks(1, moved)
        assert alone
        with no_pages_left():
            for each in on_ranks(2, moved):  # a page of six is of both
                assert each < 0.75 * alone


def test_no_more_values_of_listed_vertices_travel_at_once_than_a_page_has(
    paged_graphs: dict[bool, Graph], in_memory: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths, gather = [], owned_values.gather_parts

    def counted(ranks: ThreadRanks, part: Any, counts: Any) -> Any:
        lengths.append(int(counts.sum()))
        return gather(ranks, part, counts)

    monkeypatch.setattr(windows, "FEW", 0)
    monkeypatch.setattr(owned_values, "gather_parts", counted)
    for found in by_windows(MAKERS["bfs"], paged_graphs[True], 3, 1, kept=True, direction="push"):
        assert_equal(found, in_memory(MAKERS["bfs"], True))
    assert PAGE // 2 < max(lengths) <= PAGE


def test_a_search_brings_all_edges_that_a_rank_may_read(paged_graphs: dict[bool, Graph]) -> None:
    def work(ranks: ThreadRanks) -> bool:
        with Session(Graph.open(paged_graphs[True].files[0]), ranks=ranks, threads=1, direction="push") as session:
            session.run(BFS(SOURCE))
            assert session._equipment is not None
            return session._equipment.pipeline.directory("out").whole(with_weights=False)

    assert on_ranks(4, work) == [True] * 4


@covering("name, sizes", ("bfs", "hits", "sssp"), ((2, 3), (2, 1), (1, 2)), strength=1)
def test_a_run_goes_on_from_its_checkpoint_with_other_ranks(
    name: str, sizes: tuple[int, int], paged_graphs: dict[bool, Graph], in_memory: InMemory,
    forgotten: list[Unit], tmp_path: Path,
) -> None:  # fmt: skip
    graph = paged_graphs[True]

    def work(ranks: ThreadRanks, resume: bool) -> Fields | None:
        kept = Checkpoints(tmp_path / "kept", 1, resume=resume, follows=ranks.rank > 0)
        with Session(Graph.open(graph.files[0]), ranks=ranks, threads=1) as session:
            if resume:
                return dict(session.run(MAKERS[name](), kept).fields)
            steps = session.steps(MAKERS[name](), kept)
            for _ in range(3):
                next(steps)
            steps.close()
        return None

    with room_for(6, graph.vertices) as counts:
        on_ranks(sizes[0], partial(work, resume=False))
        for found in on_ranks(sizes[1], partial(work, resume=True)):
            assert found is not None
            assert_equal(found, in_memory(ALL[name], True))
    assert counts
