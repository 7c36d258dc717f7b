"""A GPU's kernels under numba's CUDA simulator give every program's answer, from every direction and by every route."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import cuda
from penstock.engine import run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.kernels.interface import VertexArrays
from penstock.engine.programs.bfs import BFS, UNREACHED
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.session import Session
from penstock.engine.state.device_state import DeviceState
from penstock.engine.state.state import Frontier
from penstock.storage.format.index import from_offsets
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import View
from support.covering import covering
from support.demand import DEMAND_ACTIVE, DEMAND_DEGREES, check_demand
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import PROGRAMS, check, program_of

pytestmark = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")

DEVICE: dict[str, Any] = {"device": "emulated", "kernels": "cuda"}


@covering("name, kind, directed", PROGRAMS, ("one-loop", "parallel", "loops", "cliques", "sparse"), (True, False))
def test_shapes(name: str, kind: str, directed: bool) -> None:
    edges = shape(kind, directed=directed, weights="uint8")
    check(name, edges, run(program_of(name, edges), in_memory(edges), **DEVICE).fields)


@covering(
    "way, name",
    [{"direction": "push"}, {"direction": "pull"}, {"mode": "sync"}],
    ["bfs", "sssp", "sweeps", "wcc"],
    strength=1,
)
def test_directions(name: str, way: dict[str, Any]) -> None:
    """A hub whose row is longer than a tile, among rows of one edge."""
    hub = np.stack([np.full(90, 3), np.arange(90)])
    edges = weighed(EdgeList(90, *np.concatenate([skewed(90, 100, 5), hub, hub[::-1]], axis=1)), "uint16")
    check(name, edges, run(program_of(name, edges), in_memory(edges), **DEVICE, **way).fields)


@covering("route, name", ["filter", "zero-copy", "auto"], ["bfs", "sssp", "sweeps", "wcc"], strength=1)
def test_routes(name: str, route: str, tmp_path: Path) -> None:
    edges = weighed(EdgeList(80, *skewed(80, 300, 8), None, False), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    options = {"route": route, "device_edge_memory": 900, "partition_bytes": 128}
    check(name, edges, run(program_of(name, edges), graph, **DEVICE, **options).fields)


@pytest.mark.parametrize("name", ["bfs", "sssp"])
def test_lines_read_in_place_are_counted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a push just the aligned runs that active rows touch; the last record, too, hears of its own."""
    monkeypatch.setattr(CudaKernels, "can_fuse", lambda self, frontier: False)  # stretches do not count lines
    edges = weighed(EdgeList(80, *skewed(80, 300, 8), None, False), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    options = {"route": "zero-copy", "direction": "push", "mode": "sync"}
    with Session(graph, **DEVICE, **options, device_edge_memory=900, partition_bytes=128) as session:
        session.run(program_of(name, edges))  # it reads the graph
        result = session.run(program_of(name, edges))
    tasks = [task for record in result.records for task in record.tasks]
    assert {task.route for task in tasks} == {"zero-copy"}
    assert [task.lines_read for task in tasks] == [task.lines for task in tasks]
    if name == "bfs":
        starts, levels = graph.out.index().starts(0, 81), result.fields["level"]
        runs = (starts[1:] - 1) // seam.LANES - starts[:-1] // seam.LANES + 1
        wanted = [runs[(levels == k) & (starts[1:] > starts[:-1])].sum() for k in range(len(tasks))]
        assert [task.lines_read for task in tasks] == wanted


def test_lines_of_pulls_are_counted(tmp_path: Path) -> None:
    """An early exit reads a part of what there is, a sweep all of it."""
    edges = EdgeList(80, *skewed(80, 300, 8), None, False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    with Session(graph, **DEVICE, route="zero-copy", direction="pull", device_edge_memory=900) as session:
        first = [t for r in session.run(program_of("bfs", edges)).records for t in r.tasks]
        sweeps = [t for r in session.run(program_of("sweeps", edges)).records for t in r.tasks]
    everything = -(-graph.edges // seam.LANES)
    assert {task.lines_read for task in sweeps} == {everything}
    assert all(0 < task.lines_read < everything for task in first)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("cuts", [(), (1,), (7, 8, 50), (16, 33, 1000, 1001)])
def test_pulls_of_any_piece_of_the_edges(cuts: tuple[int, ...], whole: bool) -> None:
    """Tiles that a view begins or ends in, rows cut by either, and as many tiles as make every block take several."""
    edges = shape("skewed")
    graph, device, program = in_memory(edges), EmulatedDevice(), PageRank()
    kernels = CudaKernels(program, graph.vertex_dtype, False, device, {})
    state = DeviceState(program, kernels.author, (0, graph.vertices), graph.vertex_dtype, device)
    state.accumulate_apart()
    random = np.random.default_rng(len(cuts))
    state.sent[:] = random.integers(0, 1 << 20, graph.vertices)
    state.active.words[:] = random.integers(0, 1 << 32, len(state.active.words))
    index, (neighbors, _) = graph.out.index(), graph.out.arrays
    bounds = [0, *cuts, graph.edges]
    for e0, e1 in itertools.pairwise(bounds):
        rows = index.row_of(e0), index.row_of(e1 - 1) + 1
        view = View(e0, e1, *rows, neighbors[e0:e1], None, TaskRecord("resident", "in", ()))
        kernels.pull(view, state, Frontier(1, 1, everything=whole), (index, index), (np.float64(0),) * 4)
    bits = np.unpackbits(state.active.words.view(np.uint8), bitorder="little")[: graph.vertices]
    sent = state.sent if whole else state.sent * bits
    rows_of_edges = np.repeat(np.arange(graph.vertices), index.degrees(0, graph.vertices))
    assert np.array_equal(state.incoming, np.bincount(rows_of_edges, sent[neighbors], graph.vertices))


def test_select_lists_in_ascending_order() -> None:
    """The running sums count the aligned runs of LANES edges that rows touch."""
    edges = shape("skewed")
    graph, device = in_memory(edges), EmulatedDevice()
    kernels = CudaKernels(BFS(0), graph.vertex_dtype, False, device, {})
    state = DeviceState(BFS(0), kernels.author, (0, graph.vertices), graph.vertex_dtype, device)
    chosen = np.array([150, 3, 64, 0, 199, 31, 32])
    kernels.mark(state, chosen)
    index = graph.out.index()
    frontier = kernels.select(state, index, (np.int64(0),), np.inf)
    starts = index.starts(0, graph.vertices + 1)
    rows = np.sort(chosen)
    ends = [(starts[v] // seam.LANES, (starts[v + 1] - 1) // seam.LANES, starts[v] < starts[v + 1]) for v in rows]
    touched = [(last - first + 1) * edges_there for first, last, edges_there in ends]
    assert frontier.vertices == len(chosen)
    assert frontier.edges == sum(starts[v + 1] - starts[v] for v in rows)
    assert state.vertices[: len(rows)].tolist() == rows.tolist()
    assert state.work[: len(rows) + 1].tolist() == [0, *np.cumsum(touched).tolist()]


@pytest.mark.parametrize("room", [0, 20, 1 << 20])
def test_what_follows_is_counted_where_it_has_room(room: int) -> None:
    """Rows that find no room in the queue stay pending, and the record has the others; nothing is left behind it."""
    edges = weighed(shape("sparse"), "uint8")
    graph, device, program = in_memory(edges), EmulatedDevice(), SSSP(0)
    kernels = CudaKernels(program, graph.vertex_dtype, True, device, {})
    state = DeviceState(program, kernels.author, (0, graph.vertices), graph.vertex_dtype, device)
    state.vertices, state.work = np.zeros(room, state.vertices.dtype), np.zeros(room + 1, np.int64)
    state.arrays[0][:] = 0  # so that no message changes one
    index, (neighbors, weights) = graph.out.index(), graph.out.arrays
    for _ in range(2):
        record, carrier = TaskRecord("cel", "out", ()), TaskRecord("filter", "out", (0,))
        view = View(0, graph.edges, 0, graph.vertices, neighbors, weights, carrier)
        kernels.mark(state, np.arange(graph.vertices))
        kernels.push_resend(view, state, Frontier(0, 0), index, (np.float64(0),), (np.inf, 1), record)
        left = kernels.select(state, index, (np.float64(0),), np.inf)
        assert (record.rows, record.edges) == (graph.vertices - left.vertices, graph.edges - left.edges)
        assert carrier.resent == record.edges
        assert bool(record.rows) == (room > 0)
        assert (left.vertices > 0) == (room <= 20)


def test_an_error_in_a_kernel_is_raised_and_nobody_waits() -> None:
    @seam.kernel
    def broken(array):  # type: ignore[no-untyped-def]
        if cuda.threadIdx.x == 1:
            array[10] = 1
        cuda.syncthreads()

    with pytest.raises(IndexError):
        broken(1, np.zeros(2))


class Loaded:
    """In place of a kernel in a device's memory."""

    made: list[Loaded]

    def __init__(self, function: Any, arguments: tuple[Any, ...], *, together: bool) -> None:
        self.kinds = [argument.dtype for argument in arguments]
        self.place = seam._current[0]
        self.launches = 0
        self.made.append(self)

    def take(self, arguments: tuple[Any, ...]) -> bool:
        return [argument.dtype for argument in arguments] == self.kinds

    def forget(self) -> None:
        self.kinds = []

    def launch(self, blocks: int) -> None:
        assert self.place == seam._current[0]
        self.launches += 1


def test_a_kernel_is_loaded_once_a_device_and_kind_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "SIMULATED", False)
    monkeypatch.setattr(seam, "_Loaded", Loaded)
    monkeypatch.setattr(seam, "_current", [""])
    Loaded.made = []
    known = seam.DeviceKernel(lambda values: None)
    devices = [EmulatedDevice("one"), EmulatedDevice("other")]
    for device in (*devices, *devices):
        seam.use(device)
        for kind in (np.int64, np.float64, np.float64, np.int64):
            known(1, np.zeros(1, dtype=kind))
    assert [(it.place, it.kinds, it.launches) for it in Loaded.made] == [
        (place, [np.dtype(kind)], 4) for place in ("one", "other") for kind in (np.int64, np.float64)
    ]
    known.forget()


def test_blocks_that_wait_for_each_other_must_all_run_at_once() -> None:
    @seam.kernel_together
    def waiting(values):  # type: ignore[no-untyped-def]
        values[0] += 1

    with pytest.raises(AssertionError, match="at once"):
        waiting(seam.blocks_together() + 1, np.zeros(1))


class Placed:
    """An array of a device, as far as a launch looks at it."""

    def __init__(self, pointer: int, size: int, dtype: type = np.uint32) -> None:
        self.dtype, self.size, self.itemsize, self.ndim = np.dtype(dtype), size, np.dtype(dtype).itemsize, 1
        self.shape, self.strides, self.data = (size,), (self.itemsize,), SimpleNamespace(ptr=pointer)

    @property
    def words(self) -> list[int]:
        return [0, 0, self.size, self.itemsize, self.data.ptr, self.size, self.itemsize]


def test_arguments_are_laid_out_flat_and_only_where_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, more = Placed(7, 5), Placed(8, 6), Placed(9, 2)
    arrays = VertexArrays(one, other, one, one, np.uint64(3))
    room = seam._Arguments((arrays, np.float64(0.5), (one, np.int64(-1))))
    assert room.take((arrays, np.float64(0.5), (one, np.int64(-1))))
    half = int(np.float64(0.5).view(np.uint64))
    assert room.words.tolist() == [*one.words, *other.words, *one.words, *one.words, 3, half, *one.words, 2**64 - 1]
    laid, flatten = [], seam._flatten
    monkeypatch.setattr(seam, "_flatten", lambda argument, words: (laid.append(argument), flatten(argument, words)))
    assert room.take((arrays._replace(target=more), np.float64(2.0), (one, np.int64(4))))
    assert [type(argument) for argument in laid] == [Placed, np.float64, np.int64]
    expected = [*one.words, *more.words, *one.words, *one.words, 3, int(np.float64(2.0).view(np.uint64)), *one.words, 4]
    assert room.words.tolist() == expected
    replaced, rest = arrays._replace(target=more), (np.float64(2.0), (one, np.int64(4)))
    assert room.take((replaced, *rest))
    assert not room.take((VertexArrays(other, Placed(1, 1, np.float32), one, one, np.uint64(0)), *rest))
    assert not room.take((one, *rest))
    assert room.take((replaced, *rest))
    assert room.words.tolist() == expected
    room.forget()
    laid.clear()
    assert room.take((arrays, np.float64(2.0), (one, np.int64(4))))
    assert len(laid) == 8


@pytest.mark.parametrize("partition_edges", [100, 8192])
@pytest.mark.parametrize("by_cond", [False, True])
def test_demand_marks_the_blocks_of_active_rows(by_cond: bool, partition_edges: int) -> None:
    """As the host's kernels do (`test_windows.py`)."""
    index = from_offsets(np.concatenate([[0], np.cumsum(DEMAND_DEGREES)]))
    device, dtype = EmulatedDevice(), np.dtype(np.uint32)
    kernels = CudaKernels(BFS(0), dtype, False, device, {})
    state = DeviceState(BFS(0), kernels.author, (0, index.vertices), dtype, device)
    kernels.mark(state, DEMAND_ACTIVE)
    kernels.select(state, index, (np.int64(0),), np.inf)
    state.arrays[0][:] = 0
    state.arrays[0][DEMAND_ACTIVE] = UNREACHED
    sizes = partition_edges, 64, 32

    def count(table: Any, chunks: Any, blocks: Any) -> None:
        if by_cond:
            kernels.count_cond(state, index, (np.int64(0),), sizes, table, chunks, 0, blocks)
        else:
            kernels.count_active(state, index, sizes, table, chunks, blocks)

    check_demand(index, sizes, DEMAND_ACTIVE, count)
