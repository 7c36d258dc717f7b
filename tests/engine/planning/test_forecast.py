"""Forecasts hold: the bytes foretold are those that a run allocates, reads and copies; nothing is read to tell them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Session
from penstock.engine.execution.windows import WindowCut
from penstock.engine.planning.forecast import EDGE_PICKS, ROW_PICKS, Sweep
from penstock.engine.planning.rank_forecast import ROWS, TRIANGLES
from penstock.engine.program.program import Program
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.triangles import Triangles
from penstock.engine.resources import memory_plan
from penstock.engine.resources.config import Config
from penstock.engine.state.state import State
from penstock.storage.base.errors import InputError
from penstock.transfer.devices import cuda
from penstock.transfer.planning.host_budget import HostBudget
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.rates import Rates
from support.covering import covering
from support.graphs import in_memory, on_disk, shape
from support.small_host import dividing, packing

RATES = Rates(disk_bytes=1e6, decode_bytes=1e6, kernel_edges=1e6, copy_bytes=1e6, line_rate=1e4, sector_rate=1e4)


@pytest.fixture(autouse=True)
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return on_disk(shape("skewed", weights="uint8"), tmp_path_factory.mktemp("g") / "g.h5", chunk_edges=32)


def kept_on_host(slots: int) -> Any:
    """A stand-in for `divide`: a host that keeps so many partitions of 64 edges."""

    def divide(config: Config, needs: Any, graph: Graph, partition_bytes: int) -> HostBudget:
        return HostBudget(64, 2, slots, 2, False, 4)

    return divide


def assert_read(told_bytes: int, record: Any) -> None:
    """Of so many bytes of chunks were read; reads are of whole pages."""
    chunks = sum(task.chunks_read for task in record.tasks)
    assert told_bytes <= record.bytes_disk <= told_bytes + 2 * 4096 * chunks
    assert (told_bytes > 0) == (record.bytes_disk > 0)


def sweeps(session: Session, count: int) -> list[Any]:
    return session.run(PageRank(tol=0, max_iter=count, weight=False)).records


def test_memory_is_what_a_run_allocates(graph: Graph) -> None:
    with Session(graph, host_memory="1GiB", threads=2) as session:
        told = session.forecast(PageRank(weight=False))
        assert session._equipment is None
        loop = session._loop(PageRank(weight=False))
        made = session._equipment
        assert made is not None
        assert told.host.parts["cache"] == made.pipeline.cache.nbytes
        assert told.host.parts["reader"] >= made.reader.memory_bytes
        assert told.partition_bytes == made.pipeline.options.partition_edges * 4
        assert told.host.whole
        assert told.host.total <= told.host.budget == 1 << 30
        state = loop.state
        assert isinstance(state, State)
        arrays = [
            *state.fields.values(),
            state.sent,
            state.vertices,
            state.work,
            state.partial,
        ]
        assert state.incoming is state.fields["rank"]
        bitmaps = (state.pending, state.active, state.touched)
        arrays += [words for bitmap in bitmaps for words in (bitmap.words, bitmap.summary)]
        assert told.host.parts["state"] == pytest.approx(sum(array.nbytes for array in arrays), abs=8192)
        indexes = [adjacency.index().nbytes for adjacency in (graph.out, graph.into)]
        assert told.host.parts["index"] == pytest.approx(sum(indexes), abs=2 * 4096)


@pytest.mark.parametrize("slots", [0, 1, 7, 10_000])
def test_bytes_from_disk_are_those_that_sweeps_read(graph: Graph, monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    partitions = -(-graph.edges // 64)
    dividing(monkeypatch, kept_on_host(min(slots, partitions - 1)))
    with Session(graph, rates=RATES) as session:
        told = session.forecast(PageRank(tol=0, max_iter=4, weight=False))
        first, *later = sweeps(session, 4)
    assert_read(told.first.disk_bytes, first)
    for record in later:
        assert_read(told.later.disk_bytes, record)
    assert told.first.routes == {"filter": partitions}
    assert told.later.routes.get("resident", 0) == min(slots, partitions - 1)
    assert told.most_iterations == 4
    assert told.most_seconds == pytest.approx(told.first.seconds + 3 * told.later.seconds)


def test_seconds_are_those_of_the_busiest_resource(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    dividing(monkeypatch, kept_on_host(3))
    rates = Rates(disk_bytes=1e3, decode_bytes=1e9, kernel_edges=1e9)
    with Session(graph, rates=rates) as session:
        told = session.forecast(PageRank(weight=False))
    assert told.first.limit == "disk"
    assert told.first.seconds == pytest.approx(told.first.disk_bytes / 1e3)
    assert told.later.seconds < told.first.seconds


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"device_edge_memory": 2500},
        {"device_edge_memory": 2500, "slots": 4},
        {"device_edge_memory": 2500, "slots": 4, "route": "auto", "tuning": {"combine": 1, "feedback": False}},
    ],
)
def test_what_travels_over_a_link_is_foretold(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    options = dict(options)
    slots = options.pop("slots", None)
    if slots is not None:
        monkeypatch.setattr(memory_plan, "divide_host_memory", kept_on_host(slots))
    given = {"device": "emulated", "route": "filter", "partition_bytes": 256, "rates": RATES, "tuning": {"combine": 1}}
    given |= options
    with Session(graph, packed="never", **given) as session:
        told = session.forecast(PageRank(tol=0, max_iter=3, weight=False))
        assert session._device.bytes_in == 0
        records = sweeps(session, 3)
        cache = session._equipment.pipeline.cache
    assert told.placement is not None
    assert told.placement.parts["cache"] == cache.nbytes
    for record, sweep in zip(records, (told.first, told.later, told.later), strict=True):
        assert_read(sweep.disk_bytes, record)
    moved = [sum(task.bytes_link for task in record.tasks) for record in records]
    assert moved == [told.first.link_bytes, *[told.later.link_bytes] * 2]


HOMES: dict[str, dict[str, Any]] = {
    "memory": {},
    "both": {"host": 1, "room": True},
    "packed": {"host": 1},
    "some": {"host": 0.4},
    "none": {"host": 0},
}


@covering("share, route, home", [0.0, 0.3, 1.0], ["filter", "blocks", "auto"], HOMES)
def test_packed_edges_are_foretold(
    home: str, route: str, share: float, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes on the device and the host, over the link and from disk; seconds of unpacking are those of every edge."""
    packing(monkeypatch, 2, 2, share, **HOMES[home])
    used = graph if home != "memory" else in_memory(shape("skewed", weights="uint8"))
    for adjacency in used.adjacencies:
        adjacency.chunk_edges = 32
    rates = replace(RATES, unpack_edges=1e7, copy_bytes=1e9)
    given: dict[str, Any] = {"device": "emulated", "route": route, "device_edge_memory": 1000, "rates": rates}
    with Session(used, tuning={"feedback": False}, **given) as session:
        told = session.forecast(PageRank(tol=0, max_iter=3, weight=False))
        assert session._device.bytes_in == 0
        records = sweeps(session, 3)
        made = session._equipment
        cache, staging = made.pipeline.cache, made.host.source.host
    assert made.pipeline.cache.tables
    assert told.placement is not None
    assert told.placement.parts["cache"] == cache.nbytes
    if staging is not None:
        assert told.host.parts["packed edges"] == staging.cache.nbytes
        assert told.host.whole == (home in ("both", "packed"))
    for record, sweep in zip(records, (told.first, told.later, told.later), strict=True):
        assert_read(sweep.disk_bytes, record)
        assert sweep.link_bytes == sum(task.bytes_link for task in record.tasks)
        assert sweep.cost.unpack == pytest.approx(sum(task.predicted.unpack for task in record.tasks))
        assert sweep.cost.unpack >= 0.99 * graph.edges / 1e7 or route == "auto"


def test_what_stays_on_the_device_travels_before_the_first_iteration(graph: Graph) -> None:
    with Session(graph, device="emulated", rates=RATES) as session:
        told = session.forecast(PageRank(tol=0, max_iter=3, weight=False))
        records = sweeps(session, 3)
        assert told.loading == (int(graph.into.chunk_bytes(False).sum()), session._device.bytes_in)
    assert told.placement.whole
    assert told.first.link_bytes == sum(task.bytes_link for record in records for task in record.tasks) == 0


def test_nothing_is_read_but_the_index(tmp_path: Path) -> None:
    """Every chunk of edges is spoilt: a forecast does not notice, and a run does."""
    path = tmp_path / "g.h5"
    graph = on_disk(shape("skewed"), path, chunk_edges=32)
    data = bytearray(path.read_bytes())
    for adjacency in (graph.out, graph.into):
        frames = adjacency.neighbors
        for offset, length in zip(frames.offsets, frames.lengths, strict=True):
            data[int(offset) : int(offset + length)] = bytes(int(length))
    path.write_bytes(data)
    with Session(Graph.open(path)) as session:
        for program in (PageRank(weight=False), BFS(0), Betweenness(source=0)):
            assert session.forecast(program).host.total > 0


def test_what_cannot_be_known_is_not_told(graph: Graph) -> None:
    with Session(graph) as session:
        search = session.forecast(BFS(0))
        assert (search.most_iterations, search.most_seconds, search.everywhere) == (None, None, False)
        several = session.forecast(Betweenness(source=0))
        assert several.phases
        assert several.most_seconds is None
        assert several.program == "Betweenness"
        assert session._shared == {}
        assert session.forecast(PageRank(max_iter=0, weight=False)).most_seconds == 0.0


def test_a_forecast_refuses_what_the_run_would(graph: Graph) -> None:
    with Session(graph, host_memory=1 << 20) as session, pytest.raises(InputError, match="is too small"):
        session.forecast(PageRank(weight=False))
    one_way = in_memory(shape("skewed"), both=False)
    with Session(one_way, direction="pull") as session, pytest.raises(InputError, match="--direction both"):
        session.forecast(BFS(0))


def test_a_prepared_session_equips_once_for_all(graph: Graph) -> None:
    with Session(graph) as session:
        programs = [PageRank(max_iter=2, weight=False), SSSP(source=0), PageRank(damping=0.5, weight=False)]
        alone = session.forecast(PageRank(weight=False)).host.parts["cache"]
        session.prepare(*programs)
        assert session.forecast(PageRank(weight=False)).host.parts["cache"] > alone
        results, equipments = [], []
        for program in programs:
            results.append(session.run(program))
            equipments.append(session._equipment)
        assert len({id(one) for one in equipments}) == 1
        assert results[2].bytes_read == 0
    with Session(graph) as fresh:
        expected = fresh.run(SSSP(source=0))
    assert np.array_equal(results[1].fields["distance"], expected.fields["distance"])


@pytest.mark.parametrize(("partitions", "together"), [(24, False), (48, True), (10, True)])
def test_programs_share_room_only_where_none_loses_by_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, partitions: int, together: bool
) -> None:
    """A host with room for one adjacency's 24 partitions keeps all of them while one program runs alone."""

    def divide(config: Config, needs: Any, graph: Graph, partition_bytes: int) -> HostBudget:
        entries = len(needs.adjacencies) * -(-graph.edges // 64)
        return HostBudget(64, 2, min(partitions, entries), 2, partitions >= entries, 4)

    dividing(monkeypatch, divide)
    with Session(graph) as session:
        session.prepare(PageRank(max_iter=2, weight=False), BFS(source=0))
        assert (session._prepared is not None) == together
        session.run(PageRank(tol=0, max_iter=2, weight=False))
        held = {adjacency.direction for adjacency in session._equipment.needs.adjacencies}
        assert held == ({"out", "in"} if together else {"in"})


def test_with_values_in_a_file_every_window_reads_and_picks_edges_and_each_is_walked_once() -> None:
    rates = Rates(disk_bytes=1e3, kernel_edges=1e3)
    whole = Sweep(Cost(disk=1.0, decode=0.5, kernel=2.0), disk_bytes=1000, link_bytes=0, routes={}, edges=2000)
    one = whole.by_windows(WindowCut(100, 1, 1), 400, 100, 50, rates, 1e3)
    assert (one.disk_bytes, one.value_bytes, one.value_seconds) == (1050, 400, pytest.approx(0.4))
    assert one.cost == pytest.approx(Cost(disk=1.05, decode=0.5, kernel=2.5))
    assert (one.seconds, one.limit) == (pytest.approx(2.9), "kernel")
    three = whole.by_windows(WindowCut(34, 3, 3), 40_000, 100, 150, rates, 1e3)
    picked = 3 * (ROW_PICKS * 100 + EDGE_PICKS * 2000) / 1e3
    assert three.cost == pytest.approx(Cost(disk=3.15, decode=1.5, kernel=2.0 + 1.5 + picked))
    assert (three.seconds, three.limit) == (pytest.approx(40 + three.cost.kernel), "values")
    of_file = whole.by_windows(WindowCut(34, 3, 1, 34), 400, 100, 150, rates, 1e3)
    assert of_file.cost == pytest.approx(Cost(disk=1.15, decode=0.5, kernel=2.5))
    assert of_file.disk_bytes == 1150


@pytest.mark.parametrize(
    ("program", "longer"), [(BFS(0), 1.0), (PageRank(), 1.0), (CDLP(max_iter=3), ROWS), (Triangles(), TRIANGLES)]
)
def test_edges_of_programs_on_whole_rows_take_the_cores_longer(program: Program, longer: float) -> None:
    plain = Sweep(Cost(disk=1.0, kernel=2.0), 10, 0, {})
    assert plain.of_class(program) == replace(plain, cost=Cost(disk=1.0, kernel=2.0 * longer))
