"""A device fed from disk, and a disk that fails: one error that names the file, and nothing is left taken.

By every route over the link the same graph then answers well, in the same session's successor.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from penstock.engine import Graph
from penstock.engine.resources import memory_plan
from penstock.engine.session import Session
from penstock.storage.base.errors import RunError
from penstock.transfer.planning.host_budget import HostBudget
from penstock.transfer.staging.link_reader import LinkReader
from support.covering import covering
from support.faults import break_disk, flip_chunk
from support.graphs import on_disk, shape
from support.program_cases import check, program_of

EDGES = shape("skewed", weights="uint8")
STEP = 64
ROUTES = ("filter", "zero-copy", "compaction", "auto")


@pytest.fixture(autouse=True)
def small_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that keeps two partitions and has two slabs."""

    def divide(config: Any, needs: Any, graph: Graph, partition_bytes: int) -> HostBudget:
        return HostBudget(STEP, 2, 2, 2, False, 5)

    monkeypatch.setattr(memory_plan, "divide_host_memory", divide)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph of a good many chunks."""
    return on_disk(EDGES, tmp_path / "faulty.h5", chunk_edges=STEP)


def attempt(graph: Graph, route: str) -> RunError | None:
    """Run on a device that holds little; the error if there was one. Fails for anything left taken or running."""
    before = threading.active_count()
    options = {"device": "emulated", "route": route, "direction": "push", "partition_bytes": 4 * STEP}
    with Session(graph, device_edge_memory=5 * STEP * 4, **options) as session:
        error = None
        try:
            check("sssp", EDGES, session.run(program_of("sssp", EDGES)).fields)
        except RunError as found:
            error = found
        equipment = session._equipment
        if equipment is not None:
            pipeline = equipment.pipeline
            assert pipeline.staging.slabs.free == pipeline.options.slabs
            pipeline.close()
            assert pipeline.staging.packs.free == pipeline.options.slabs
            assert isinstance(pipeline.source, LinkReader)
            host = pipeline.source.host
            assert host is not None
            assert host.slabs.free == host.options.slabs
            assert not host.cache.flights
            assert not host.cache.busy.any()
    assert threading.active_count() <= before, "a thread was left behind"
    return error


@covering("route, first, kind", ROUTES, (0, 3, 12, 40), ("eio", "end"))
def test_a_dead_disk_is_one_error(
    route: str, first: int, kind: str, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From read number `first` on, nothing can be read; afterwards the same graph answers well."""
    with monkeypatch.context() as patch:
        disk = break_disk(patch, kind, lambda number: number >= first)
        error = attempt(graph, route)
    assert disk.broken > 0
    assert error is not None
    assert "faulty.h5" in str(error)
    assert "offset" in str(error)
    assert attempt(graph, route) is None


@covering("route, poor", ROUTES, (("hiccup", 3), ("short", 1), ("slow", 4)), strength=1)
def test_a_poor_disk_gives_the_right_answer(
    route: str, poor: tuple[str, int], graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, every = poor
    disk = break_disk(monkeypatch, kind, lambda number: number % every == every - 1)
    disk.seconds = 0.001
    assert attempt(graph, route) is None
    assert disk.broken > 0


@covering("route, chunk", ROUTES, (0, 9), strength=1)
def test_a_flipped_bit_names_file_and_chunk(route: str, chunk: int, graph: Graph) -> None:
    flip_chunk(graph, chunk)
    error = attempt(graph, route)
    assert error is not None
    assert "faulty.h5" in str(error)
    assert f"chunk {chunk}" in str(error)
    flip_chunk(graph, chunk)
    assert attempt(graph, route) is None
