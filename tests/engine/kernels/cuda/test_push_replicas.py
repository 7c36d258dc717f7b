"""Sums of the first vertices, kept by blocks of a GPU, are those of a push without: marks, values, pieces, choices."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.kernels import hot_vertices
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda import push_replicas
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.program.program import Field, Program
from penstock.engine.state.device_state import DeviceState
from penstock.engine.state.state import Frontier
from penstock.storage.format.graph import Graph
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import View
from support.covering import covering
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import Counts, check, program_of

pytestmark = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")

DEVICE: dict[str, Any] = {"device": "emulated", "kernels": "cuda", "direction": "push"}


class Shares(Program):
    """Sums of what vertices send, in single precision."""

    mass = Field(np.float32, fill=1.0)
    combine = "sum"

    def send(mass, degree):  # type: ignore[no-untyped-def]
        """The same to every neighbor."""
        return mass / degree

    def edge(sent):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return sent


def ordered(graph: Graph) -> Graph:
    """The graph, said to have its vertices in the order of falling degree."""
    return replace(graph, provenance={"options": {"order": "degree"}})


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The blocks of each launch that keeps sums."""
    found: list[int] = []
    launch = CudaKernels._call

    def noted(kernels: CudaKernels, kernel: Any, blocks: int, *arguments: Any) -> None:
        if kernel is push_replicas.make_push_rows_replicas:
            found.append(blocks)
        launch(kernels, kernel, blocks, *arguments)

    monkeypatch.setattr(CudaKernels, "_call", noted)
    return found


def pushed(program: Program, edges: EdgeList, cuts: tuple[int, ...], *, hot: bool, whole: bool) -> tuple[Any, Any]:
    """Messages and marks after pushes over pieces of the edges."""
    graph, device = in_memory(edges), EmulatedDevice()
    kernels = CudaKernels(program, graph.vertex_dtype, True, device, {})
    kernels.hot_first = hot
    state = DeviceState(program, kernels.author, (0, graph.vertices), graph.vertex_dtype, device)
    state.accumulate_apart()
    if len(state.sent) > 1:
        state.sent[:] = np.random.default_rng(2).random(graph.vertices)
    state.active.words[:] = np.random.default_rng(3).integers(0, 1 << 32, len(state.active.words))
    index, (neighbors, weights) = graph.out.index(), graph.out.arrays
    for e0, e1 in itertools.pairwise([0, *cuts, graph.edges]):
        rows = index.row_of(e0), index.row_of(e1 - 1) + 1
        view = View(e0, e1, *rows, neighbors[e0:e1], weights[e0:e1], TaskRecord("resident", "out", ()))
        frontier = Frontier(graph.vertices, graph.edges, everything=whole)
        kernels.push(view, state, frontier, index, (np.int64(0),) * len(kernels.author.scalars))
    return state.incoming, state.touched.words


@covering("whole, cuts, program", [True, False], [(), (7, 200, 1100)], [Counts, Shares])
def test_messages_and_marks(program: type[Program], cuts: tuple[int, ...], whole: bool, kept: list[int]) -> None:
    """A sum that is 0 is marked too; pieces that are too short go the usual way."""
    edges = shape("skewed", weights="uint8")
    expected = pushed(program(), edges, cuts, hot=False, whole=whole)
    assert not kept
    messages, marks = pushed(program(), edges, cuts, hot=True, whole=whole)
    assert kept == [2] * (3 if cuts else 1)
    assert np.array_equal(marks, expected[1])
    if messages.dtype.kind == "f":
        assert np.allclose(messages, expected[0], rtol=1e-5, atol=0)
    else:
        assert np.array_equal(messages, expected[0])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_pagerank(mode: str, kept: list[int]) -> None:
    """Sweeps push whole; residuals from a list with most edges, and later from few."""
    name = "sweeps" if mode == "sync" else "pagerank"
    edges = EdgeList(90, *skewed(90, 700, 4))
    way = {"mode": mode} if mode == "async" else {}
    answer = run(program_of(name, edges), ordered(in_memory(edges, both=False)), **DEVICE, **way)
    check(name, edges, answer.fields)
    assert kept


@pytest.mark.parametrize("route", ["filter", "zero-copy", "compaction"])
def test_routes(route: str, tmp_path: Path, kept: list[int]) -> None:
    edges = weighed(EdgeList(80, *skewed(80, 900, 8), None, False), "uint8")
    graph = ordered(on_disk(edges, tmp_path / "graph.h5", chunk_edges=16))
    options = {"route": route, "device_edge_memory": 2900, "partition_bytes": 1024}
    for name in ("sweeps", "pagerank") if route == "zero-copy" else ("sweeps",):
        check(name, edges, run(program_of(name, edges), graph, **DEVICE, **options).fields)
    assert bool(kept) == (route != "compaction")  # whose views are of single rows


def test_without_an_order_nothing_is_kept(kept: list[int]) -> None:
    edges = EdgeList(300, *skewed(300, 2500, 4))
    run(program_of("sweeps", edges), in_memory(edges, both=False), **DEVICE)
    assert not kept


def test_only_where_many_edges_go_there(kept: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where the first vertices have few of the edges, nor for a minimum."""
    edges = EdgeList(300, *skewed(300, 2500, 4))
    graph = ordered(in_memory(edges, both=False))
    run(program_of("wcc", edges), graph, **DEVICE)
    assert not kept
    monkeypatch.setattr(hot_vertices, "LEAST_SHARE", 1.1)
    run(program_of("sweeps", edges), graph, **DEVICE)
    assert not kept
