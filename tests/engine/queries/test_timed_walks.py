"""Walks along edges that are not later than a time of each source: exact, and the same on every device and budget."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from penstock.engine import Graph, Session, convert, walk
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.queries import walks as walks_module
from penstock.engine.queries.walk_memory import WalkMemory
from penstock.storage.base.errors import InputError
from pyarrow import parquet
from support.commands import answered, refused

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # random numbers are hashes

VERTICES, FIRST = 40, np.datetime64("2026-01-01")


def payments(folder: Path, edges: int = 900) -> tuple[Graph, dict[tuple[int, int], list[int]]]:
    """A graph with a hub and parallel edges, and the days of its edges by their ends."""
    random = np.random.default_rng(5)
    ends = random.integers(0, VERTICES, (edges, 2))
    ends[: edges // 3, 0] = 0
    days = random.integers(0, 100, edges)
    table = pa.table({"src": ends[:, 0], "dst": ends[:, 1], "day": (FIRST + days).astype("M8[D]"), "number": days - 50})
    table = table.append_column("second", pa.array((FIRST + days).astype("M8[us]")))
    table = table.append_column("nanosecond", pa.array(days + 1_700_000_000_000_000_000))
    mixed = np.where(days == days.min(), -5, days + 1_700_000_000_000_000_000)
    table = table.append_column("mixed", pa.array(mixed))
    parquet.write_table(table, folder / "p.parquet")
    with mock.patch("penstock.storage.format.adjacency_writer.CHUNK_EDGES", 64):
        convert(folder / "p.parquet", folder / "p.h5", edge_properties="day,number,second,nanosecond,mixed")
    found: dict[tuple[int, int], list[int]] = {}
    for (u, v), day in zip(ends.tolist(), days.tolist(), strict=True):
        found.setdefault((u, v), []).append(day)
    return Graph.open(folder / "p.h5"), found


def check(walks: NDArray[Any], days: dict[tuple[int, int], list[int]], limits: list[int]) -> None:
    """Every step is along an edge in time, and a walk ends where there is none."""
    last = np.iinfo(walks.dtype).max if walks.dtype.kind == "u" else -1
    for number, walked in enumerate(walks.tolist()):
        limit = limits[number % len(limits)]
        for u, v in pairwise(walked):
            if v == last:
                assert u == last or not any(d <= limit for (a, _), held in days.items() if a == u for d in held)
            else:
                assert min(days[u, v]) <= limit


@pytest.mark.parametrize("name", ["day", "number"])
def test_edges_are_not_later_than_the_time_of_the_source(tmp_path: Path, name: str) -> None:
    graph, days = payments(tmp_path)
    sources, limits = [0, 3, 7, 0], [10, 50, -1, 99]
    until: Any = [FIRST + limit for limit in limits] if name == "day" else [limit - 50 for limit in limits]
    found = walk(graph, length=6, walks_per_vertex=50, sources=sources, time=name, until=until)
    walks = found.to_numpy()
    check(walks, days, limits)
    assert (walks[2::4, 1:] == walks[2, 1]).all(), "no edge is so early"
    assert not found.weighted
    with Session(graph) as session:
        again = session.walk(length=6, walks_per_vertex=50, sources=sources, time=name, until=until)
        assert np.array_equal(again.to_numpy(), walks)


def test_every_edge_in_time_is_as_likely(tmp_path: Path) -> None:
    from scipy.stats import chisquare

    graph, days = payments(tmp_path)
    for limit in (2, 60):  # few of the hub's edges, which are looked through, and most
        steps = walk(graph, length=1, walks_per_vertex=40_000, sources=[0], time="number", until=limit - 50).to_numpy()
        ways = np.array([sum(day <= limit for day in days.get((0, v), [])) for v in range(VERTICES)])
        counts = np.bincount(steps[:, 1], minlength=VERTICES)
        assert (counts[ways == 0] == 0).all()
        assert chisquare(counts[ways > 0], 40_000 * ways[ways > 0] / ways.sum()).pvalue > 1e-4


@pytest.mark.parametrize("given", [{}, {"restart": 0.2}, {"dead_ends": "restart"}])
def test_walks_are_the_same_out_of_core_and_on_a_device(tmp_path: Path, given: dict[str, Any]) -> None:
    graph, _ = payments(tmp_path)
    given = {"length": 5, "walks_per_vertex": 2, "time": "day", "until": "2026-01-30"} | given
    walks = walk(graph, threads=2, **given).to_numpy()
    memory = WalkMemory(64, 512, 512, batch=50, block=7, log_bytes=1000)
    with mock.patch.object(walks_module, "divide_walk_memory", return_value=memory):
        small = walk(graph, threads=1, scratch=tmp_path, **given)
        assert np.array_equal(small.to_numpy(), walks)
        assert small.progress.sweeps > 0
    if seam.SIMULATED:
        with Session(graph, device="emulated", kernels="cuda", threads=2) as session:
            assert np.array_equal(session.walk(**given).to_numpy(), walks)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"time": "day"}, "time and until belong together"),
        ({"time": "day", "until": "soon"}, "which is no date"),
        ({"time": "day", "until": ["2026-01-01"] * 2}, "until has 2 values; give one, or one for each of 39 sources"),
        ({"time": "day", "until": "NaT"}, "until is 'NaT', not all of which is of the type date"),
        ({"time": "number", "until": [float("nan")]}, r"until is \[nan\], not all of which is of the type int"),
        ({"time": "second", "until": "999999-12-31"}, "until is '999999-12-31', not all of which is of the type"),
        ({"time": "nanosecond", "until": 5}, "'nanosecond' has numbers beyond 2"),
        ({"time": "mixed", "until": 5}, "'mixed' has numbers beyond 2"),
        ({"time": "other", "until": 1}, "'other' is no time of edges: edges have no such column"),
        ({"time": "day", "until": "2026-01-01", "p": 2.0}, "p and q choose among all edges"),
        ({"time": "day", "until": "2026-01-01", "where": "number > 3"}, "where leaves out the column"),
    ],
)
def test_bad_times(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    graph, _ = payments(tmp_path, 90)
    with pytest.raises(InputError, match=message):
        walk(graph, **given)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = payments(tmp_path)[1]
    path, output = tmp_path / "p.h5", tmp_path / "w.npy"
    call: list[Any] = ["walk", path, "--source", 0, "--until", "2026-01-11", "--source", 3, "--until", "2026-02-20"]
    answered(capsys, *call, "--time", "day", "--length", 4, "--output", output)
    check(np.load(output), days, [10, 50])
    assert "belong together" in refused(capsys, "walk", path, "--time", "day", "--output", tmp_path / "no.npy")
