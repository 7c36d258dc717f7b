"""The real device gives every program's answer by every route, whatever share of the edges it may hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.execution import stream_walk
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.format.graph import Graph
from penstock.transfer.devices.cuda import CudaDevice
from support.graphs import SHAPES, in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import PROGRAMS, check, program_of

pytestmark = pytest.mark.gpu

WAYS: list[dict[str, Any]] = [{}, {"direction": "push"}, {"direction": "pull"}, {"mode": "sync"}, {"mode": "async"}]
NOT_ASYNCHRONOUS = ("bfs", "sweeps")
CHUNK_EDGES = 1 << 10


def check_all(graph: Graph, edges: EdgeList, **options: Any) -> None:
    """Run every program that these options allow in one session."""
    with Session(graph, device="cuda:0", **options) as session:
        for name in PROGRAMS:
            if options.get("mode") != "async" or name not in NOT_ASYNCHRONOUS:
                check(name, edges, session.run(program_of(name, edges)).fields)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in SHAPES if kind != "empty"])
def test_every_shape(kind: str, directed: bool, way: dict[str, Any]) -> None:
    edges = shape(kind, directed=directed, weights="uint8")
    check_all(in_memory(edges), edges, **way)


@pytest.fixture(scope="module", params=[None, "uint8", "float32"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[EdgeList, Graph]:
    """A skewed graph on disk, without weights and with narrow and wide ones."""
    edges = weighed(EdgeList(5000, *skewed(5000, 60_000, 5)), request.param)
    return edges, on_disk(edges, tmp_path_factory.mktemp("stored") / "graph.h5", chunk_edges=CHUNK_EDGES)


@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("share", [1.0, 0.25, 0.03])
@pytest.mark.parametrize("route", ["auto", "resident", "filter", "zero-copy"])
def test_every_route_and_budget(stored: tuple[EdgeList, Graph], route: str, share: float, direction: str) -> None:
    edges, graph = stored
    if route == "resident" and share < 1:
        pytest.skip("only what fits entirely is resident")
    width = 4 + (0 if graph.weight_dtype is None else graph.weight_dtype.itemsize)
    memory = int(share * 2 * graph.edges * width)
    options = {"route": route, "device_edge_memory": memory, "partition_bytes": 1 << 13}
    check_all(graph, edges, direction=direction, **options)


@pytest.mark.parametrize("weights", ["uint8", "uint32", "float32", "float64"])
def test_weights(weights: str) -> None:
    edges = shape("skewed", weights=weights)
    for mode in ("auto", "sync"):
        check("sssp", edges, run(program_of("sssp", edges), in_memory(edges), device="cuda:0", mode=mode).fields)


def stretches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the number of iterations of every launch of several."""
    from penstock.engine.kernels.cuda.launch import CudaKernels

    found: list[int] = []
    before = CudaKernels.fused_iterations

    def counted(*arguments: Any) -> Any:
        done = before(*arguments)
        found.append(len(done[0]))
        return done

    monkeypatch.setattr(CudaKernels, "fused_iterations", counted)
    return found


@pytest.mark.parametrize("weights", ["uint8", "uint32", "float64"])
def test_rows_of_unsettled_vertices(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read whenever they may be, and where they pay: the distances are those of the host, and of the oracle."""
    edges = weighed(EdgeList(20_000, *skewed(20_000, 400_000, 5), None, False), weights)
    graph = in_memory(edges)
    for first in (0, 1):
        monkeypatch.setattr(stream_walk, "MANY", 1 << 40 if first == 0 else 32)
        monkeypatch.setattr(stream_walk, "FIRST", first)
        monkeypatch.setattr(stream_walk, "AGAIN", 4 * first)
        with Session(graph, device="cuda:0", device_edge_memory=700_000, partition_bytes=1 << 20) as session:
            results = [session.run(program_of("sssp", edges)) for _ in range(3)]
        for result in results:
            check("sssp", edges, result.fields)
            assert first or any(record.direction == "pull" for record in result.records)


@pytest.mark.parametrize("mode", ["auto", "sync"])
@pytest.mark.parametrize("name", ["bfs", "sssp"])
def test_a_long_diameter_takes_few_launches(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of 300 squared with a weight on every edge: hundreds of iterations, the host's records."""
    edges = grid(300)
    graph = in_memory(edges)
    found = stretches(monkeypatch)
    with Session(graph, device="cuda:0", mode=mode, direction="push") as session:
        result = session.run(program_of(name, edges))
    check(name, edges, result.fields)
    assert sum(found) > 0.9 * result.iterations > 200
    assert len(found) < 20
    if mode == "sync" or name == "bfs":
        host = run(program_of(name, edges), graph, device="cpu", mode=mode, direction="push")
        assert [(r.vertices, r.edges) for r in result.records] == [(r.vertices, r.edges) for r in host.records]


def grid(side: int) -> EdgeList:
    """A grid of `side` squared vertices."""
    at = np.arange(side * side).reshape(side, side)
    ends = [(at[:, :-1].ravel(), at[:, 1:].ravel()), (at[:-1].ravel(), at[1:].ravel())]
    sources, targets = (np.concatenate(side_ends) for side_ends in zip(*ends, strict=True))
    return weighed(EdgeList(side * side, sources, targets, None, False), "uint8")


def test_a_second_session_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does another process: what was compiled is taken from the shelf, even by kernels that are made anew."""
    from penstock.engine.kernels.cuda import driver as cuda
    from penstock.engine.kernels.cuda import launch as cuda_kernels

    edges = shape("skewed", weights="uint8")
    graph = in_memory(edges)
    check_all(graph, edges)
    monkeypatch.setattr(cuda.cuda, "compile_ptx", None)
    check_all(graph, edges)
    monkeypatch.setattr(cuda_kernels, "_MADE", {})
    check_all(graph, edges)


def test_what_the_driver_refuses_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.engine.kernels.cuda import driver as cuda
    from penstock.engine.kernels.cuda import launch as cuda_kernels

    asked: list[Any] = []
    monkeypatch.setattr(cuda_kernels, "_MADE", {})
    monkeypatch.setattr(cuda, "cubin_of", lambda *arguments: asked.append(arguments) or b"kernel\0this is no code")
    edges = shape("ring")
    check("bfs", edges, run(program_of("bfs", edges), in_memory(edges), device="cuda:0").fields)
    assert asked


@pytest.mark.parametrize("name", ["wcc", "sweeps"])
def test_nothing_is_learnt_while_a_kernel_is_loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.engine.kernels.cuda import launch as cuda_kernels

    edges = weighed(EdgeList(50_000, *skewed(50_000, 1_000_000, 5), None, False), None)
    monkeypatch.setattr(cuda_kernels, "_MADE", {})
    with Session(in_memory(edges), device="cuda:0", device_edge_memory=4 << 20, partition_bytes=1 << 20) as session:
        results = [session.run(program_of(name, edges)) for _ in range(2)]
    for result, new in zip(results, (True, False), strict=True):
        check(name, edges, result.fields)
        travelled = [task for record in result.records for task in record.tasks if task.route != "resident"]
        assert any(task.predicted is None for task in travelled) == new


def test_runs_share_a_session() -> None:
    edges = shape("skewed", weights="uint8")
    with Session(in_memory(edges), device="cuda:0") as session:
        for name in (*PROGRAMS, *PROGRAMS):
            check(name, edges, session.run(program_of(name, edges)).fields)


def test_the_ceiling_holds() -> None:
    edges = weighed(EdgeList(100_000, *skewed(100_000, 100_000, 5)), None)
    with pytest.raises((RunError, InputError), match=r"device_(edge_)?memory="):
        run(program_of("bfs", edges), in_memory(edges), device="cuda:0", device_memory=1 << 20)


def test_a_device_that_is_not_there() -> None:
    edges = EdgeList(2, np.array([0]), np.array([1]))
    with pytest.raises(InputError, match="cuda:99"):
        run(program_of("wcc", edges), in_memory(edges), device="cuda:99")


def test_memory_that_the_driver_refuses_to_page_lock_is_named() -> None:
    device = CudaDevice(0)
    memory = aligned_empty(4096, np.uint32)
    device.register(memory)
    with pytest.raises(RunError, match=r"cannot page-lock 8192 bytes.*beside 16384 bytes.*lower --host-memory"):
        device.register(memory[2048:])
    device.close()
