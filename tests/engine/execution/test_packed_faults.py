"""Packed edges, and what goes wrong on their way: one error, and no slab, buffer or place stays taken."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.kernels.packed.unpackers import HostUnpacker
from penstock.engine.session import Session
from penstock.storage.base.errors import RunError
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.staging.staging import Staging
from penstock.transfer.staging.unpacked import sample_neighbors
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import Demand, whole_demand
from support.covering import covering
from support.faults import break_disk, flip_chunk
from support.graphs import in_memory, on_disk, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import check, program_of
from support.small_host import packing

STEP = 256
EDGES = weighed(EdgeList(300, *skewed(300, 12_000, 5), None, True), "uint8")
HOMES: dict[str, dict[str, Any]] = {
    "room for both": {"host": 1, "room": True},
    "room for packed": {"host": 1},
    "room for some": {"host": 0.3},
    "room for none": {"host": 0},
}
ROUTES = ("filter", "blocks", "auto")
RATES = Rates(copy_bytes=1e9, line_rate=1e5, sector_rate=1e5)
DEVICE: dict[str, Any] = {"device": "emulated", "device_edge_memory": 30 * STEP, "rates": RATES}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return on_disk(EDGES, tmp_path / "faulty.h5", chunk_edges=STEP)


@pytest.fixture
def at_home(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges are at home where the test says."""
    packing(monkeypatch, 2, 2, 0.2, **HOMES[home])


def stagings(session: Session) -> Iterator[Staging]:
    assert session._equipment is not None
    yield session._equipment.pipeline.staging
    if session._equipment.host.source.host is not None:
        yield session._equipment.host.source.host


def assert_at_rest(session: Session) -> None:
    """No slab, buffer or place is taken, once the host has taken back what it lent."""
    assert session._equipment is not None
    session._equipment.pipeline.close()
    for staging in stagings(session):
        assert staging.cache.tables
        for pool in (staging.slabs, staging.places):
            assert pool.free == pool.count
        assert not staging.cache.flights
        assert not staging.cache.busy.any()


def attempt(graph: Graph, route: str) -> RunError | None:
    """Run; the error if there was one. Fails for anything left taken or running."""
    before = threading.active_count()
    with Session(graph, route=route, direction="push", **DEVICE) as session:
        error = None
        try:
            check("sssp", EDGES, session.run(program_of("sssp", EDGES)).fields)
        except RunError as found:
            error = found
        if session._equipment is not None:
            assert_at_rest(session)
    assert threading.active_count() <= before, "a thread was left behind"
    return error


@covering("route, first, home", ROUTES, (0, 3, 12, 40), HOMES)
@pytest.mark.usefixtures("at_home")
def test_a_dead_disk_is_one_error(route: str, first: int, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """From read number `first` on, nothing can be read; afterwards the same graph answers well."""
    with monkeypatch.context() as patch:
        disk = break_disk(patch, "eio", lambda number: number >= first)
        error = attempt(graph, route)
    assert (error is None) == (disk.broken == 0)
    assert error is None or ("faulty.h5" in str(error) and "offset" in str(error))
    assert first or error is not None
    assert attempt(graph, route) is None


@covering("route, home", ROUTES, HOMES, strength=1)
@pytest.mark.usefixtures("at_home")
def test_a_flipped_bit_names_file_and_chunk(route: str, graph: Graph) -> None:
    chunk = 9
    flip_chunk(graph, chunk)
    error = attempt(graph, route)
    assert error is not None
    assert "faulty.h5" in str(error)
    assert f"chunk {chunk}" in str(error)
    flip_chunk(graph, chunk)
    assert attempt(graph, route) is None


@pytest.mark.parametrize("route", ["filter", "blocks"])
def test_what_the_device_finds_malformed_ends_the_run(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that changed after it was checked: the device says which chunk."""
    packing(monkeypatch, 2, 2, 0.2)
    graph = in_memory(EDGES)
    for adjacency in graph.adjacencies:
        adjacency.chunk_edges = STEP
    store = graph.out.pack(False, 1)
    assert store is not None
    words, starts = store
    kept = words[starts[7] : starts[8]].copy()
    words[starts[7] : starts[8]] = 0xFFFFFFFF
    error = attempt(graph, route)
    assert error is not None
    assert "chunk 7" in str(error)
    words[starts[7] : starts[8]] = kept
    assert attempt(graph, route) is None


class Walk:
    """A pipeline with packed edges, and its neighbors as they should be."""

    def __init__(self, session: Session) -> None:
        session._loop(program_of("sssp", EDGES))
        assert session._equipment is not None
        self.pipeline: Pipeline = session._equipment.pipeline
        self.directory = self.pipeline.directory("out")
        self.neighbors, self.weights = EDGES.rows[1], EDGES.rows[2]

    def views(self, demand: Demand) -> Any:
        return closing(self.pipeline.arrivals(self.pipeline.plan(demand, RATES), demand))

    def everything(self) -> Demand:
        return whole_demand(self.directory.table, edge_bytes=5, with_weights=True)


@pytest.mark.parametrize("route", ["filter", "auto"])
@pytest.mark.parametrize("home", HOMES)
@pytest.mark.usefixtures("at_home")
def test_views_show_plain_edges_and_resident_pieces_are_unpacked(route: str, graph: Graph) -> None:
    with Session(graph, route=route, **DEVICE) as session:
        walk = Walk(session)
        for _ in range(2):
            seen = np.zeros(len(walk.neighbors), dtype=int)
            demand = walk.everything()
            with walk.views(demand) as views:
                for view in views:
                    edges = slice(view.e0, view.e1)
                    np.testing.assert_array_equal(view.neighbors, walk.neighbors[edges])
                    np.testing.assert_array_equal(view.weights, walk.weights[edges])
                    seen[edges] += 1
            assert (seen == 1).all()
        records = walk.pipeline.records
        here = np.flatnonzero(walk.directory.resident(True))
        assert route == "filter" or len(here)
        for record in records:
            assert (record.bytes_link == 0) == set(record.partitions).issubset(here.tolist())
        for number in here.tolist():
            middle = int(walk.directory.table.e0[number]) + int(walk.directory.table.lengths[number]) // 2
            chunk = middle // STEP * STEP
            sample = sample_neighbors(walk.directory, number, 16)
            np.testing.assert_array_equal(sample, walk.neighbors[chunk : chunk + len(sample)])
        assert_at_rest(session)


@covering("stop, home", (0, 1, 5), HOMES, strength=1)
@pytest.mark.usefixtures("at_home")
def test_whoever_stops_a_walk_leaves_nothing_taken(stop: int, graph: Graph) -> None:
    """By closing it, and by an exception; nothing is pinned or in flight, and the next walk is whole."""
    with Session(graph, route="filter", **DEVICE) as session:
        walk = Walk(session)
        for way in (StopIteration, KeyError):
            demand = walk.everything()
            try:
                with walk.views(demand) as views:
                    for number, _ in enumerate(views):
                        if number == stop:
                            raise way
            except (StopIteration, KeyError, RuntimeError):
                pass
        with walk.views(walk.everything()) as views:
            assert sum(view.e1 - view.e0 for view in views) == len(walk.neighbors)
        assert_at_rest(session)


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.usefixtures("at_home")
def test_an_unpacker_that_fails_leaves_nothing_taken(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack, calls = HostUnpacker.unpack, [0]

    def failing(self: HostUnpacker, *arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == 6:
            raise RunError("the device is gone")
        unpack(self, *arguments)

    monkeypatch.setattr(HostUnpacker, "unpack", failing)
    error = attempt(graph, "filter")
    assert error is not None
    assert "gone" in str(error)
    assert attempt(graph, "filter") is None
