"""Routes to a device behind an emulated link: answers, accounts, and what is refused."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Graph, run
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import ChebyshevPageRank
from penstock.engine.resources import memory_plan
from penstock.engine.resources.config import Config
from penstock.engine.resources.device_resources import device_of
from penstock.engine.session import Session
from penstock.engine.state.row_prefix_cache import longest_prefix, prefix_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.format.index import from_offsets
from penstock.transfer.devices import cuda
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList, check_pagerank
from support.program_cases import PROGRAMS, check, program_of
from support.small_host import keeping

LEAST = 2 * 32 * 8
"""Bytes of two slabs of one chunk."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[EdgeList, dict[str, Any]]:
    """A graph, and how to run on it."""
    vertices, count = draw(st.integers(1, 120)), draw(st.integers(0, 500))
    ends = skewed(vertices, count, draw(st.integers(0, 99)))
    edges = weighed(EdgeList(vertices, *ends, None, draw(st.booleans())), draw(st.sampled_from(["uint8", "float32"])))
    options = {
        "route": draw(st.sampled_from(["auto", "filter", "zero-copy", "compaction"])),
        "device_edge_memory": draw(st.integers(LEAST, 6000)),
        "partition_bytes": draw(st.integers(1, 600)),
        "direction": draw(st.sampled_from(["auto", "push", "pull"])),
        "packed": draw(st.sampled_from(["auto", "never"])),
        "tuning": {
            "model": draw(st.sampled_from(["measured", "published"])),
            "combine": draw(st.integers(1, 4)),
            "priority": draw(st.booleans()),
            "residency": draw(st.sampled_from(["value", "none"])),
            "local_rounds": draw(st.integers(0, 2)),
        },
    }
    if options["route"] in ("auto", "zero-copy") and draw(st.booleans()):
        options["device_edge_memory"] = draw(st.integers(0, LEAST))
    return edges, options


@settings(max_examples=25)
@given(
    case=cases(),
    name=st.sampled_from(PROGRAMS),
    shelf=st.none() | st.tuples(st.sampled_from([32, 64, 128]), st.integers(1, 3), st.integers(0, 6)),
)
def test_every_route_model_and_budget_gives_the_answer(
    case: tuple[EdgeList, dict[str, Any]], name: str, shelf: tuple[int, int, int] | None
) -> None:
    """And copies exactly the bytes that the records say; no task brings a partition twice.

    shelf: None for a host that holds every edge, else what it holds; the rest comes from disk in each iteration.
    """
    edges, options = case
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if shelf is not None:
            patch.setattr(memory_plan, "divide_host_memory", keeping(*shelf))
        graph = on_disk(edges, Path(folder) / "graph.h5", chunk_edges=32)
        with Session(graph, device="emulated", **options) as session:
            result = session.run(program_of(name, edges))
            loaded, again = session._device.bytes_in, session.run(program_of(name, edges))
            copied = session._device.bytes_in - loaded
    check(name, edges, result.fields)
    tasks = [task for record in again.records for task in record.tasks]
    assert copied == sum(task.bytes_link for task in tasks if task.route != "zero-copy")
    assert options["tuning"]["local_rounds"] or not sum(task.resent for task in tasks)
    allowed = {"compaction": {"compaction", "filter"}}.get(options["route"], {options["route"]})
    assert options["route"] == "auto" or {task.route for task in tasks} <= allowed
    for record in again.records:
        numbers = [number for task in record.tasks for number in task.partitions]
        assert len(numbers) == len(set(numbers))


def graph_and_edges(tmp_path: Path) -> tuple[Graph, EdgeList]:
    edges = weighed(EdgeList(500, *skewed(500, 20_000, 3), None, False), "uint8")
    return on_disk(edges, tmp_path / "graph.h5", chunk_edges=256), edges


def test_a_graph_that_fits_travels_once(tmp_path: Path) -> None:
    graph, edges = graph_and_edges(tmp_path)
    with Session(graph, device="emulated") as session:
        for _ in range(2):
            check("sssp", edges, session.run(program_of("sssp", edges)).fields)
        assert session._device.bytes_in == graph.edges * 5


def test_components_need_only_rows_outside_the_largest(tmp_path: Path) -> None:
    """With a quarter resident, most partitions' edges never travel."""
    graph, edges = graph_and_edges(tmp_path)
    with Session(
        graph, device="emulated", device_edge_memory=graph.edges, partition_bytes=1024, packed="never"
    ) as session:
        result = session.run(program_of("wcc", edges))
    check("wcc", edges, result.fields)
    assert sum(task.bytes_link for record in result.records for task in record.tasks) < graph.edges


@pytest.mark.parametrize("way", ["grid", "scattered"])
def test_components_of_a_grid_are_linked_in_one_pass(tmp_path: Path, way: str) -> None:
    """What is here of a grid leads to its own rows: nothing could be left out. With scattered ids much can."""
    side = 64
    ids = np.arange(side * side).reshape(side, side)
    if way == "scattered":
        ids = np.random.default_rng(5).permutation(side * side).reshape(side, side)
    pairs = np.concatenate(
        [np.stack([ids[:, :-1], ids[:, 1:]], -1).reshape(-1, 2), np.stack([ids[:-1], ids[1:]], -1).reshape(-1, 2)]
    )
    edges = EdgeList(side * side, pairs[:, 0].copy(), pairs[:, 1].copy(), None, False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=64)
    with Session(graph, device="emulated", device_edge_memory=3 * graph.edges, partition_bytes=1024) as session:
        result = session.run(program_of("wcc", edges))
    check("wcc", edges, result.fields)
    assert len(result.records) == (1 if way == "grid" else 2)


def test_zero_copy_moves_only_active_lines(tmp_path: Path) -> None:
    edges = shape("path", directed=False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=64)
    options = {"device": "emulated", "partition_bytes": 256, "direction": "push", "packed": "never"}
    result = run(program_of("bfs", edges), graph, route="zero-copy", **options)
    check("bfs", edges, result.fields)
    filtered = run(program_of("bfs", edges), graph, route="filter", device_edge_memory=1 << 14, **options)
    moved = [sum(t.bytes_link for r in x.records for t in r.tasks) for x in (result, filtered)]
    assert 0 < moved[0] < moved[1]


@pytest.mark.parametrize("kernels", ["host", "reference", "cuda"])
def test_heads_answer_most_pulls(tmp_path: Path, kernels: Any) -> None:
    """With the first edges of every row on the device, fewer edges travel, and the answer is the same."""
    count = 60 if kernels == "cuda" else 500
    edges = EdgeList(count, *skewed(count, 20 * count, 3), None, False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=64)
    options = {"device_edge_memory": graph.edges * 2, "partition_bytes": 256, "direction": "pull", "kernels": kernels}
    moved = []
    for residency in ("value", "none"):
        with Session(graph, device="emulated", tuning={"residency": residency}, **options) as session:
            result = session.run(program_of("bfs", edges))
            heads = session._equipment.heads
        check("bfs", edges, result.fields)
        assert (heads is not None and heads.filled and heads.each >= 2) == (residency == "value")
        moved.append(sum(task.bytes_link for record in result.records for task in record.tasks))
    assert moved[0] < moved[1]


def test_heads_are_as_long_as_fits() -> None:
    index = from_offsets(np.cumsum([0, 5, 0, 1, 40, 3]))
    assert longest_prefix(index, 4, prefix_bytes(5, 2 + 1 + 2 + 2, 4)) == 2
    assert longest_prefix(index, 4, prefix_bytes(5, 4, 4) - 1) == 0
    assert longest_prefix(index, 4, 10**9) == 32
    assert index.clipped(2, 1).starts(0, 6).tolist() == [0, 2, 2, 3, 5, 7]


@pytest.mark.parametrize("kernels", ["host", "reference"])
def test_chebyshev_gives_the_ranks(kernels: str) -> None:
    for kind in ("cliques", "sparse", "star-in"):
        edges = shape(kind, directed=False)
        result = run(ChebyshevPageRank(tol=1e-10, max_iter=200), in_memory(edges), device="cpu", kernels=kernels)
        check_pagerank(edges, result.fields["rank"], l1=1e-8)
        assert result.iterations <= 60


def test_chebyshev_refuses_directed_graphs() -> None:
    with pytest.raises(InputError, match="undirected"):
        run(ChebyshevPageRank(), in_memory(shape("sparse")), device="cpu")


@pytest.mark.skipif(cuda.count() > 0, reason="there is a device")
def test_cuda_asked_for_and_absent() -> None:
    graph = in_memory(shape("two"))
    with pytest.raises(InputError, match='device="cpu"'):
        run(BFS(0), graph, device="cuda:0")
    assert run(BFS(0), graph, device="auto").converged


@pytest.mark.skipif(cuda.count() > 0, reason="there is a device")
def test_without_a_device_cupy_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "cupy", None)  # an import of it fails
    assert cuda.count() == 0


def test_auto_is_the_gpu_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 1)
    monkeypatch.setattr(cuda, "number_of", lambda name: 0)
    monkeypatch.setattr(cuda, "CudaDevice", lambda number, memory: f"GPU {number}")
    assert device_of(Config.of()) == "GPU 0"
    assert device_of(Config.of(kernels="reference")).name == "cpu"


def test_devices_that_cannot_be() -> None:
    graph = in_memory(shape("two"))
    with pytest.raises(InputError, match="tpu"):
        run(BFS(0), graph, device="tpu")
    with pytest.raises(InputError, match="route"):
        run(BFS(0), graph, device="emulated", route="teleport")


def test_start_values_of_any_program_reach_the_device() -> None:
    """A program that fills its fields with NumPy only."""
    edges = shape("cliques", directed=False, weights="uint8")
    from penstock.engine.programs.pagerank import PageRank

    program = PageRank(tol=1e-12, max_iter=500, personalization={0: 1.0})
    here = run(program, in_memory(edges), device="cpu").fields["rank"]
    there = run(program, in_memory(edges), device="emulated").fields["rank"]
    assert float(np.abs(here - there).sum()) < 1e-9
