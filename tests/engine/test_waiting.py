"""Partitions that wait: the answer is the same, nobody waits for long, and nothing that waits is read from memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Graph, run
from penstock.engine.execution.loop import may_wait
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.programs.widest import WidestPath
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.transfer import waiting
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList, check_sssp
from support.small_host import small_memory
from support.trials import start_of

on_simulator = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")
ASYNCHRONOUS = {"sssp": SSSP, "reachability": Reachability, "widest": WidestPath}


def patient(patch: pytest.MonkeyPatch, partition_edges: int, slabs: int, slots: int) -> None:
    """Let the host keep `slots` partitions, however small the graph, and let partitions wait for the least gain."""
    small_memory(patch, partition_edges, slabs, slots)
    patch.setattr(waiting, "WORTH", 0.0)
    patch.setattr(waiting, "THIN", 1e12)


def longest_wait(result: Result) -> int:
    """Most iterations in a row that any partition waited; none may be brought while it waits."""
    counts: dict[int, int] = {}
    most = 0
    for record in result.records:
        brought = {number for task in record.tasks for number in task.partitions}
        assert not brought & set(record.waiting)
        assert record.summary()["partitions_waiting"] == len(record.waiting)
        assert record.tasks or not record.waiting
        counts = {number: counts.get(number, 0) + 1 for number in record.waiting}
        most = max(most, *counts.values(), 0)
    return most


@st.composite
def cases(draw: st.DrawFn) -> tuple[EdgeList, dict[str, Any]]:
    """A graph, and how to run on it: two devices of the host, or one behind a link."""
    vertices, count = draw(st.integers(1, 120)), draw(st.integers(0, 600))
    ends = skewed(vertices, count, draw(st.integers(0, 99)))
    edges = weighed(EdgeList(vertices, *ends, None, draw(st.booleans())), "uint8")
    options = {
        "partition_bytes": draw(st.integers(1, 600)),
        "direction": draw(st.sampled_from(["auto", "push"])),
        "local_rounds": draw(st.integers(0, 1)),
        "priority": draw(st.booleans()),
    }
    if draw(st.booleans()):
        return edges, options | {"device": "cpu", "devices": draw(st.integers(1, 2))}
    linked = {
        "device": "emulated",
        "device_edge_memory": draw(st.integers(2 * 32 * 5, 6000)),
        "route": draw(st.sampled_from(["auto", "filter", "zero-copy", "compaction", "cel", "cel-structural"])),
        "residency": draw(st.sampled_from(["value", "none"])),
    }
    return edges, options | linked


@settings(max_examples=40)
@given(
    case=cases(),
    name=st.sampled_from(sorted(ASYNCHRONOUS)),
    memory=st.tuples(st.sampled_from([32, 64, 128]), st.integers(1, 3), st.integers(1, 6)),
    most=st.integers(1, 5),
)
def test_the_answer_is_that_of_the_reference_and_no_wait_is_long(
    case: tuple[EdgeList, dict[str, Any]], name: str, memory: tuple[int, int, int], most: int
) -> None:
    edges, options = case
    source = start_of(edges)
    expected = run(ASYNCHRONOUS[name](source), in_memory(edges), device="cpu", kernels="reference").fields
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patient(patch, *memory)
        patch.setattr(waiting, "MOST", most)
        graph = on_disk(edges, Path(folder) / "graph.h5", chunk_edges=32)
        for waits in (False, True):
            with Session(graph, waiting=waits, **options) as session:
                for _ in range(2):
                    result = session.run(ASYNCHRONOUS[name](source))
                    for field, values in expected.items():
                        np.testing.assert_array_equal(result.fields[field], values)
                    assert longest_wait(result) <= most * waits


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return on_disk(shape("wide", weights="uint8"), tmp_path / "graph.h5", chunk_edges=128)


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_partitions_on_disk_wait_for_cached_ones(graph: Graph, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a vertex whose row is cut by the end of a partition sends from all of it in the end."""
    patient(monkeypatch, 512, 2, 8)
    expected = run(SSSP(0), graph, device="cpu", waiting=False).fields["distance"]
    options: dict[str, Any] = {"device": device, "partition_bytes": 2048, "direction": "push"}
    if device == "emulated":
        options["device_edge_memory"] = 1 << 14
    result = run(SSSP(0), graph, waiting=True, **options)
    np.testing.assert_array_equal(result.fields["distance"], expected)
    assert 1 <= longest_wait(result) <= waiting.MOST
    assert longest_wait(run(SSSP(0), graph, **options)) == 0, "not unless it is asked for"


@pytest.mark.parametrize("kernels", ["reference", pytest.param("cuda", marks=on_simulator)])
def test_every_kind_of_kernels(kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a row that is longer than a partition."""
    hub = np.stack([np.full(70, 3), np.arange(70)])
    edges = weighed(EdgeList(70, *np.concatenate([skewed(70, 120, 5), hub, hub[::-1]], axis=1)), "uint8")
    patient(monkeypatch, 32, 2, 4)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=32)
    options: dict[str, Any] = {"device_edge_memory": 600, "partition_bytes": 128, "direction": "push"}
    result = run(SSSP(start_of(edges)), graph, device="emulated", kernels=kernels, waiting=True, **options)
    check_sssp(edges, start_of(edges), result.fields["distance"])
    assert 1 <= longest_wait(result) <= waiting.MOST


@pytest.mark.parametrize(
    ("program", "options"),
    [(BFS(0), {}), (PageRank(tol=0, max_iter=3, weight=False), {}), (WCC(), {}), (SSSP(0), {"mode": "sync"})],
    ids=["bfs", "pagerank", "wcc", "sssp"],
)
def test_synchronous_programs_never_wait(
    program: Program, options: dict[str, Any], graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient(monkeypatch, 512, 2, 8)
    result = run(program, graph, device="cpu", waiting=True, direction="push", **options)
    assert result.records
    assert longest_wait(result) == 0


def test_whoever_counts_iterations_does_not_wait() -> None:
    class Counting(Reachability):
        max_iter = 3

    class Stopping(Reachability):
        def done(self, iteration: int, totals: dict[str, float]) -> bool:
            return iteration == 3

    class Reading(Reachability):
        def edge(reached, iteration):  # type: ignore[no-untyped-def]
            return reached

    assert may_wait(Reachability(0), asynchronous=True)
    assert not may_wait(Reachability(0), asynchronous=False)
    for counting in (Counting, Stopping, Reading):
        assert not may_wait(counting(0), asynchronous=True)
