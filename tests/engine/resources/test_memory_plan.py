"""A device with less room than two slabs: the route `auto` reads every edge in place, in host memory."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from penstock.engine import Graph
from penstock.engine.resources import memory_plan
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from penstock.transfer.values.rates import Rates
from support.graphs import on_disk, shape
from support.program_cases import check, program_of
from support.small_host import CHUNK, keeping

ROOM = 2 * CHUNK * 4 - 1
EDGES = shape("skewed", weights="uint8")
RATES = Rates(copy_bytes=1e6, line_rate=1e4, sector_rate=1e4)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return on_disk(EDGES, tmp_path_factory.mktemp("g") / "g.h5", chunk_edges=CHUNK)


@pytest.mark.parametrize("model", ["measured", "published"])
@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "disk"])
@pytest.mark.parametrize("name", ["bfs", "sssp", "sweeps", "wcc"])
def test_auto_reads_in_place_where_no_slab_fits(
    name: str, on_disk: bool, model: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The answer is right, nothing is copied, and plan, forecast and log say so before and after."""
    if on_disk:
        monkeypatch.setattr(memory_plan, "divide_host_memory", keeping(2 * CHUNK, 3, 5))
    options: dict[str, Any] = {"device_edge_memory": ROOM, "partition_bytes": 8 * CHUNK, "rates": RATES}
    options["tuning"] = {"model": model}
    with (
        caplog.at_level(logging.INFO, "penstock.engine.resources.host_resources"),
        Session(graph, device="emulated", **options) as s,
    ):
        told = s.forecast(program_of(name, EDGES))
        result = s.run(program_of(name, EDGES))
        assert s._device is not None
        assert s._device.bytes_in == 0  # type: ignore[attr-defined]
    check(name, EDGES, result.fields)
    tasks = [task for record in result.records for task in record.tasks]
    assert {task.route for task in tasks} == {"zero-copy"}
    read = sum(task.chunks_read for task in tasks)
    assert read > 0
    assert on_disk or read <= sum(one.chunks for one in graph.adjacencies)  # what host memory holds is read once
    assert "0 B on a device; routes resident, zero-copy; partitions of 64 edges, 0 slabs" in caplog.text
    assert told.placement is not None
    assert not told.placement.whole
    assert (told.placement.parts["slabs"], told.placement.parts["cache"]) == (0, 0)
    assert "gathered" not in told.host.parts
    assert set(told.first.routes) == set(told.later.routes) == {"zero-copy"}
    if name == "sweeps":
        moved = [sum(task.bytes_link for task in record.tasks) for record in result.records]
        assert moved == [told.first.link_bytes, told.later.link_bytes, told.later.link_bytes]


def test_routes_that_need_slabs_are_refused_with_the_way_out(graph: Graph) -> None:
    for route in ("filter", "compaction", "cel"):
        options: dict[str, Any] = {"device_edge_memory": ROOM, "route": route}
        with Session(graph, device="emulated", **options) as session, pytest.raises(InputError, match="--route auto"):
            session.run(program_of("sssp", EDGES))


def room(session: Session, needs: Any) -> int:
    """What there is for edges; -1 where the run would be refused."""
    try:
        return memory_plan.plan_memory(session.graph, session.config, needs, session.device.memory_bytes).room
    except InputError:
        return -1


@pytest.mark.parametrize(
    ("left", "rooms", "together"), [(320, [1, 1], True), (319, [1, 1], False), (-1, [-1, 1], False)]
)
def test_programs_share_a_device_only_where_none_loses_its_slabs(
    left: int, rooms: list[int], together: bool, graph: Graph
) -> None:
    """BFS has more state than SSSP, whose edges have weights: two slabs of them take 320 bytes."""
    programs = [program_of(name, EDGES) for name in ("bfs", "sssp")]
    with Session(graph, device="emulated") as session:
        fixed = [session._asks(program).needs.device_bytes for program in programs]
    assert fixed[0] - fixed[1] >= 320
    with Session(graph, device="emulated", device_memory=fixed[0] + left) as session:
        session.prepare(*programs)
        asked = [session._asks(program).needs for program in programs]
        assert [room(session, needs) for needs in asked] == rooms
        assert (session._prepared is not None) == together
