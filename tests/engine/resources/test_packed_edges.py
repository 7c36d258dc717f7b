"""Packed edges show in no answer: every program, route, budget and home of the edges gives what the CPU gives."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Graph
from penstock.engine.resources import memory_plan
from penstock.engine.resources.packed_edges import packing_pays
from penstock.engine.session import Session
from penstock.storage.base.slot_pool import aligned_empty
from penstock.transfer.devices import device as devices
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.rates import Rates
from support.covering import covering
from support.graphs import in_memory, on_disk, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import CASES, PROGRAMS, check, program_of, tangle
from support.small_host import CHUNK, packing

LITTLE = 30
"""Bytes for each edge of a chunk, on a device that cannot hold the graphs here."""
IN_PLACE = ("zero-copy", "blocks")
SLOW_LINES = Rates(copy_bytes=1e9, line_rate=1e5, sector_rate=1e5)
HOMES: dict[str, dict[str, Any]] = {
    "memory": {},
    "disk, room for both": {"host": 1, "room": True},
    "disk, room for packed": {"host": 1},
    "disk, room for some": {"host": 0.4},
    "disk, room for none": {"host": 0},
}
"""Where edges are, as options of `packing`."""
WAYS = [
    *(("auto", home) for home in HOMES),
    *(("filter", home) for home in ("memory", "disk, room for some")),
    *(("blocks", home) for home in ("memory", "disk, room for packed", "disk, room for none")),
]
KINDS = {"directed": ("uint8", True), "undirected": ("uint8", False), "floats": ("float32", False)}
"""Of graphs: dtype of weights, and whether edges have directions."""
FLOATS = ("widest", "distances", "pagerank", "msf", "heat")
"""Programs that are run with weights that are floats too: least, greatest, sums, phases, iterations of two kinds."""


def spoilt(count: int, dtype: Any) -> Any:
    """Memory in which an edge that was not brought leads to vertex 1."""
    array = aligned_empty(count, dtype)
    array[:] = 1
    return array


@pytest.fixture(autouse=True)
def spoilt_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "aligned_empty", spoilt)


def made(edges: EdgeList, home: str, path: Path, chunk: int = CHUNK, **options: Any) -> Graph:
    """A graph at home in memory or on disk."""
    graph = in_memory(edges) if home == "memory" else on_disk(edges, path, chunk_edges=chunk, **options)
    for adjacency in graph.adjacencies:
        adjacency.chunk_edges = chunk
    return graph


def stagings(session: Session) -> Iterator[Staging]:
    """Those of the device and of its host."""
    assert session._equipment is not None
    pipeline = session._equipment.pipeline
    pipeline.close()
    yield pipeline.staging
    if session._equipment.host.source.host is not None:
        yield session._equipment.host.source.host


def assert_packed_and_at_rest(session: Session) -> None:
    """Edges travelled packed, and nothing is taken."""
    for staging in stagings(session):
        assert staging.cache.tables
        assert [pool.free for pool in (staging.slabs, staging.places)] == [staging.slabs.count, staging.places.count]
        assert not staging.cache.flights
        assert not staging.cache.busy.any()


@functools.cache
def of_the_cores(name: str, weights: str, directed: bool) -> dict[str, Any]:
    """What a program finds on the cores, with all edges in memory."""
    with Session(in_memory(tangle(directed=directed, weights=weights)), device="cpu") as session:
        return session.run(CASES[name][0]()).fields


def can_be(name: str, way: tuple[str, str], kind: str) -> bool:
    return (kind != "floats" or name in FLOATS) and (kind != "directed" or name != "triangles")


@covering("name, way, kind", CASES, WAYS, KINDS, where=can_be, strength=1)
def test_every_program_gives_the_answer_of_the_cores(
    name: str, way: tuple[str, str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs of each kind meet every way in the tests below."""
    route, home = way
    packing(monkeypatch, 2, 2, 0.3, **HOMES[home])
    weights, directed = KINDS[kind]
    edges = tangle(directed=directed, weights=weights)
    make, right = CASES[name]
    graph = made(edges, home, tmp_path / "graph.h5")
    with Session(graph, device="emulated", device_edge_memory=LITTLE * CHUNK, route=route) as session:
        found = session.run(make()).fields
        if name != "degrees":  # which reads no edges
            assert_packed_and_at_rest(session)
    right(edges, found)
    for field, values in of_the_cores(name, weights, directed).items():
        if values.dtype.kind != "f":
            np.testing.assert_array_equal(found[field], values)


@st.composite
def cases(draw: st.DrawFn) -> tuple[EdgeList, str, dict[str, Any], tuple[int, int, int, float]]:
    """A graph, its home, how to run on it, and how it is packed."""
    chunk = draw(st.sampled_from([CHUNK, 256]))
    vertices, count = draw(st.integers(1, 120)), draw(st.integers(0, 12 * chunk))
    kind = draw(st.sampled_from([None, "uint8", "uint16", "uint32", "float32", "float64"]))
    edges = weighed(
        EdgeList(vertices, *skewed(vertices, count, draw(st.integers(0, 99))), None, draw(st.booleans())), kind
    )
    options = {
        "route": draw(st.sampled_from(["auto", "filter", "blocks"] if count > 8 * chunk else ["auto", "filter"])),
        "direction": draw(st.sampled_from(["auto", "push", "pull"])),
        "tuning": {
            "priority": draw(st.booleans()),
            "combine": draw(st.integers(1, 4)),
            "residency": draw(st.sampled_from(["value", "none"])),
            "local_rounds": draw(st.integers(0, 2)),
        },
        "threads": draw(st.integers(1, 2)),
        "device_edge_memory": LITTLE * chunk,
    }
    packed = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.sampled_from([0.0, 0.2, 0.7, 1.0]))
    return edges, draw(st.sampled_from(list(HOMES))), options, (chunk, *packed)


@settings(max_examples=20)
@given(case=cases(), name=st.sampled_from(PROGRAMS))
def test_any_graph_and_budget_gives_the_answer(
    case: tuple[EdgeList, str, dict[str, Any], tuple[int, int, int, float]], name: str
) -> None:
    """And copies exactly the bytes that the records say; no task brings a partition twice; nothing stays taken."""
    edges, home, options, (chunk, *packed) = case
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        packing(patch, *packed, **HOMES[home])
        graph = made(edges, home, Path(folder) / "graph.h5", chunk)
        with Session(graph, device="emulated", **options) as session:
            first = session.run(program_of(name, edges))
            loaded, again = session._device.bytes_in, session.run(program_of(name, edges))
            copied = session._device.bytes_in - loaded
            if session._equipment.pipeline.staging.cache.tables:
                assert_packed_and_at_rest(session)
    for result in (first, again):
        check(name, edges, result.fields)
    tasks = [task for record in again.records for task in record.tasks]
    assert copied == sum(task.bytes_link for task in tasks if task.route not in IN_PLACE)
    for record in again.records:
        numbers = [number for task in record.tasks for number in task.partitions]
        assert len(numbers) == len(set(numbers))


@covering("name, home", PROGRAMS, [home for home in HOMES if home != "memory"], strength=1)
def test_wide_ids_give_the_answer(name: str, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packing(monkeypatch, 3, 2, 0.3, **HOMES[home])
    edges = tangle(directed=True)
    graph = made(edges, home, tmp_path / "wide.h5", vertex_dtype=np.dtype(np.uint64))
    assert graph.vertex_dtype == np.uint64
    with Session(graph, device="emulated", device_edge_memory=LITTLE * CHUNK) as session:
        check(name, edges, session.run(program_of(name, edges)).fields)
        assert_packed_and_at_rest(session)


def test_fewer_bytes_travel_and_the_same_answer_comes(tmp_path: Path) -> None:
    """With real budgets: the link carries packed bytes where plain edges took more, and the device keeps more."""
    vertices, count = 4000, 200_000
    edges = EdgeList(vertices, *skewed(vertices, count, 3), None, False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=8192)
    moved, ranks, kept = {}, {}, {}
    for packed in ("auto", "never"):
        options = {"device_edge_memory": 400_000, "partition_bytes": 8192 * 4, "packed": packed, "rates": SLOW_LINES}
        with Session(graph, device="emulated", **options) as session:
            result = session.run(program_of("sweeps", edges))
            ranks[packed] = result.fields["rank"]
            moved[packed] = sum(task.bytes_link for task in result.records[-1].tasks)
            told = result.records[-1].summary()
            assert told["bytes_unpacked"] == (4 * graph.edges if packed == "auto" else 0)
            assert sum(came["bytes_unpacked"] for came in told["routes"].values()) == told["bytes_unpacked"]
            pipeline, held = session._equipment.pipeline, session.holdings
            assert held.device < held.edges
            if packed == "auto":
                assert held.edges == pipeline.cache.tables["out"].layout.nbytes
                assert held.device == pipeline.cache.nbytes > 0
            else:
                assert held.edges == 4 * graph.edges
            kept[packed] = float(pipeline.directory("out").resident(False).mean())
    np.testing.assert_allclose(ranks["auto"], ranks["never"], rtol=1e-12)
    assert moved["auto"] < 0.6 * moved["never"]
    assert kept["auto"] > kept["never"]


@pytest.mark.parametrize(
    "options",
    [{"packed": "never"}, {"tuning": {"model": "published"}}, {"route": "zero-copy"}, {"route": "compaction"}],
)
def test_what_only_plain_edges_can_do_is_done_with_them(options: dict[str, Any]) -> None:
    edges = tangle(directed=True)
    with Session(in_memory(edges), device="emulated", device_edge_memory=2 << 20, **options) as session:
        needs = session._asks(program_of("bfs", edges)).needs
        plan = memory_plan.plan_memory(session.graph, session.config, needs, session.device.memory_bytes)
        plan = plan.placed(session.graph, session.config)
    assert plan.packed is None


def test_a_device_that_holds_all_plain_edges_has_them_plain() -> None:
    with Session(in_memory(tangle(directed=True)), device="emulated") as session:
        session.run(program_of("bfs", tangle(directed=True)))
        assert session._equipment.pipeline.cache.tables == {}


@pytest.mark.parametrize(
    ("name", "directed", "room", "packed"),
    [
        ("pagerank", True, True, True),
        ("bfs", True, True, False),
        ("wcc", True, True, True),
        ("wcc", False, True, False),
        ("bfs", True, False, True),
    ],
)
def test_frontiers_are_served_plain_edges_where_the_host_has_room(
    name: str, directed: bool, room: bool, packed: bool, tmp_path: Path
) -> None:
    graph = on_disk(tangle(directed=directed), tmp_path / "graph.h5", chunk_edges=256)
    program = program_of(name, tangle(directed=directed))
    options: dict[str, Any] = {"device": "emulated", "device_edge_memory": LITTLE * 256}
    with Session(graph, **options) as session:
        session.run(program)
        assert session._equipment is not None
        needs, config = session._equipment.needs, session._equipment.config
    divided = memory_plan.host_division(graph, config, needs)
    assert divided is not None
    assert packing_pays(config, needs, replace(divided, whole=room)) == packed
    assert packing_pays(replace(config, route="filter"), needs, divided)


def test_plain_edges_beside_packed_ones_are_within_the_budget_with_many_threads(tmp_path: Path) -> None:
    """One reader brings both: it takes what the division of the packed ones has set aside."""
    edges = EdgeList(4000, *skewed(4000, 200_000, 3), None, False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=8192)
    plain = set()
    for mebibytes in (20, 21, 22, 24, 30, 40):
        options: dict[str, Any] = {"host_memory": mebibytes << 20, "device_edge_memory": 400_000, "threads": 16}
        with Session(graph, device="emulated", **options) as session:
            needs = session._asks(program_of("sweeps", edges)).needs
            plan = memory_plan.plan_memory(session.graph, session.config, needs, session.device.memory_bytes)
            plan = plan.placed(session.graph, session.config)
        assert plan.packed is not None
        plain.add(plan.packed.plain)
        parts = plan.host_memory.parts
        parts.pop("gathered", None)
        assert sum(parts.values()) + plan.host_spare <= plan.budget
    assert plain == {False, True}


@pytest.mark.parametrize(("at_hand", "packed"), [(0.99, True), (0.01, False)])
def test_a_union_that_finds_too_few_edges_at_hand_is_served_packed_ones(
    at_hand: float, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_plan, "AT_HAND", at_hand)
    graph = on_disk(EdgeList(300, *skewed(300, 8_000, 3), None, False), tmp_path / "graph.h5", chunk_edges=256)
    with Session(graph, device="emulated", device_edge_memory=16_000) as session:
        session.run(program_of("wcc", tangle(directed=False)))
        assert session._equipment is not None
        assert (session._equipment.pipeline.staging.unpacking is not None) == packed
