"""Runs whose values of vertices are in a file, and come by windows, give the answers of those that hold all of them.

Values that are not in memory are wrong numbers here, where they are zeros otherwise, so that a step that asks for a
vertex too many fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Graph, Program, Session
from penstock.engine.execution import windows
from penstock.engine.execution.windows import WindowCut, Windows, cut_windows
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.planning import requirements
from penstock.engine.program.program import Field, Start
from penstock.engine.programs import bfs
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import ChebyshevPageRank, PageRank
from penstock.engine.programs.sssp import SSSP, HugeSSSP
from penstock.engine.state.compacted_rows import CompactedRows
from penstock.engine.state.state import State
from penstock.engine.state.state_arrays import StepValues
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.base.timeline import Timeline
from penstock.storage.checkpoint.state_pages import StatePages, Unit
from penstock.transfer.prefetch_queue import PrefetchQueue
from penstock.transfer.values.view import View
from support.catalogue_oracles import SOURCE
from support.covering import covering
from support.graphs import on_disk
from support.oracles import EdgeList
from support.paged_graphs import (
    PAGE,
    VERTICES,
    InMemory,
    Shares,
    answer,
    assert_equal,
    forgotten,
    graphs_in_windows,
    in_memory,
    in_two_parts,
    no_edges_kept,
    no_pages_left,
    paged_graphs,
    pages_of,
    room_for,
    unnamed,
)
from support.paged_programs import ALL, MAKERS, TRIED, WAYS
from support.program_cases import CASES, Fields

__all__ = ["forgotten", "graphs_in_windows", "in_memory", "paged_graphs"]

ALONE = WAYS | {"three threads": {"threads": 3}}
WINDOWS = (1, 2, 6)
PATTERN = np.uint64(0xF0F0_F0F0_F0F0_F0F0)


class Busiest(Program):
    """Levels, and the most edges that a vertex of the level before has which leads here."""

    level = Field(np.uint32, fill=2**32 - 1)
    most = Field(np.uint32)
    combine = "max"
    message = np.uint32
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, Any]) -> Start:
        state["level"][SOURCE] = 0
        return Start(active=np.array([SOURCE]))

    def edge(degree):  # type: ignore[no-untyped-def]
        return degree

    def cond(level):  # type: ignore[no-untyped-def]
        return level == 2**32 - 1

    def vertex(incoming, iteration):  # type: ignore[no-untyped-def]
        return iteration + 1, incoming


@covering(
    "name, way, directed, count, kept", sorted(MAKERS), ALONE, (True, False), WINDOWS, (True, False),
    rare=MAKERS.keys() - TRIED,
)  # fmt: skip
def test_answers_are_those_of_all_values_in_memory(
    name: str, way: str, directed: bool, count: int, kept: bool, paged_graphs: dict[bool, Graph],
    in_memory: InMemory, forgotten: list[Unit],
) -> None:  # fmt: skip
    make, options = MAKERS[name], {"threads": 1} | ALONE[way]
    _compare(make, paged_graphs[directed], options, (count, kept), forgotten, in_memory(make, directed))


def _compare(
    make: Callable[[], Program], graph: Graph, options: dict[str, Any], room: tuple[int, bool], forgotten: list[Unit],
    wanted: Fields,
) -> Fields:  # fmt: skip
    count, kept = room
    with room_for(count, graph.vertices, kept=kept) as counts:
        found = answer(graph, make(), **options)
    assert max(counts) == count or (kept and counts)
    assert kept or set(counts) == {count}
    assert forgotten or count < 6
    assert_equal(found, wanted)
    return found


@pytest.mark.parametrize(
    "make", [lambda: ChebyshevPageRank(tol=0, max_iter=4, weight=None), lambda: HugeSSSP(SOURCE)], ids=["ranks", "far"]
)
def test_forms_for_some_graphs_have_values_in_a_file_too(
    make: Callable[[], Program], paged_graphs: dict[bool, Graph], in_memory: InMemory, forgotten: list[Unit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(SSSP, "form", lambda program, graph, mode: program)
    _compare(make, paged_graphs[False], {"threads": 1}, (6, True), forgotten, in_memory(make, False))


@covering("paged, direction, threads", (True, False), ("push", "pull"), (1, 2), strength=2)
def test_sweeps_neither_write_marks_nor_read_them(
    paged: bool, direction: str, threads: int, paged_graphs: dict[bool, Graph], in_memory: InMemory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """So that the bitmap, which is of zeros, takes no memory."""
    made, begin = [], State.__init__

    def marked(state: State, *args: Any, **options: Any) -> None:
        begin(state, *args, **options)
        state.pending.words[:], state.pending.summary[:] = PATTERN, PATTERN
        made.append(state.pending)

    monkeypatch.setattr(State, "__init__", marked)
    room = room_for(6, paged_graphs[True].vertices) if paged else nullcontext()
    with room:
        found = answer(paged_graphs[True], MAKERS["pagerank"](), threads=threads, direction=direction)
    np.testing.assert_allclose(found["rank"], in_memory(MAKERS["pagerank"], True)["rank"], rtol=1e-12)
    for bitmap in made:
        assert (bitmap.words == PATTERN).all()
        assert (bitmap.summary == PATTERN).all()
    assert made


class Forgetful(BFS):
    """A search with a start of its own, which does not say whether it goes by ranges."""

    starts_anywhere = False

    def start(self, graph: Graph, state: dict[str, Any]) -> Start:
        return super().start(graph, state)


def test_a_refusal_names_the_class_that_does_not_say_that_it_goes_by_ranges(paged_graphs: dict[bool, Graph]) -> None:
    for kind, named in ((BFS, False), (Forgetful, True)):
        with (
            mock.patch.object(requirements, "plan_memory", side_effect=BudgetError("--host-memory", "so much", 7)),
            Session(paged_graphs[True]) as session,
            pytest.raises(BudgetError) as refused,
        ):
            session.run(kind(SOURCE))
        assert ("say by_ranges = True in Forgetful" in str(refused.value)) == named


@covering("name, kept", ("cf", "sssp"), (False, True), strength=1)
def test_pages_of_long_values_are_parts_of_those_of_rows(
    name: str, kept: bool, paged_graphs: dict[bool, Graph], in_memory: InMemory, forgotten: list[Unit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    make, graph = ALL[name], paged_graphs[True]
    monkeypatch.setattr(requirements, "VALUE_PAGE_BYTES", 0)
    pages = mock.patch.object(StatePages, "__init__", autospec=True, side_effect=StatePages.__init__)
    with pages as made:
        _compare(make, graph, {"threads": 2}, (6, kept), forgotten, in_memory(make, True))
    assert made.call_args.args[2] == PAGE // 2


@pytest.mark.parametrize(("count", "direction"), [(1, "auto"), (6, "auto"), (1, "pull")])
@pytest.mark.parametrize("name", ["bfs", "bfs levels", "bfs target", "bfs cutoff"])
def test_searches_of_several_rounds_have_their_levels_from_the_file(
    name: str, count: int, direction: str, paged_graphs: dict[bool, Graph], in_memory: InMemory, forgotten: list[Unit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    make, graph, rounds = ALL[name], paged_graphs[True], bfs.InRounds.phases
    began = mock.patch.object(bfs.InRounds, "phases", autospec=True, side_effect=rounds)
    wanted = in_memory(make, True)
    monkeypatch.setattr(bfs, "LEVELS", 1)
    with began as phases:
        options: dict[str, Any] = {"threads": 1, "direction": direction}
        found = _compare(make, graph, options, (count, True), forgotten, wanted)
    np.testing.assert_array_equal(found.get("parent"), wanted.get("parent"))
    assert phases.called


@pytest.mark.parametrize(
    ("unvisited", "accepted"),
    [(0, 0), (1 << 12, 1 << 12), (1 << 20, 1 << 20), (0, 1 << 20), (1 << 20, 0), (1 << 20, 1 << 15)],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_a_search_reads_no_edges_that_its_pushes_have_kept(
    unvisited: int, accepted: int, ordered: bool, paged_graphs: dict[bool, Graph], in_memory: InMemory,
    forgotten: list[Unit], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Rows of vertices that are not visited, for levels; edges that were accepted, for parents.

    ordered: whether partitions are walked in their order, or as they happen to come.
    """
    graph, keep, choose = paged_graphs[True], Windows._kept, random.Random(unvisited + accepted)

    def keep_some(self: Windows, rows: CompactedRows, view: View) -> CompactedRows | None:
        few = (accepted if rows is self._state.accepted else unvisited) - rows.nbytes
        return keep(self, rows, view) if sum(array.nbytes for array in (view.neighbors, view.rows)) <= few else None

    def in_more_room(*given: Any) -> Any:
        found = in_room(*given)
        return replace(found, value_room=found.value_room + (1 << 20))

    monkeypatch.setattr(Windows, "_kept", keep_some)
    if not ordered:
        monkeypatch.setattr(PrefetchQueue, "_arrived", lambda self: choose.choice([*self._coming] or [None]))
    with room_for(1, graph.vertices), no_edges_kept():
        in_room, how = requirements.in_windows, {"direction": "push", "partition_bytes": 1 << 15}
        with mock.patch.object(requirements, "in_windows", in_more_room), Session(graph, threads=2, **how) as session:
            found = session.run(BFS(SOURCE))
    wanted = in_memory(MAKERS["bfs"], True)
    for name, values in found.fields.items():
        np.testing.assert_array_equal(np.asarray(values), wanted[name])
    read = [any(task.partitions for task in record.tasks) for record in found.records]
    *levels, of_parents = read
    assert levels == sorted(levels, reverse=True)
    assert (False in levels) == (unvisited == 1 << 20)
    assert of_parents == (accepted < 1 << 20)


@pytest.mark.parametrize("width", [1, 40, 5000])
def test_a_search_that_reads_some_chunks_keeps_no_rows(width: int, tmp_path: Path) -> None:
    """Layers, each in a page of its own; other edges fill chunks that pushes leave out."""
    pages, random = VERTICES // PAGE, np.random.default_rng(1)
    layers = np.concatenate([np.arange(width) + page * PAGE for page in range(pages - 1)])
    others = np.concatenate([np.arange(5000, PAGE) + page * PAGE for page in range(pages)])
    ends = random.choice(others, (2, 45_000 - width * pages))
    sources = np.concatenate([np.full(width - 1, 0), layers, ends[0]])
    targets = np.concatenate([np.arange(1, width), layers + PAGE, ends[1]])
    with pages_of(PAGE):
        edges = EdgeList(VERTICES, sources, targets, None, directed=True)
        graph = on_disk(edges, tmp_path / "layers.h5", chunk_edges=1 << 13)
        wanted = answer(graph, BFS(0), threads=1)
        with no_edges_kept(), room_for(1, VERTICES):
            found = answer(graph, BFS(0), threads=1, direction="push", partition_bytes=1 << 15)
    assert np.count_nonzero(wanted["level"] < pages + 1) == width * pages
    assert_equal(found, wanted)


@covering(
    "name, paged", ("bfs", "cf", "hits", "sssp", "sssp parents"),
    ((True, False), (True, True), (False, True)), strength=1,
)  # fmt: skip
def test_a_run_goes_on_from_its_checkpoint_wherever_values_are(
    name: str, paged: tuple[bool, bool], paged_graphs: dict[bool, Graph], in_memory: InMemory,
    forgotten: list[Unit], tmp_path: Path,
) -> None:  # fmt: skip
    graph, make = paged_graphs[True], ALL[name]
    rooms = [room_for(6, graph.vertices) if in_file else nullcontext(list[int]()) for in_file in paged]
    found, counts = in_two_parts(graph, make, tmp_path / "kept", [(room, {"threads": 1}) for room in rooms])
    assert (bool(counts[0]), bool(counts[1])) == paged
    assert_equal(found, in_memory(make, True))


@pytest.mark.parametrize("name", ["coloring", "diameter", "mis"])
def test_a_lighter_form_goes_on_where_there_is_memory_for_the_other(
    name: str, paged_graphs: dict[bool, Graph], in_memory: InMemory, forgotten: list[Unit], tmp_path: Path
) -> None:
    graph, make = paged_graphs[True], CASES[name][0]
    rooms = [room_for(6, graph.vertices), nullcontext(list[int]())]
    found, counts = in_two_parts(graph, make, tmp_path / "kept", [(room, {"threads": 1}) for room in rooms])
    assert counts[0]
    assert_equal(found, in_memory(make, True))


@covering("name, way, directed, count", sorted(MAKERS), ALONE, (True, False), (2, 6), strength=1,
    rare=MAKERS.keys() - TRIED,
)  # fmt: skip
def test_windows_of_the_file_give_the_same_answers(
    name: str, way: str, directed: bool, count: int, graphs_in_windows: dict[bool, Graph],
    in_memory: InMemory, forgotten: list[Unit],
) -> None:  # fmt: skip
    graph, wanted = graphs_in_windows[directed], in_memory(MAKERS[name], directed)
    with room_for(count, graph.vertices) as counts, no_edges_kept():
        found = answer(graph, MAKERS[name](), **{"threads": 1} | ALONE[way])
    assert max(counts) <= max(count, 3)
    assert forgotten
    assert_equal(found, wanted)


@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize(("count", "reads"), [(2, 1), (3, 1), (6, 2)])
def test_windows_of_the_file_are_read_once_where_each_has_room(
    direction: Any, count: int, reads: int, graphs_in_windows: dict[bool, Graph]
) -> None:
    graph = graphs_in_windows[True]
    program = PageRank(tol=0, max_iter=2, weight=None)
    copies = mock.patch.object(HostKernels, "in_window", autospec=True, side_effect=HostKernels.in_window)
    with (
        room_for(count, graph.vertices),
        no_edges_kept(),
        copies as copied,
        Session(graph, threads=1, direction=direction) as session,
    ):
        found = session.run(program)
    way = "out" if direction == "push" else "in"
    for record in found.records:
        assert {task.direction for task in record.tasks} == {f"{way}/windows/{number}" for number in range(3)}
        assert sum(task.edges for task in record.tasks) == reads * graph.edges
        assert record.windows == max(count, 3)
    assert copied.called == (reads > 1)


@covering("make, kept", (Busiest, Shares), (True, False), strength=1)
def test_degrees_of_sources_are_those_of_all_edges(
    make: type[Program], kept: bool, graphs_in_windows: dict[bool, Graph], forgotten: list[Unit]
) -> None:
    graph, options = graphs_in_windows[True], {"threads": 1, "direction": "push"}
    with no_edges_kept():
        _compare(make, graph, options, (6, kept), forgotten, answer(graph, make(), **options))


def test_vertices_are_cut_as_moves_the_fewest_bytes(graphs_in_windows: dict[bool, Graph]) -> None:
    adjacency, page = graphs_in_windows[True].out, PAGE
    count, size, steps = adjacency.vertices, adjacency.window_vertices, StepValues.of(BFS(SOURCE))
    assert cut_windows(adjacency, steps, count, 6 * PAGE, page, (4, 4)) == WindowCut(6 * PAGE, 1, 1)
    assert cut_windows(adjacency, steps, count, 3 * PAGE, page, (4, 4)) == WindowCut(size, 3, 1, size)
    assert cut_windows(adjacency, steps, count, 3 * PAGE, page, (4, 4000)) == WindowCut(3 * PAGE, 2, 2)
    assert cut_windows(adjacency, steps, count, PAGE, page, (4, 4)) == WindowCut(PAGE, 6, 2, size)
    assert cut_windows(adjacency, steps, count, 3 * PAGE, 3 * PAGE, (4, 4)) == WindowCut(3 * PAGE, 2, 2)
    assert cut_windows(adjacency, steps, count, 5 * PAGE, page, (4, 4000)) == WindowCut(3 * PAGE, 2, 2), "of equal size"
    assert cut_windows(adjacency, replace(steps, asks_degree=True), count, 3 * PAGE, page, (4, 4)).of_file == 0
    room = 4000 * count
    assert cut_windows(adjacency, steps, count, 3 * PAGE, page, (0, 4000), room).of_file == size, "all values stay"
    parts = list(WindowCut(PAGE, 6, 2, size).parts(count))
    assert parts[:3] == [(0, PAGE, 0), (PAGE, 2 * PAGE, 0), (2 * PAGE, 3 * PAGE, 1)]
    assert parts[-1] == (5 * PAGE, count, 2)


def test_sweeps_end_where_those_in_memory_do(paged_graphs: dict[bool, Graph]) -> None:
    """By what the program says, while edges of another sweep have begun to come."""
    graph, ends = paged_graphs[True], []
    for room in (nullcontext(), room_for(2, graph.vertices)):
        for adjacency in graph.adjacencies:
            adjacency.drop_index()
        with room, Session(graph, threads=1) as session:
            result = session.run(PageRank(tol=1e-3, max_iter=50, weight=None))
        ends.append((result.converged, result.iterations))
    assert ends[0] == ends[1]
    assert ends[0][0] and ends[0][1] < 50  # noqa: PT018


def test_bytes_of_values_are_about_those_that_sweeps_read_and_write(paged_graphs: dict[bool, Graph]) -> None:
    graph, program = paged_graphs[True], PageRank(tol=0, max_iter=3, weight=None)
    with room_for(3, graph.vertices), Session(graph, threads=1) as session:
        told = session.forecast(program)
        records = session.run(program).records
    assert (told.direction, told.windows) == ("push", 3)
    for record in records:
        assert (record.direction, record.windows) == ("push", 3)
    moved = sum(record.value_bytes for record in records)  # some of an iteration's are written in the next one
    assert 0.55 < moved / (3 * told.later.value_bytes) < 1.1  # the forecast does not know which pages stay
    assert told.value_folders == (graph.files[0].parent,)
    assert told.value_file >= 2 * 8 * graph.vertices


def test_values_go_to_the_folder_that_is_named(
    paged_graphs: dict[bool, Graph], in_memory: InMemory, tmp_path: Path
) -> None:
    graph, wanted = paged_graphs[True], in_memory(MAKERS["sssp"], True)
    before = set(unnamed(graph.files[0].parent))  # of runs of earlier tests of this process
    with room_for(6, graph.vertices), Session(graph, threads=1, scratch=str(tmp_path)) as session:
        steps = session.steps(SSSP(SOURCE))
        next(steps)
        assert len(list(unnamed(tmp_path))) == 1
        assert set(unnamed(graph.files[0].parent)) <= before
        steps.close()
        np.testing.assert_array_equal(session.run(SSSP(SOURCE)).fields["distance"], wanted["distance"])
    with room_for(6, graph.vertices), Session(graph, threads=1, scratch=tmp_path / "none") as session:
        for asked in (session.forecast, session.run):
            with pytest.raises(
                InputError, match=r"none: the file for vertex state needs .* name another folder \(--scr"
            ):
                asked(SSSP(SOURCE))


def test_levels_of_rounds_go_to_the_folder_that_is_named(
    paged_graphs: dict[bool, Graph], in_memory: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = paged_graphs[True]
    monkeypatch.setattr(bfs, "LEVELS", 1)
    stored = mock.patch.object(bfs, "values_in_file", side_effect=bfs.values_in_file)
    with room_for(6, graph.vertices), stored as files, Session(graph, threads=1, scratch=tmp_path) as session:
        level = session.run(BFS(SOURCE)).fields["level"]
    assert [call.args[0] for call in files.call_args_list] == [[tmp_path]]
    np.testing.assert_array_equal(level, in_memory(MAKERS["bfs"], True)["level"])


def test_the_memory_of_values_goes_with_the_run(paged_graphs: dict[bool, Graph]) -> None:
    graph = paged_graphs[True]
    with room_for(6, graph.vertices), Session(graph, threads=1) as session, no_pages_left():
        session.run(SSSP(SOURCE))


def test_values_are_read_and_written_beside_the_kernels(paged_graphs: dict[bool, Graph]) -> None:
    graph, timeline = paged_graphs[True], Timeline()
    with room_for(6, graph.vertices), Session(graph, threads=1, timeline=timeline) as session:
        result = session.run(PageRank(tol=0, max_iter=2, weight=None))
    told = {(span.group, span.name) for span in timeline.spans()}
    assert {("disk", "read values"), ("disk", "write values")} <= told
    assert result.value_bytes > 0
    assert [record.windows for record in result.records] == [6, 6]
    for record in result.records:
        assert record.direction == "push", "a pull would write all messages once for each window"
        assert record.value_seconds > 0
        told = record.summary()
        assert (told["windows"], told["value_bytes"]) == (6, record.value_bytes)


def test_a_window_has_the_room_that_two_ranges_of_rows_leave() -> None:
    assert windows.window_vertices(2 * 4 * 300 + 8 * 250, (8, 4), 100, 300) == 200
    assert windows.window_vertices(0, (8, 4), 100, 300) == 100
    assert windows.window_vertices(2 * 4 * 300 + 5, (0, 4), 100, 300) == 500
