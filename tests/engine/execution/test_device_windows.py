"""Runs whose values of vertices come to a device in pages give the answers of those that have all values.

Values and rows that the device does not have are wrong numbers here (`forgotten`).
"""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock import engine
from penstock.engine import Graph, Program, Session
from penstock.engine.execution import nan_check
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.planning import requirements
from penstock.engine.program.program import Field, Global
from penstock.engine.programs.bfs import BFS, BFSLevels
from penstock.engine.programs.sssp import SSSP
from penstock.engine.resources import direction
from penstock.engine.resources.memory_plan import plan_memory
from penstock.engine.state.device_pages import DevicePages, HostSide
from penstock.storage.base.errors import BudgetError, RunError
from penstock.storage.base.timeline import Timeline
from penstock.storage.checkpoint.page_file import PageFile
from penstock.storage.checkpoint.state_pages import Unit
from penstock.storage.format.frames import Frames
from penstock.transfer.devices.emulated import EmulatedDevice
from support.catalogue_oracles import SOURCE
from support.covering import covering
from support.graphs import on_disk
from support.paged_graphs import (
    AllSend,
    Shares,
    answer,
    assert_equal,
    forgotten,
    in_two_parts,
    no_pages_left,
    pages_of,
)
from support.paged_places import DEVICE, DEVICE_CHUNK, device_pages_of, few_edges, short_of_room
from support.paged_programs import ALL, MAKERS, TRIED
from support.program_cases import Fields

__all__ = ["forgotten"]
pytestmark = pytest.mark.usefixtures("unfused")

CHUNK = DEVICE_CHUNK
"""Rows of a page of the host, and of one of the device."""
VERTICES = 2 * CHUNK + 100
FILES = {1: {}, 2: {"window_vertices": 2 * CHUNK}, 3: {"window_vertices": CHUNK}}
"""Options of files by how many windows they have."""


class Falling(AllSend):
    """Vertices fall to what their neighbors send: all send at first, then some; the sum and the least of all."""

    level = Field(np.int64, fill=1000)
    combine = "min"
    message = np.int64
    max_iter = 4
    by_ranges = True

    def send(vertex_id):  # type: ignore[no-untyped-def]
        return vertex_id % 97

    def edge(sent):  # type: ignore[no-untyped-def]
        return sent + 1

    def vertex(level, incoming):  # type: ignore[no-untyped-def]
        return min(level, incoming)

    def active(level, old_level):  # type: ignore[no-untyped-def]
        return level < old_level

    @Global(np.float64)
    def total(level):  # type: ignore[no-untyped-def]
        return level

    @Global(np.float64, combine="min")
    def least(level):  # type: ignore[no-untyped-def]
        return level


class Lost(AllSend):
    """A vertex of the last page has no number."""

    value = Field(np.float64)
    combine = "sum"
    message = np.float64
    everywhere = True
    max_iter = 3
    by_ranges = True

    def edge(value):  # type: ignore[no-untyped-def]
        return value

    def vertex(incoming, vertex_id):  # type: ignore[no-untyped-def]
        return np.nan if vertex_id == VERTICES - 1 else incoming


Answers = Callable[[Callable[[], Program]], Fields]
PLACES = ("pages", "pages"), ("pages", "device"), ("device", "pages"), ("pages", "cores"), ("cores", "pages")
"""Where values are before a checkpoint, and after it."""
WAYS = "auto", "push", "pull"


@pytest.fixture(scope="module", autouse=True)
def small_pages() -> Iterator[None]:
    """Pages of a chunk."""
    with device_pages_of(CHUNK):
        yield


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[int, bool], Graph]]:
    """By windows in the file, and whether it has in-edges: three pages of a chunk."""
    edges, folder = few_edges(VERTICES), tmp_path_factory.mktemp("pages")
    with pages_of(CHUNK, CHUNK):
        yield {
            (count, both): on_disk(edges, folder / f"{count}{both}.h5", both=both, chunk_edges=1 << 10, **options)
            for count, options in FILES.items()
            for both in (True, False)
        }


@pytest.fixture(scope="module")
def in_memory(graphs: dict[tuple[int, bool], Graph]) -> Answers:
    """What programs answer on the cores, with all values in memory; each once."""
    return cache(lambda make: answer(graphs[1, True], make(), threads=1))


@covering(
    "name, count, way, both, keeps", TRIED, FILES, WAYS, (True, False), (True, False),
    where=lambda name, count, way, both, keeps: both or way == "auto",
)  # fmt: skip
def test_answers_are_those_of_all_values_in_memory(
    name: str,
    count: int,
    way: str,
    both: bool,
    keeps: bool,
    graphs: dict[tuple[int, bool], Graph],
    forgotten: list[Unit],
    in_memory: Answers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """keeps: whether host memory has room for the rows of all indexes."""
    if not keeps:
        monkeypatch.setattr(requirements, "left_for_edges", lambda *given: 1 << 24)
    _compare(MAKERS[name], graphs[count, both], count, forgotten, in_memory, direction=way)


def test_degrees_of_sources_are_those_of_all_edges(
    graphs: dict[tuple[int, bool], Graph], forgotten: list[Unit], in_memory: Answers
) -> None:
    _compare(Shares, graphs[3, False], 1, forgotten, in_memory)


@pytest.mark.parametrize("keeps", [True, False])
def test_rows_that_host_memory_keeps_are_read_once_in_a_session(
    keeps: bool, graphs: dict[tuple[int, bool], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not keeps:
        monkeypatch.setattr(requirements, "left_for_edges", lambda *given: 0)
    graph = graphs[2, True]
    with short_of_room(14), Session(graph, **DEVICE) as session:
        read = []
        for _ in range(2):
            before = graph.index_bytes_read
            session.run(Falling())
            read.append(graph.index_bytes_read - before)
    assert read[0] > 0
    assert (read[1] == 0) == keeps


def test_rows_that_host_memory_keeps_are_those_that_a_run_counts(graphs: dict[tuple[int, bool], Graph]) -> None:
    gc.disable()  # indexes of runs before are in circles
    try:
        with short_of_room(14), Session(graphs[2, True], **DEVICE) as session:
            for name in ("hits", "sssp", "pagerank", "sssp"):
                session.run(MAKERS[name]())
                needs = session._planned
                assert needs is not None
                read = {id(one) for one in (*needs.indexed, *needs.adjacencies)}
                assert 0 < len(session._kept_rows) <= len(read)
    finally:
        gc.enable()


@pytest.mark.parametrize("then", ["run", "close"])
def test_rows_that_host_memory_keeps_go_before_a_run_that_does_not_count_them(
    then: str, graphs: dict[tuple[int, bool], Graph]
) -> None:
    with short_of_room(14), Session(graphs[2, True], **DEVICE) as session:
        session.run(Falling())
        assert session._kept_rows
        with mock.patch.object(session, "_make_room", side_effect=RunError("here")), pytest.raises(RunError):
            session.run(Falling())
        assert session._kept_rows, "the next run keeps them, too"
        with short_of_room(14), mock.patch.object(requirements, "plan_memory", plan_memory):
            session.run(Falling()) if then == "run" else session.close()
        assert not session._kept_rows


def _compare(
    make: Callable[[], Program], graph: Graph, count: int, forgotten: list[Unit], in_memory: Answers, **options: Any
) -> None:
    """A pull that reads nothing of its sources has one window."""
    with short_of_room(14) as counts:
        found = answer(graph, make(), **options, **DEVICE)
    assert set(counts) <= {1, count}
    assert count in counts or options.get("direction") == "pull"
    assert forgotten
    assert_equal(found, in_memory(make))


@covering("name, places", ("hits", "sssp parents"), PLACES, strength=1)
def test_a_run_goes_on_from_its_checkpoint_wherever_values_are(
    name: str, places: tuple[str, str], graphs: dict[tuple[int, bool], Graph], forgotten: list[Unit],
    in_memory: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Iterations in one launch of a device have no checkpoint before the last of them: so each has a launch here."""
    monkeypatch.setattr(CudaKernels, "can_fuse", lambda *_: False)
    graph, make = graphs[2, True], ALL[name]
    rooms = [short_of_room(14) if place == "pages" else nullcontext(list[int]()) for place in places]
    options = [{"threads": 1} if place == "cores" else DEVICE for place in places]
    found, counts = in_two_parts(graph, make, tmp_path / "kept", zip(rooms, options, strict=True))
    assert [bool(some) for some in counts] == [place == "pages" for place in places]
    assert_equal(found, in_memory(make))


@pytest.mark.parametrize("make", [pytest.param(MAKERS["pagerank"], marks=pytest.mark.full), Falling])
def test_globals_are_those_of_each_run_of_a_session(
    make: Callable[[], Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory and in pages in turn; windows begin inside of a page of the device, which is two of the host's."""
    monkeypatch.setattr(EmulatedDevice, "grain", 2 * CHUNK)
    found: dict[bool, list[Any]] = {False: [], True: []}
    with pages_of(CHUNK, CHUNK):
        edges = few_edges(5 * CHUNK - 100)
        graph = on_disk(edges, tmp_path / "g.h5", both=False, chunk_edges=1 << 10, window_vertices=3 * CHUNK)
        with Session(graph, **DEVICE) as session:
            for paged in (True, True, False, True):
                with short_of_room(16) if paged else nullcontext():
                    records = session.run(make()).records
                assert (records[-1].windows > 0) == paged
                found[paged].append([list(record.totals.values()) for record in records])
    for totals in (*found[False], *found[True]):
        np.testing.assert_allclose(totals, found[False][0], rtol=1e-9)


def test_the_memory_of_values_goes_with_the_run(graphs: dict[tuple[int, bool], Graph]) -> None:
    """Of the host, too."""
    with short_of_room(14), Session(graphs[2, True], **DEVICE) as session, no_pages_left():
        session.run(MAKERS["pagerank"]())


def test_values_are_copied_from_and_to_memory_that_is_page_locked_meanwhile(
    graphs: dict[tuple[int, bool], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page of the host, while it is in memory: the driver holds its lock while it copies other memory."""
    locked, copied, parts = dict[int, int](), list[int](), HostSide._at_hand

    def register(device: Any, array: Any) -> None:
        assert array.ctypes.data not in locked
        locked[array.ctypes.data] = array.nbytes

    @contextmanager
    def noted(side: HostSide, *given: Any, **how: Any) -> Iterator[Any]:
        with parts(side, *given, **how) as pairs:
            found = list(pairs)
            copied.extend(locked[here.ctypes.data] - here.nbytes for here, _ in found)
            yield found

    monkeypatch.setattr(HostSide, "_at_hand", noted)
    monkeypatch.setattr(EmulatedDevice, "register", register)
    monkeypatch.setattr(EmulatedDevice, "unregister", lambda device, array: locked.pop(array.ctypes.data))
    with short_of_room(14), Session(graphs[2, True], **DEVICE) as session, no_pages_left():
        session.run(MAKERS["pagerank"]())
    assert copied
    assert min(copied) >= 0
    assert not locked


def test_a_value_that_is_no_number_is_found_in_pages(
    graphs: dict[tuple[int, bool], Graph], forgotten: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a look, by pages, before the last iteration."""
    monkeypatch.setattr(nan_check, "FIRST_LOOK", 1)
    with short_of_room(14), pytest.raises(RunError, match=rf"1 of {VERTICES:,} values .* after 1 iterations"):
        answer(graphs[3, True], Lost(), **DEVICE)


def test_searches_pull_where_that_moves_fewer_bytes(
    graphs: dict[tuple[int, bool], Graph], forgotten: list[Unit], in_memory: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one window in place of those of three, over a slow link, until no edge is left to follow."""
    monkeypatch.setattr(direction, "LOOKS", VERTICES + 1)  # each frontier is weighed
    graph, make = graphs[3, True], MAKERS["bfs levels"]
    with short_of_room(14) as counts, Session(graph, tuning={"link_rate": 1e7}, **DEVICE) as session:
        result = session.run(make())
    assert set(counts) == {1, 3}
    assert {(record.direction, record.windows) for record in result.records} == {("pull", 1), ("push", 3)}
    assert_equal(dict(result.fields), in_memory(make))


@covering("name, window", ("hits", "pagerank", "sssp"), (2, 3), strength=1)
def test_values_are_in_a_file_where_host_memory_has_no_room_either(
    name: str, window: int, forgotten: list[Unit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of the device are two of the host's, and windows of three of these begin inside of one."""
    monkeypatch.setattr(EmulatedDevice, "grain", 2 * CHUNK)
    edges, make = few_edges(5 * CHUNK - 100), ALL[name]
    planned = requirements.in_windows

    def little(*given: Any) -> Any:
        found = planned(*given)
        return replace(found, value_room=8 * 10 * CHUNK)

    with pages_of(CHUNK, CHUNK):
        graph = on_disk(edges, tmp_path / "g.h5", both=False, chunk_edges=1 << 10, window_vertices=window * CHUNK)
        wanted = answer(graph, make(), threads=1)
        with mock.patch.object(requirements, "in_windows", little), short_of_room(28):
            found = answer(graph, make(), **DEVICE)
    assert_equal(found, wanted)


@pytest.mark.parametrize("vertices", [3 * CHUNK - 1, 3 * CHUNK])
def test_a_device_with_room_for_all_pages_has_some_for_where_the_last_row_ends(
    forgotten: list[Unit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vertices: int
) -> None:
    """All values and rows are one page of the device, and are wanted at once; the last row ends in it, or behind it."""
    monkeypatch.setattr(EmulatedDevice, "grain", 3 * CHUNK)
    with pages_of(CHUNK, CHUNK):
        graph = on_disk(few_edges(vertices), tmp_path / "g.h5", both=False, chunk_edges=1 << 10)
        wanted = answer(graph, BFSLevels(SOURCE), threads=1)
        with short_of_room(None):
            found = answer(graph, BFSLevels(SOURCE), direction="push", **DEVICE)
    assert_equal(found, wanted)


@pytest.mark.parametrize("keeps", [False, True])
def test_rows_that_come_with_values_come_packed_beside_the_walk(
    graphs: dict[tuple[int, bool], Graph], forgotten: list[Unit], monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    """The threads that move the device's pages read them, once where host memory keeps them; none is decoded there."""
    copy, decode, readers, decoded = Frames.copy_payload, Frames.decode, set[str](), list[int]()

    def noted(frames: Frames, *given: Any) -> None:
        readers.add(threading.current_thread().name.rstrip("_0123456789"))
        copy(frames, *given)

    def noted_whole(frames: Frames, chunk: int, *given: Any) -> None:
        decoded.append(chunk)
        decode(frames, chunk, *given)

    monkeypatch.setattr(requirements, "left_for_edges", lambda *given: 1 << 30 if keeps else 0)
    with short_of_room(8), Session(graphs[3, False], **DEVICE) as session:
        steps = session.steps(MAKERS["pagerank"]())
        next(steps)
        monkeypatch.setattr(Frames, "copy_payload", noted)
        monkeypatch.setattr(Frames, "decode", noted_whole)
        next(steps)
    assert readers == (set() if keeps else {"penstock-state"})
    assert not decoded


def test_rows_come_ahead_before_values_of_the_page_that_they_are_not_wanted_with(
    graphs: dict[tuple[int, bool], Graph], forgotten: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels read where the row behind a view begins: so rows of a page are wanted with values of the one before."""
    ahead, asked = DevicePages._read_ahead, list[list[Unit]]()

    def noted(pages: DevicePages, units: Iterable[Unit]) -> None:
        asked.append(list(units))
        ahead(pages, asked[-1])

    monkeypatch.setattr(DevicePages, "_read_ahead", noted)
    with short_of_room(14), Session(graphs[3, False], **DEVICE) as session:
        session.run(MAKERS["pagerank"]())
    walks = [units for units in asked if {".sent", "rows"} <= {name.split()[0] for name, _ in units}]
    assert walks
    for units in walks:
        wanted = [number - name.startswith("rows") for name, number in units]
        assert wanted == sorted(wanted)


def test_a_forecast_tells_what_goes_between_host_memory_and_the_file(
    forgotten: list[Unit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent values are read once for each of seven windows, and host memory has room for six of their seven pages.

    A trace has both ways of values apart.
    """
    planned, made, files = requirements.in_windows, engine.session.PageFile, list[PageFile]()

    def little(*given: Any) -> Any:
        return replace(planned(*given), value_room=8 * 6 * CHUNK)

    def noted(*given: Any) -> PageFile:
        files.append(made(*given))
        return files[-1]

    with pages_of(CHUNK, CHUNK):
        graph = on_disk(few_edges(7 * CHUNK - 100), tmp_path / "g.h5", both=False, window_vertices=CHUNK)
        monkeypatch.setattr(engine.session, "PageFile", noted)
        room, program, moved = mock.patch.object(requirements, "in_windows", little), MAKERS["pagerank"], list[int]()
        timeline = Timeline()
        with room, short_of_room(6), Session(graph, timeline=timeline, **DEVICE) as session:
            sweep = session.forecast(program()).later
            for _ in session.steps(program()):
                moved.append(files[-1].bytes_moved)
    assert np.diff(moved).tolist() == pytest.approx([sweep.file_bytes] * 2, rel=0.5)  # what comes ahead leaves again
    assert (sweep.limit, sweep.value_tasks) == ("values", 3 * 7 * 7)  # windows, ranges
    told = Counter[str]()
    for span in timeline.spans():
        told[span.group] += span.work.bytes if span.name in ("read values", "write values") else 0
    assert told["disk"] == files[-1].bytes_moved
    assert told["link"] > sweep.value_bytes


def test_the_least_memory_of_a_device_is_that_of_a_window(
    graphs: dict[tuple[int, bool], Graph], in_memory: Answers
) -> None:
    graph = graphs[3, True]
    with short_of_room(None) as counts:
        with pytest.raises(BudgetError, match=rf"values of a window of {CHUNK} vertices .* more --windows") as refused:
            answer(graph, BFS(SOURCE), device_memory=1 << 20, **DEVICE)
        memory = {"host_memory": 1 << 30, "device_memory": refused.value.least_mib << 20}
        found = answer(graph, BFS(SOURCE), **memory, **DEVICE)
        with Session(graph, **memory, **DEVICE) as session:
            planned = session.forecast(BFS(SOURCE))
    assert set(counts) == {planned.windows} == {3}
    assert planned.first.value_bytes > 0
    assert_equal(found, in_memory(MAKERS["bfs"]))


def test_synchronous_runs_of_small_partitions_give_the_same(
    graphs: dict[tuple[int, bool], Graph], forgotten: list[Unit], in_memory: Answers
) -> None:
    graph = graphs[2, False]
    with short_of_room(14):
        found = answer(graph, SSSP(SOURCE), mode="sync", partition_bytes=4096, **DEVICE)
    assert_equal(found, in_memory(MAKERS["sssp"]))
