"""Sweeps of many ranks, as a table: where edges are, what limits, what it costs, and what does not fit."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from penstock.engine.planning.cluster_forecast import (
    EXAMPLE,
    PAPER_ROW_BYTES,
    Machine,
    SweepWork,
    paper_graph,
    plan_ranks,
    plan_run,
)
from penstock.engine.planning.forecast import EDGE_PICKS, ROW_PICKS
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.triangles import Triangles
from penstock.engine.programs.wcc import WCC
from penstock.storage.base.errors import InputError

CORES = Machine(
    ranks_per_host=2, disk_bytes=10.0, host_memory=300, kernel_edges=100.0, network_bytes=1e9, network_latency=0.0
)
GPUS = replace(CORES, device_memory=150, copy_bytes=5.0, disk_bytes=100.0)
WORK = SweepWork(edges=400.0, edge_bytes=800.0, rank_bytes=100, exchanged=0)


@pytest.mark.parametrize(
    ("machine", "ranks", "places", "seconds", "limit"),
    [
        (CORES, 1, (0, 200, 600), 60.0, "disk"),
        (CORES, 2, (0, 50, 350), 70.0, "disk"),  # a host's ranks share its disk and its memory
        (CORES, 4, (0, 50, 150), 30.0, "disk"),
        (CORES, 16, (0, 50, 0), 0.25, "kernel"),
        (GPUS, 1, (50, 200, 550), 150.0, "link"),
        (GPUS, 8, (50, 50, 0), 10.0, "link"),
        (GPUS, 16, (50, 0, 0), 0.25, "kernel"),
        (replace(GPUS, unpack_edges=10.0), 16, (50, 0, 0), 2.5, "unpack"),
        (replace(CORES, host_bytes=10.0), 16, (0, 50, 0), 10.0, "host memory"),
    ],
)
def test_sweeps(machine: Machine, ranks: int, places: tuple[float, ...], seconds: float, limit: str) -> None:
    found = plan_ranks(WORK, machine, ranks)
    assert tuple(found.places.values()) == places
    assert found.seconds == pytest.approx(seconds)
    assert (found.limit, found.lacking, found.price) == (limit, None, None)
    assert found.memory == 100 + 800 / ranks


def test_exchange_and_price() -> None:
    machine = replace(CORES, network_bytes=10.0, local_bytes=1000.0, price_per_hour=3600.0)
    work = replace(WORK, exchanged=80)
    near, far = plan_ranks(work, machine, 2), plan_ranks(work, machine, 16)
    assert near.exchange == pytest.approx(0.04)
    assert far.exchange == pytest.approx(7.5)
    assert (far.limit, far.hosts) == ("exchange", 8)
    assert far.price == pytest.approx(8 * 7.75)


@pytest.mark.parametrize(
    ("machine", "ranks", "words"),
    [
        (replace(GPUS, device_memory=99), 16, "device_memory is 99 bytes, and state takes 100"),
        (replace(CORES, host_memory=150), 2, "have 200 bytes, or ranks_per_host = 1"),
        (replace(CORES, host_memory=50), 1, "have 100 bytes"),
    ],
)
def test_what_does_not_fit(machine: Machine, ranks: int, words: str) -> None:
    assert words in str(plan_ranks(WORK, machine, ranks).lacking)


LAPTOP = replace(CORES, ranks_per_host=1, disk_bytes=3e9, host_memory=16 << 30, kernel_edges=2.4e9, price_per_hour=36.0)
CRAWL = paper_graph(3_560_000_000, 128_700_000_000, 0.85)
"""Common Crawl 2012."""


@pytest.mark.parametrize(("gib", "windows", "passes"), [(4, 8, 12), (16, 2, 6), (32, 1, 5)])
def test_a_rank_without_memory_for_the_state_plans_windows_as_a_run(gib: int, windows: int, passes: int) -> None:
    vertices, edges, each = CRAWL.vertices, CRAWL.edges, 0.85
    found = plan_run(PageRank(), CRAWL, replace(LAPTOP, host_memory=gib << 30))
    assert (found.windows, found.lacking) == (windows, None)
    assert (gib - 1) << 30 < found.memory <= gib << 30
    assert found.value_bytes == pytest.approx(passes * 8 * vertices, rel=0.1)
    assert found.value_seconds == pytest.approx(found.value_bytes / 3e9)
    assert found.costs["disk"] == pytest.approx(windows * (edges * each + 0.7 * vertices) / 3e9, rel=0.01)
    picks = windows * (ROW_PICKS * vertices + EDGE_PICKS * edges) if windows > 1 else 0
    assert found.costs["kernel"] == pytest.approx((edges + picks) / 2.4e9 + vertices / 2.6e8 / 8)
    assert found.price == pytest.approx(found.seconds / 100)


@pytest.mark.parametrize(("ranks", "gib"), [(2, 16), (4, 16), (2, 1)])
def test_ranks_without_memory_for_the_state_divide_values_and_edges(ranks: int, gib: int) -> None:
    machine = replace(LAPTOP, host_memory=gib << 30)
    alone = plan_run(PageRank(), CRAWL, machine)
    found = plan_run(PageRank(), CRAWL, machine, ranks)
    assert (found.ranks, found.hosts, found.lacking) == (ranks, ranks, None)
    more = found.windows / alone.windows  # what travels at once takes some MiB
    assert 1 <= more < 1.04
    assert found.memory == pytest.approx(alone.memory, rel=0.02)
    assert found.value_bytes < 1.05 * alone.value_bytes / ranks
    assert found.costs["disk"] == pytest.approx(more * alone.costs["disk"] / ranks, rel=0.01)
    assert found.costs["kernel"] == pytest.approx(more * alone.costs["kernel"] / ranks, rel=0.01)
    assert found.exchange == pytest.approx((ranks - 1) / ranks * 8 * CRAWL.vertices / 1e9)
    assert found.price == pytest.approx(found.seconds / 100 * ranks)


def test_edges_of_a_file_with_windows_are_read_once() -> None:
    graph = paper_graph(CRAWL.vertices, CRAWL.edges, 0.85, windows=2)
    found = plan_run(PageRank(), graph, LAPTOP)
    assert (found.windows, found.edge_reads) == (2, 1)
    assert found.costs["disk"] == pytest.approx((CRAWL.edges * 0.85 + 2 * 0.7 * CRAWL.vertices) / 3e9, rel=0.01)
    assert found.costs["kernel"] == pytest.approx(CRAWL.edges / 2.4e9 + CRAWL.vertices / 2.6e8 / 8)


def test_a_run_needs_less_memory_than_state_in_every_rank() -> None:
    machine = replace(LAPTOP, host_memory=64 << 30)
    assert plan_ranks(SweepWork.of(PageRank(), 3_560_000_000, 128.7e9, 0.85), machine, 1).lacking is not None
    found = plan_run(PageRank(), CRAWL, machine)
    assert (found.windows, found.value_bytes, found.lacking) == (0, 0, None)
    assert found.memory == pytest.approx(64 << 30)
    assert found.places["host"] + found.places["disk"] == pytest.approx(128.7e9 * 0.85, rel=0.01)
    small = plan_run(PageRank(), CRAWL, replace(LAPTOP, host_memory=1 << 25))
    assert "--host-memory" in str(small.lacking)


def test_work_is_of_sweeps() -> None:
    work = SweepWork.of(PageRank(), 1000, 5000.0, 2.0)
    assert work.edge_bytes == 10000.0
    assert work.exchanged == 8000
    assert work.rank_bytes > 24 * 1000
    for other in (BFS(source=0), WCC(), Triangles()):
        with pytest.raises(InputError, match="does not walk every edge in every iteration"):
            SweepWork.of(other, 1000, 5000.0, 2.0)


WHOLE = tomllib.loads(EXAMPLE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus": 8}, "m.toml: gpus is no key of a machine: take one of ranks_per_host"),
        ({"disk_bytes": 0}, "disk_bytes is 0: give a number above 0"),
        ({"kernel_edges": "fast"}, "kernel_edges is 'fast'"),
        ({"kernel_edges": float("inf")}, "kernel_edges is inf"),
        ({"ranks_per_host": 1.5}, "ranks_per_host is 1.5: give a whole number"),
        ({"ranks_per_host": True}, "ranks_per_host is True"),
        ({"network_latency": -1}, "network_latency is -1: give a number of at least 0"),
        ({"host_memory": "much"}, "m.toml: host_memory"),
        ({"network_bytes": None}, "network_bytes is missing: add network_bytes = NUMBER"),
        ({"copy_bytes": None}, "copy_bytes is missing"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: str) -> None:
    content = {key: value for key, value in (WHOLE | changes).items() if value is not None}
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        Machine.of(content, "m.toml")


def test_cores_need_no_link() -> None:
    gone = ("device_memory", "copy_bytes", "unpack_edges", "price_per_hour", "local_bytes", "host_bytes")
    machine = Machine.of({key: value for key, value in WHOLE.items() if key not in gone}, "m.toml")
    assert (machine.device_memory, machine.price_per_hour) == (0, None)


@pytest.mark.parametrize(("vertices", "dtype"), [(1 << 32, np.uint32), ((1 << 32) + 1, np.uint64)])
def test_a_graph_that_need_not_exist_has_so_many_bytes(vertices: int, dtype: type) -> None:
    graph = paper_graph(vertices, 10_000_000, 0.5)
    assert (graph.vertices, graph.edges, graph.vertex_dtype) == (vertices, 10_000_000, dtype)
    assert graph.out.chunk_bytes(with_weights=False).sum() == pytest.approx(5_000_000, rel=0.03)
    assert graph.out.degrees is not None
    assert graph.out.degrees.lengths.sum() == pytest.approx(PAPER_ROW_BYTES * vertices, rel=0.01)
    assert graph.out.has_row_pages
