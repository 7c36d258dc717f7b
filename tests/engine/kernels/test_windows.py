"""Kernels where arrays do not begin at vertex 0, and where one row is huge.

Each case runs on the reference, on that in NumPy and on the compiled kernels, on one and on several threads.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.host import launch as host
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.kernels.reference.arrays import PlainKernels
from penstock.engine.kernels.reference.vertex import ReferenceKernels, marked
from penstock.engine.program.program import Field, Program
from penstock.engine.programs.bfs import BFS, UNREACHED
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.state.state import Frontier, State
from penstock.storage.format.index import Index, from_offsets
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import View
from support.demand import DEMAND_ACTIVE, DEMAND_DEGREES, check_demand

KIND = np.dtype(np.uint32)
FIRST, LAST = 1000, 1300
KERNELS = [
    pytest.param(ReferenceKernels, 1, id="reference"),
    pytest.param(PlainKernels, 1, id="plain"),
    pytest.param(HostKernels, 1, id="serial"),
    pytest.param(HostKernels, 2, id="parallel"),
]


@pytest.fixture(autouse=True)
def _never_small(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.id.startswith("parallel") or "-parallel" in request.node.callspec.id:
        monkeypatch.setattr(host, "SMALL", 1)


def _edges(seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """900 edges among vertices FIRST .. LAST, a third of them from one vertex, sorted by source."""
    random = np.random.default_rng(seed)
    sources = random.integers(FIRST, LAST, 900)
    sources[:300] = FIRST + 7
    targets = random.integers(FIRST, LAST, 900).astype(KIND)
    order = np.lexsort((targets, sources))
    return sources[order].astype(KIND), targets[order]


def _index(sources: np.ndarray[Any, Any]) -> Index:
    offsets = np.zeros(LAST + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=LAST), out=offsets[1:])
    return from_offsets(offsets)


def _views(sources: np.ndarray[Any, Any], targets: np.ndarray[Any, Any]) -> list[View]:
    """Three views."""
    index, record = _index(sources), TaskRecord("resident", "out", (0,))
    views = []
    for e0, e1 in ((0, 250), (250, 600), (600, 900)):
        rows = index.row_of(e0), index.row_of(e1 - 1) + 1
        views.append(View(e0, e1, *rows, targets[e0:e1], None, record))
    return views


def _start(program: Program, kernels: Any) -> State:
    state = State(program, kernels.author, FIRST, LAST, KIND)
    state.pending.add(np.array([7]))
    return state


@pytest.mark.parametrize(("kind", "threads"), KERNELS)
def test_shortest_paths_on_a_window(kind: Any, threads: int) -> None:
    sources, targets = _edges(3)
    program = SSSP(source=FIRST + 7)
    kernels = kind(program, KIND, False, threads)
    kernels.use()
    state, index = _start(program, kernels), _index(sources)
    state.fields["distance"][7] = 0
    while not (frontier := kernels.select(state, index, (), np.inf)).empty:
        for view in _views(sources, targets):
            kernels.push(view, state, frontier, index, ())
    assert state.fields["distance"].tolist() == _levels(sources, targets)


@pytest.mark.parametrize(("kind", "threads"), KERNELS)
def test_components_on_a_window(kind: Any, threads: int) -> None:
    sources, targets = _edges(4)
    keep = (sources - FIRST) % 5 == (targets - FIRST) % 5
    sources, targets = sources[keep], targets[keep]
    kernels = kind(WCC(), KIND, False, threads)
    kernels.use()
    state, index = _start(WCC(), kernels), _index(sources)
    state.fields["component"][:] = np.arange(LAST - FIRST)
    record = TaskRecord("resident", "out", (0,))
    view = View(0, len(sources), FIRST, LAST, targets, None, record)
    kernels.link_rows(view, state, index, 0, np.uint64(2**64 - 1), False)
    kernels.compress(state)
    assert state.fields["component"].tolist() == _components(sources, targets)


@pytest.mark.parametrize(("kind", "threads"), KERNELS)
def test_a_pull_reads_no_edges_of_rows_that_want_none(kind: Any, threads: int) -> None:
    """Where not all are loaded their places hold leftovers."""
    rows, neighbors = _edges(8)
    kernels = kind(BFS(source=FIRST), KIND, False, threads)
    kernels.use()
    state, index, found = _start(BFS(source=FIRST), kernels), _index(rows), np.arange(0, LAST - FIRST, 2)
    state.fields["level"][found] = 0
    state.active.add(found[:50])
    expected = [
        min((u for u in neighbors[rows == v].tolist() if u % 2 == 0 and u < FIRST + 100), default=2**32 - 1)
        for v in range(FIRST + 1, LAST, 2)
    ]
    neighbors[rows % 2 == 0] = 2**32 - 1
    frontier = Frontier(50, int(np.isin(rows, found[:50] + FIRST).sum()))
    for view in _views(rows, neighbors):
        kernels.pull(view, state, frontier, (index, index), (np.int64(0),))
    assert state.target[1::2].tolist() == expected


@pytest.mark.parametrize(("kind", "threads"), KERNELS)
def test_rows_inside_the_largest_tree_are_not_linked(kind: Any, threads: int) -> None:
    """Their edges may not be loaded."""
    ends = np.concatenate([_edges(4), _edges(4)[::-1]], axis=1)
    sources, targets = ends[:, np.argsort(ends[0], kind="stable")]
    inside = sources < FIRST + 100
    kernels = kind(WCC(), KIND, False, threads)
    kernels.use()
    state, index = _start(WCC(), kernels), _index(sources)
    state.pending.clear()
    forest = state.fields["component"]
    forest[:], forest[:100] = np.arange(LAST - FIRST), 0
    kernels.mark_outside(state, index, np.uint64(0), (0, LAST - FIRST))
    frontier = kernels.select(state, index, (), np.inf)
    targets[inside] = 2**32 - 1
    kernels.link_listed(
        View(0, len(sources), FIRST, LAST, targets, None, TaskRecord("resident", "out", (0,))),
        state, frontier, index, np.uint64(0),
    )  # fmt: skip
    kernels.compress(state)
    kept = (
        np.concatenate([np.full(100, FIRST), sources[~inside]]),
        np.concatenate([FIRST + np.arange(100), targets[~inside]]),
    )
    assert forest.tolist() == _components(*kept)


@pytest.mark.parametrize(("kind", "threads"), KERNELS)
def test_sweep_sends_select_and_apply_on_a_window(kind: Any, threads: int) -> None:
    class Spread(Program):
        mass = Field(np.float64, fill=1.0)
        combine = "sum"

        def send(mass, degree):
            return mass / degree if degree > 0 else 0.0

        def edge(sent, source, target):
            return sent + (source - source) + (target - target)

        def vertex(mass, incoming, vertex_id):
            return incoming + 1000.0 * (vertex_id == 1007)

        def active(mass, old_mass):
            return mass > old_mass

    sources, targets = _edges(5)
    kernels = kind(Spread(), KIND, False, threads)
    kernels.use()
    state, index = _start(Spread(), kernels), _index(sources)
    state.accumulate_apart()
    everyone = Frontier(LAST - FIRST, len(sources), everything=True)
    kernels.send(state, everyone, index, ())
    for view in _views(sources, targets):
        kernels.push(view, state, everyone, index, ())
    kernels.apply(state, everyone, index, ())
    degrees = np.bincount(sources, minlength=LAST)
    expected = np.zeros(LAST)
    np.add.at(expected, targets, 1 / degrees[sources])
    expected[FIRST + 7] += 1000
    assert np.allclose(state.fields["mass"], expected[FIRST:])
    expected_active = np.flatnonzero(state.fields["mass"] > 1.0)
    assert set(expected_active) <= set(marked(state.pending))


@pytest.mark.parametrize(("kind", "threads"), KERNELS)
def test_demand_counts_rows_edges_lines_and_chunks(kind: Any, threads: int) -> None:
    sources, _ = _edges(6)
    kernels = kind(BFS(source=FIRST), KIND, False, threads)
    kernels.use()
    state, index = _start(BFS(source=FIRST), kernels), _index(sources)
    state.active.add(np.array([7, 100, 299]))
    table, chunks = np.zeros(4 * 3, np.int64), np.zeros(15, np.uint8)
    kernels.count_active(state, index, (256, 64, 32), table, chunks)
    expected = np.zeros((4, 3), np.int64)
    wanted = np.zeros(15, np.uint8)
    for v in (FIRST + 7, FIRST + 100, FIRST + 299):
        row = np.flatnonzero(sources == v)
        wanted[row // 64] = 1
        for partition in np.unique(row // 256):
            part = row[row // 256 == partition]
            expected[partition] += (1, len(part), len(np.unique(part // 32)))
    assert table.reshape(4, 3).tolist() == expected.tolist()
    assert chunks.tolist() == wanted.tolist()


@pytest.mark.parametrize("partition_edges", [100, 1024, 8192, 1 << 14])
@pytest.mark.parametrize("by_cond", [False, True])
@pytest.mark.parametrize(("kind", "threads"), KERNELS)
def test_demand_marks_the_blocks_of_active_rows(kind: Any, threads: int, by_cond: bool, partition_edges: int) -> None:
    """Marks of the time before are gone; the other columns are as without."""
    kernels = kind(BFS(source=FIRST), KIND, False, threads)
    kernels.use()
    degrees = np.concatenate([np.zeros(FIRST, np.int64), DEMAND_DEGREES])
    index = from_offsets(np.concatenate([[0], np.cumsum(degrees)]))
    state = _start(BFS(source=FIRST), kernels)
    state.active.add(DEMAND_ACTIVE)
    state.fields["level"][:] = 0
    state.fields["level"][DEMAND_ACTIVE] = UNREACHED
    sizes = partition_edges, 64, 32
    check_demand(index, sizes, DEMAND_ACTIVE + FIRST, partial(_demand, kernels, state, index, sizes, by_cond))


def _demand(kernels: Any, state: Any, index: Index, sizes: Any, by_cond: bool, table: Any, chunks: Any, blocks: Any):  # type: ignore[no-untyped-def]
    if by_cond:
        kernels.count_cond(state, index, (np.int64(0),), sizes, table, chunks, 0, blocks)
    else:
        kernels.count_active(state, index, sizes, table, chunks, blocks)


def _levels(sources: np.ndarray[Any, Any], targets: np.ndarray[Any, Any]) -> list[int]:
    level = {FIRST + 7: 0}
    queue = [FIRST + 7]
    for u in queue:
        for v in targets[sources == u].tolist():
            if v not in level:
                level[v] = level[u] + 1
                queue.append(v)
    return [level.get(v, 2**32 - 1) for v in range(FIRST, LAST)]


def _components(sources: np.ndarray[Any, Any], targets: np.ndarray[Any, Any]) -> list[int]:
    label = list(range(LAST - FIRST))
    changed = True
    while changed:
        changed = False
        for u, v in zip((sources - FIRST).tolist(), (targets - FIRST).tolist(), strict=True):
            low = min(label[u], label[v])
            changed |= label[u] != low or label[v] != low
            label[u] = label[v] = low
    return label
