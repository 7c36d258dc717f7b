"""Many iterations in one call on a core: the records and answers of one iteration at a time, wherever it must end."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Session
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution.loop import Loop
from penstock.engine.kernels.host import fused, launch
from penstock.engine.kernels.host.device_functions import CACHED
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program.bindings import bind
from penstock.engine.program.program import Program
from penstock.engine.programs.betweenness import AddDependencies, Betweenness, CountPaths
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.coloring import Coloring
from penstock.engine.programs.kcore import Coreness, KCore
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.scc import Reach
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.state.fused_iterations import FusedCall
from penstock.engine.state.records import CheckpointRecord
from penstock.engine.state.result import Result
from penstock.engine.state.state import State, state_bytes
from penstock.storage.base.timeline import Timeline
from penstock.transfer.values.task import TaskRecord
from support.covering import covering
from support.graphs import in_memory, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import Patient, Wandering, check, program_of

UINT32 = np.dtype(np.uint32)


def grid(side: int, *, directed: bool = False) -> EdgeList:
    at = np.arange(side * side).reshape(side, side)
    ends = [(at[:, :-1].ravel(), at[:, 1:].ravel()), (at[:-1].ravel(), at[1:].ravel())]
    sources, targets = (np.concatenate(those) for those in zip(*ends, strict=True))
    return weighed(EdgeList(side * side, sources, targets, None, directed), "uint8")


GRAPHS = {
    "grid": grid(9),
    "downhill": grid(9, directed=True),
    "path": weighed(shape("path"), "uint8"),
    "skewed": weighed(EdgeList(80, *skewed(80, 300, 8), None, False), "uint8"),
}


@contextmanager
def stretches(**limits: int) -> Iterator[list[int]]:
    """With the first frontier already, and within these limits; a list that takes the iterations of every call."""
    found: list[int] = []
    stretch = HostKernels.fused_iterations

    def counted(*arguments: Any) -> Any:
        done = stretch(*arguments)
        found.append(len(done[0]))
        return done

    with mock.patch.multiple(fused, PATIENCE=0, **limits), mock.patch.object(HostKernels, "fused_iterations", counted):
        yield found


def told(result: Result) -> list[tuple[int, str, int, int]]:
    return [(record.number, record.direction, record.vertices, record.edges) for record in result.records]


def run(edges: EdgeList, make: Callable[[], Program], **options: Any) -> Result:
    with Session(in_memory(edges), **options) as session:
        return session.run(make())


def same(edges: EdgeList, make: Callable[[], Program], limits: dict[str, int], **options: Any) -> list[int]:
    """Run it with stretches and without: the same bits; returns the iterations of every stretch.

    The same records too, unless updates are seen at once: then an iteration's depend on the order of the vertices.
    """
    ours = run(edges, make, **options)
    with stretches(**limits) as lengths:
        result = run(edges, make, **options)
    if options.get("mode") == "sync" or not make().self_combining:
        assert told(result) == told(ours)
    assert result.converged == ours.converged
    for name, values in ours.fields.items():
        assert np.array_equal(result.fields[name], values), name
    return lengths


def test_more_vertices_than_a_cache_holds() -> None:
    """Levels and distances of a grid of unit weights are known."""
    side = 520
    assert side * side > CACHED
    edges = grid(side)
    row, column = np.divmod(np.arange(side * side), side)
    above = row > 0
    with stretches() as lengths, Session(in_memory(edges)) as session:
        found = session.run(BFS(0)).fields
        distance = session.run(SSSP(0, weight=False)).fields["distance"]
    assert max(lengths) > side
    assert np.array_equal(found["level"], row + column)
    assert np.array_equal(found["parent"], np.maximum(0, np.arange(side * side) - np.where(above, side, 1)))
    assert np.array_equal(distance, row + column)


@pytest.mark.parametrize("count", [4000, 9000])
def test_vertices_are_listed_as_often_as_they_change(count: int) -> None:
    """Parallel edges, ever lighter, into few vertices: more changes than vertices in one list, or than it has room."""
    heads, tails = np.zeros(count, np.int64), np.ones(count, np.int64)
    edges = EdgeList(
        3, np.append(heads, 1), np.append(tails, 2), np.append(np.arange(count, 0, -1), 1).astype(np.uint32), True
    )
    with stretches():
        result = run(edges, lambda: SSSP(0, delta=1e6), direction="push")
    assert result.fields["distance"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 2, 4])
@covering("kind, directed", ["uint8", "float64"], [False, True])
def test_threads_share_a_bucket(kind: str, directed: bool, threads: int) -> None:
    """All buckets but the first: of spans that threads take from each other."""
    edges = weighed(grid(150, directed=directed), kind)
    ours = run(edges, lambda: SSSP(0))
    with stretches(SHARED=1, LEAST_THREADS=1) as lengths:
        result = run(edges, lambda: SSSP(0), threads=threads)
    assert max(lengths) > 2
    assert np.array_equal(result.fields["distance"], ours.fields["distance"])


@pytest.mark.parametrize("threads", [1, 2])
def test_more_become_due_than_a_piece_has_room_for(threads: int) -> None:
    """Those wait in the pile, and take part in the same bucket."""
    leaves, weights = np.arange(2, 20002), np.arange(20000, dtype=np.uint8) % 40
    heads, tails = np.append(0, np.ones(len(leaves), np.int64)), np.append(1, leaves)
    edges = EdgeList(20002, heads, tails, np.append(np.uint8(100), weights), True)
    with stretches(SHARED=1, LEAST_THREADS=1) as lengths:
        result = run(edges, lambda: SSSP(0, delta=50.0), threads=threads, direction="push")
    assert lengths == [result.iterations]
    assert sum(record.vertices for record in result.records) == 20002
    assert np.array_equal(result.fields["distance"], np.append([0, 100], 100 + weights.astype(int)))


@covering("mode, name, kind", ["auto", "sync"], ["bfs", "sssp"], GRAPHS)
def test_one_call_does_it_all(kind: str, name: str, mode: str) -> None:
    """Of SSSP, changes of bucket too."""
    edges = GRAPHS[kind]
    with stretches() as lengths:
        result = run(edges, lambda: program_of(name, edges), mode=mode, direction="push")
    check(name, edges, result.fields)
    assert lengths == [result.iterations]
    assert all(len(record.tasks) == 1 and record.tasks[0].edges == record.edges for record in result.records)


@st.composite
def trials(draw: Any) -> tuple[EdgeList, Callable[[], Program], dict[str, int], dict[str, Any]]:
    """A graph, a program, where its stretches must end, and how it runs."""
    vertices = draw(st.integers(1, 150))
    ends = st.lists(st.integers(0, vertices - 1), max_size=2 * vertices)
    sources, targets = draw(ends), draw(ends)
    count = min(len(sources), len(targets))
    pairs = np.array([sources[:count], targets[:count]], dtype=np.int64)
    path = np.stack([np.arange(vertices - 1), np.arange(1, vertices)])
    both = np.concatenate([pairs, path[:, : draw(st.integers(0, vertices))]], axis=1)
    edges = weighed(EdgeList(vertices, *both, None, draw(st.booleans())), "uint8")
    source, most = draw(st.integers(0, vertices - 1)), draw(st.sampled_from([2, 5, 2**62]))
    makers: list[Callable[[], Program]] = [lambda: BFS(source)]
    makers += [lambda delta=delta: SSSP(source, delta) for delta in (None, 1, 7.5, 400.0)]
    maker = draw(st.sampled_from(makers))
    options = {"mode": draw(st.sampled_from(["auto", "sync"])), "direction": draw(st.sampled_from(["auto", "push"]))}
    if options["mode"] != "sync" and maker().self_combining:
        most = 2**62  # what is there before the end depends on the order in which updates are seen

    def make() -> Program:
        program = maker()
        program.max_iter = most
        return program

    limits = {
        "MOST_ITERATIONS": draw(st.sampled_from([1, 4, 1024])),
        "MOST_EDGES": draw(st.sampled_from([1, 3, 20, 1 << 14])),
    }
    return edges, make, limits, options


@settings(max_examples=25, deadline=None)
@given(trials())
def test_wherever_it_ends_nobody_can_tell(trial: Any) -> None:
    edges, make, limits, options = trial
    lengths = same(edges, make, limits, **options)
    assert all(0 < length <= limits["MOST_ITERATIONS"] for length in lengths)


@pytest.mark.parametrize("limits", [{}, {"MOST_ITERATIONS": 3}, {"MOST_EDGES": 20}], ids=str)
def test_who_waits_for_a_turn_and_reads_the_limit(limits: dict[str, int]) -> None:
    """Betweenness: everybody waits from the start, sends, and asks what is due. Coreness: `is_active` besides."""
    for kind, make in (("grid", lambda: Betweenness([0, 5])), ("skewed", Coreness)):
        assert same(GRAPHS[kind], make, limits, direction="push")


@pytest.mark.parametrize("limits", [{}, {"MOST_ITERATIONS": 3}, {"MOST_EDGES": 20}, {"MOST_EDGES": 3}], ids=str)
@pytest.mark.parametrize(
    "make",
    [Coreness, pytest.param(lambda: KCore(3), marks=pytest.mark.full), Coloring],
    ids=["coreness", "kcore", "coloring"],
)
def test_both_ways_on_a_directed_graph(make: Callable[[], Program], limits: dict[str, int]) -> None:
    """Along the rows of two adjacencies, whose tasks are both recorded."""
    edges = GRAPHS["downhill"]
    with stretches(**limits) as lengths:
        result = run(edges, make, direction="push")
    assert same(edges, make, limits, direction="push") == lengths
    assert lengths or limits
    assert all(len(record.tasks) == 2 for record in result.records)


def test_a_record_is_filled_in_when_it_is_looked_at() -> None:
    """And keeps what was set before; it is like any other then."""
    task = TaskRecord("resident", "push", (0,), hits=2)
    call = FusedCall(7, np.array([[3, 5], [2, 4]]), [(task, 4)], selecting=1.0, began=1.5, seconds=0.25)
    first, second = call.records()
    second.checkpoint = CheckpointRecord(Path("c"), 9, 10, 0.1)
    assert (first.number, first.began, first.seconds, first.checkpoint) == (7, 1.0, 0.75, None)
    assert (second.number, second.vertices, second.edges, second.began) == (8, 2, 4, 1.75)
    assert second.checkpoint is not None
    assert second.checkpoint.bytes == 10
    assert [(one.edges, one.kernel_seconds, one.hits) for one in second.tasks] == [(4, 0.25, 2)]
    assert copy.copy(first).summary() == first.summary()
    with pytest.raises(AttributeError, match="nothing"):
        first.nothing  # noqa: B018


def test_it_ends_before_a_pull() -> None:
    """Where few vertices are left, a frontier of many edges pulls."""
    edges = EdgeList(200, *skewed(200, 3000, 8), None, False)
    with stretches() as lengths:
        result = run(edges, lambda: program_of("bfs", edges))
    check("bfs", edges, result.fields)
    pulls = sum(record.direction == "pull" for record in result.records)
    assert 0 < pulls < result.iterations
    assert 0 < sum(lengths) <= result.iterations - pulls


def test_large_buckets_are_left_to_the_loop() -> None:
    """Buckets begin too large for a call, so that one ends with its bucket, and the loop moves the limit."""
    given, stretch = [], HostKernels.fused_iterations

    def noted(*arguments: Any) -> Any:
        given.append(arguments[6].bucket)
        return stretch(*arguments)

    with mock.patch.object(HostKernels, "fused_iterations", noted):
        lengths = same(GRAPHS["grid"], lambda: SSSP(0, delta=40), {"MOST_EDGES": 12}, mode="sync", direction="push")
    assert len(lengths) > 1
    assert {0.0, 40} == set(given)


def test_a_program_must_have_had_small_frontiers_before() -> None:
    """Of this session; then the kernel pays, and the next run begins with it, that of another session too."""
    edges = shape("path")
    with stretches() as lengths, mock.patch.object(fused, "PATIENCE", 100), mock.patch.dict(launch._MADE, clear=True):
        for _ in range(2):
            with Session(in_memory(edges)) as session:
                for _ in range(2):
                    assert session.run(BFS(0)).iterations == 400
    assert lengths == [300, 400, 400, 400]


def test_only_edges_in_memory() -> None:
    edges, linked = shape("path"), {"device": "emulated", "device_edge_memory": 400, "partition_bytes": 100}
    with stretches() as lengths:
        run(edges, lambda: program_of("bfs", edges), direction="push", **linked)
    assert not lengths


@pytest.mark.parametrize(
    ("program", "fitting"),
    [
        (BFS(0), True),
        (SSSP(0), True),
        (CountPaths(0), True),
        (AddDependencies(1), True),
        (Coreness(), True),
        (Reach(0), True),
        (PageRank(), False),
        (WCC(), False),
        (Patient(0), False),
        (Wandering(0), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_fits(program: Program, fitting: bool) -> None:
    author = bind(program, UINT32, lambda function: function, plain=False)
    assert fused.fits(program, author) is fitting


def test_a_checkpoint_keeps_whole_stretches(tmp_path: Path) -> None:
    """While iterations of a call are told one by one, the state is that of the last one already."""
    graph, made = in_memory(shape("path", directed=False)), []
    with stretches(MOST_ITERATIONS=7) as lengths, Session(graph, direction="push") as session:
        for number, record in enumerate(session.steps(BFS(0), Checkpoints(tmp_path, 1)), 1):
            if record.checkpoint is not None:
                made.append(number)
            if number == 30:
                break
        assert made == [7, 14, 21, 28]
        assert lengths == [7] * 5
    with Session(graph, direction="push") as session:
        result = session.run(BFS(0), Checkpoints(tmp_path, resume=True))
    assert (result.before, result.iterations) == (28, 400)
    assert result.fields["level"].tolist() == list(range(400))


def test_a_watched_run_shows_the_call_and_every_iteration() -> None:
    timeline = Timeline()
    with stretches(), Session(in_memory(shape("path")), timeline=timeline, direction="push") as session:
        result = session.run(BFS(0))
    spans = list(timeline.spans())
    assert [span.name for span in spans if span.name.startswith("fused")] == ["fused_iterations resident"]
    shown = [(span.seconds, span.work.items) for span in spans if span.track == "iterations"]
    assert shown == [(record.seconds, record.edges) for record in result.records]
    began = [record.began for record in result.records]
    assert began == sorted(began)


def test_the_bounds_of_priorities_are_counted_as_memory() -> None:
    """Of programs that have any: as much as one more bitmap."""
    for program, kept in ((BFS(0), False), (SSSP(0), True)):
        author = bind(program, UINT32, lambda function: function, plain=False)
        state = State(program, author, 0, 10000, UINT32)
        with mock.patch("penstock.engine.state.state.author_function", return_value=None):
            bare = state_bytes(program, 10000, UINT32, apart=False)
        more = state_bytes(program, 10000, UINT32, apart=False) - bare
        assert more == kept * sum(lows.nbytes for lows in state.lows)


def test_waiting_for_the_frontier_is_the_first_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU that is where the kernels of the iteration before are waited for."""
    select, selected = Loop._select, []

    def slowly(loop: Loop) -> Any:
        selected.append(time.sleep(0.01))
        return select(loop)

    monkeypatch.setattr(Loop, "_select", slowly)
    with stretches(), Session(in_memory(GRAPHS["grid"]), device="cpu", threads=1) as session:
        result = session.run(BFS(0))
    assert sum(record.seconds for record in result.records) >= 0.01 * (len(selected) - 1)  # the last one found nobody
    ends = [record.began + record.seconds for record in result.records if record.began]
    assert all(record.began >= end - 1e-9 for record, end in zip(result.records[1:], ends, strict=False))
