"""A push over packed views sends what a push over the graph's own rows sends: reference, host, and a GPU's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.kernels.host import launch as host
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.kernels.reference.vertex import ReferenceKernels, marked
from penstock.engine.program.bindings import scalar_values
from penstock.engine.program.program import Field, Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.state.device_state import DeviceState
from penstock.engine.state.state import Frontier, State
from penstock.storage.format.graph import Graph
from penstock.storage.format.index import from_degrees
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.staging.gather import ActiveRows, GatherSource, compacted_layout, count_rows, gather_rows
from penstock.transfer.values.task import Partition, TaskRecord, partitions
from penstock.transfer.values.view import View
from support.graphs import in_memory, skewed, weighed
from support.oracles import EdgeList

VERTICES = 80
SIZE = 64  # edges of a partition; the hub's row is longer
RECORD = TaskRecord("compaction", "out", (0,))
on_simulator = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")
NAMES = ("bfs", "sssp", "residual", "shares")
TRIALS = [
    *[pytest.param(name, "reference", 1, id=f"{name}-reference") for name in NAMES],
    *[pytest.param(name, "host", 1, id=f"{name}-serial") for name in NAMES],
    pytest.param("sssp", "host", 2, id="sssp-parallel"),
    *[pytest.param(name, "cuda", 1, id=f"{name}-cuda", marks=on_simulator) for name in NAMES],
]


class Shares(Program):
    """The degree is that of the graph's row, however many views the row is split over."""

    mass = Field(np.float64, fill=1.0)
    combine = "max"

    def edge(mass, degree, source):  # type: ignore[no-untyped-def]
        """Travels along an edge: a vertex's part of itself."""
        return (source + mass) / degree


def hub_graph() -> Graph:
    """Random edges, weights below 60, and one row of 150 edges more."""
    hub = np.stack([np.full(150, 11), np.arange(150) % VERTICES])
    ends = np.concatenate([skewed(VERTICES, 350, 3), hub], axis=1)
    return in_memory(weighed(EdgeList(VERTICES, *ends), "uint8"), both=False)


def program_named(name: str, graph: Graph) -> Program:
    programs: dict[str, Program] = {
        "bfs": BFS(0),
        "sssp": SSSP(0),
        "residual": PageRank(tol=1e-6, weight=False),
        "shares": Shares(),
    }
    return programs[name].form(graph, "async")


def made(kind: str, threads: int, program: Program, graph: Graph) -> tuple[Any, Any]:
    """Kernels and a state whose messages are kept apart, so that the order of edges cannot matter."""
    weighted = isinstance(program, SSSP)
    kernels: Any
    state: Any
    if kind == "cuda":
        kernels = CudaKernels(program, graph.vertex_dtype, weighted, EmulatedDevice(), {})
        state = DeviceState(program, kernels.author, (0, VERTICES), graph.vertex_dtype, kernels.device)
    else:
        kernels = {"reference": ReferenceKernels, "host": HostKernels}[kind](
            program, graph.vertex_dtype, weighted, threads
        )
        state = State(program, kernels.author, 0, VERTICES, graph.vertex_dtype)
    kernels.use()
    state.accumulate_apart()
    program.start(graph, state.fields)
    if weighted:
        state.fields["distance"][:] = np.random.default_rng(5).integers(0, 90, VERTICES)
    return kernels, state


def packed_views(graph: Graph, active: ActiveRows, weighted: bool) -> list[View]:
    """Every partition's active rows; three partitions, then two, then the rest share a buffer."""
    index = graph.out.index()
    table = partitions(index, "out", index.edges, SIZE, chunk_edges=SIZE)
    tasks = [range(len(table))[span] for span in (slice(0, 3), slice(3, 5), slice(5, None))]
    return [packed_view(graph, active, [table[number] for number in task], weighted) for task in tasks if task]


def packed_view(graph: Graph, active: ActiveRows, parts: list[Partition], weighted: bool) -> View:
    arrays = graph.out.arrays
    assert arrays is not None
    neighbors, weights = arrays[0], arrays[1] if weighted else None
    counts = [count_rows(active, part) for part in parts]
    plan = compacted_layout([rows for rows, _ in counts], [edges for _, edges in counts])
    buffer = np.empty(plan.words, graph.vertex_dtype)
    kept = None if weights is None else np.empty(plan.edges, weights.dtype)
    target = *plan.slices(buffer), kept
    for number, part in enumerate(parts):
        gather_rows(active, part, GatherSource(neighbors, weights, 0), plan.place(number), target)
    offsets, rows, gathered, _ = target
    span = parts[0].v0, parts[-1].v1
    return View(0, plan.edges, *span, gathered, kept, RECORD, rows=rows, offsets=offsets)


def whole_view(graph: Graph, weighted: bool) -> View:
    arrays = graph.out.arrays
    assert arrays is not None
    weights = arrays[1] if weighted else None
    return View(0, graph.edges, 0, VERTICES, arrays[0], weights, TaskRecord("resident", "out", (0,)))


def sent(name: str, kind: str, threads: int, *, pack: bool) -> tuple[NDArray[Any], list[int]]:
    """Messages and whom they changed, after a push over packed views or over the graph's rows."""
    graph = hub_graph()
    program, index = program_named(name, graph), graph.out.index()
    kernels, state = made(kind, threads, program, graph)
    weighted = isinstance(program, SSSP)
    scalars = scalar_values(
        program, kernels.author, {"iteration": 3, "vertices": VERTICES, "due": np.inf, "settled": -np.inf}
    )
    kernels.mark(state, np.array([0, 11, 40]) if name == "bfs" else np.arange(2, VERTICES, 3))
    frontier = kernels.select(state, index, scalars, np.inf)
    kernels.send(state, frontier, index, scalars)
    views = [whole_view(graph, weighted)]
    if pack:
        views = packed_views(graph, ActiveRows(state.active.words, index.arrays()), weighted)
        state.active.clear()
        frontier = Frontier(0, 0)
    for view in views:
        kernels.push(view, state, frontier, index, scalars)
    return state.incoming, marked(state.touched)


@pytest.mark.parametrize(("name", "kind", "threads"), TRIALS)
def test_sends_what_a_push_over_rows_sends(name: str, kind: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the frontier says by then: every row of a packed view is active."""
    monkeypatch.setattr(host, "SMALL", 1)
    monkeypatch.setattr(host, "SMALLEST_BLOCK", 7)
    monkeypatch.setattr(host, "LARGEST_BLOCK", 7)
    messages, touched = sent(name, kind, threads, pack=True)
    expected, wanted = sent(name, "reference", 1, pack=False)
    assert len(wanted) > 10
    assert touched == wanted
    if messages.dtype.kind == "f":
        assert np.allclose(messages, expected, rtol=1e-12, atol=0)
    else:
        assert messages.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", [ReferenceKernels, HostKernels])
def test_a_run_on_a_window_of_vertices(kind: Any) -> None:
    """A path along the vertices from 1000 on, each iteration's one row packed; bits count from the window's first."""
    first, count = 1000, 40
    index = from_degrees(first + count, lambda: [np.r_[np.zeros(first, np.int64), np.ones(count - 1, np.int64), 0]])
    kernels = kind(SSSP(first), np.dtype(np.uint32), False, 1)
    state = State(SSSP(first), kernels.author, first, first + count, np.dtype(np.uint32))
    state.fields["distance"][0] = 0
    kernels.mark(state, np.array([0]))
    graph = Graph.from_arrays(index.starts(0, first + count + 1), np.arange(first + 1, first + count, dtype=np.uint32))
    while not (frontier := kernels.select(state, index, (), np.inf)).empty:
        for view in packed_views(graph, ActiveRows(state.active.words, index.arrays(), first), weighted=False):
            kernels.push(view, state, frontier, index, ())
    assert state.fields["distance"].tolist() == list(range(count))
