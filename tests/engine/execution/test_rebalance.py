"""Bounds between ranks move while a run goes on, and every program still gives its answer."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Program, Result
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution import rebalance
from penstock.engine.execution.shared_loop import SharedLoop
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.resources import memory_plan
from penstock.engine.resources.ownership import Ownership
from penstock.engine.session import Session
from penstock.transfer.planning.host_budget import HostBudget
from support.covering import covering
from support.forced_moves import moving
from support.graphs import in_memory, on_disk
from support.oracles import EdgeList
from support.program_cases import CASES, PROGRAMS, check, program_of
from support.thread_ranks import ThreadRanks, on_ranks, run_on, small, small_graph

RANDOM = np.random.default_rng(7)
LARGER = EdgeList(
    150,
    np.repeat(np.arange(150), 4),
    RANDOM.integers(0, 150, 600),
    RANDOM.integers(1, 9, 600).astype(np.uint8),
    directed=True,
)
"""Rows of about as many edges each."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return on_disk(LARGER, tmp_path_factory.mktemp("graph") / "tangle.h5", chunk_edges=64)


def _moves(result: Result) -> list[tuple[int, ...]]:
    return [record.moved for record in result.records if record.moved]


def test_a_run_that_is_over_keeps_no_state() -> None:
    """Not even until Python looks for circles of references."""
    gc.collect()
    gc.disable()
    try:
        run_on(PageRank, small_graph(True), 2)
        assert not [one for one in gc.get_objects() if isinstance(one, SharedLoop)]
    finally:
        gc.enable()


@covering("name, directed", CASES, (True, False), strength=1, rare=[*CASES][1::2])  # test_ranks_programs.py has all
def test_every_program_while_bounds_move(name: str, directed: bool) -> None:
    make, right = CASES[name]
    with moving():
        for result in run_on(make, small_graph(directed), 3):
            right(small(directed), result.fields)


@covering(
    "options, name",
    [{"direction": "push"}, {"direction": "pull"}, {"mode": "sync"}],
    sorted(set(PROGRAMS) - {"wcc"}),
    strength=1,
)
def test_every_direction_while_bounds_move(name: str, options: dict[str, str]) -> None:
    edges = small(True)
    with moving():
        results = run_on(lambda: program_of(name, edges), small_graph(True), 2, **options)
    assert _moves(results[0])
    for result in results:
        check(name, edges, result.fields)


@pytest.mark.parametrize("room", ["for all", "for some"])
@pytest.mark.parametrize("name", ["sweeps", "bfs", "sssp"])
def test_edges_from_disk_follow_the_bounds(stored: Graph, name: str, room: str, monkeypatch) -> None:
    monkeypatch.setattr("penstock.engine.resources.ownership.MARGIN", 64)
    divide = memory_plan.divide_host_memory

    def little(*what: Any) -> HostBudget:
        return replace(divide(*what), partition_edges=64, slabs=2, slots=5, whole=False)

    if room == "for some":
        monkeypatch.setattr(memory_plan, "divide_host_memory", little)
    with moving():
        results = run_on(lambda: program_of(name, LARGER), stored, 2)
    assert len(_moves(results[0])) >= 3
    for result in results:
        check(name, LARGER, result.fields)


def test_pulled_sums_are_the_same_bits_wherever_the_bounds_are() -> None:
    still = run_on(lambda: program_of("pagerank", small(True)), small_graph(True), 1)[0]
    with moving():
        moved = run_on(lambda: program_of("pagerank", small(True)), small_graph(True), 3)
    assert {result.fields["rank"].tobytes() for result in moved} == {still.fields["rank"].tobytes()}


def test_vectors_while_bounds_move() -> None:
    def make() -> Program:
        return CollaborativeFiltering(rank=2, max_iter=3, rate=0.1)

    still = run_on(make, small_graph(False), 1)[0]
    with moving():
        moved = run_on(make, small_graph(False), 2)
    assert len(_moves(moved[0])) == 3
    np.testing.assert_array_equal(still.fields["vector"], moved[1].fields["vector"])


def test_a_run_goes_on_from_a_checkpoint_with_other_bounds(tmp_path: Path) -> None:
    edges = small(True)

    def work(ranks: ThreadRanks, resume: bool) -> Result | None:
        folder = Checkpoints(tmp_path / "state", resume=resume, follows=ranks.rank > 0)
        with Session(small_graph(True), ranks=ranks, kernels="reference", threads=1) as session:
            steps = session.steps(program_of("pagerank", edges), folder)
            if resume:
                while True:
                    try:
                        next(steps)
                    except StopIteration as end:
                        return end.value
            for _ in range(4):
                folder.ask()
                next(steps)
            ranks.wait()
            steps.close()
            return None

    with moving():
        on_ranks(3, lambda ranks: work(ranks, False))
        results = on_ranks(2, lambda ranks: work(ranks, True))
    for result in results:
        assert result is not None
        check("pagerank", edges, result.fields)


class _Slow:
    """Clocks of ranks that take so long for an edge that they own."""

    def __init__(self, seconds: list[float]) -> None:
        self.seconds = seconds

    def walked(self, loop: SharedLoop) -> float:
        rows = loop.ownership.rows(loop.streams["pull"].index)
        return self.seconds[loop.ranks.rank] * (rows.e1 - rows.e0)


def _timed(monkeypatch: pytest.MonkeyPatch, clock: _Slow) -> None:
    after_walk = rebalance.Rebalance.after_walk

    def timed(self, loop, direction, frontier, record, seconds) -> None:
        after_walk(self, loop, direction, frontier, record, clock.walked(loop))

    monkeypatch.setattr(rebalance.Rebalance, "after_walk", timed)


@pytest.mark.parametrize(("shares", "speeds"), [("1,3", [1.0, 1.0]), ("1,1", [1.0, 3.0]), ("3,1", [1.0, 2.0])])
def test_a_bad_start_is_balanced_within_five_iterations(stored: Graph, monkeypatch, shares: str, speeds) -> None:
    monkeypatch.setattr("penstock.engine.resources.ownership.MARGIN", 64)
    _timed(monkeypatch, _Slow([1.0 / speed for speed in speeds]))
    results = run_on(lambda: PageRank(tol=0, max_iter=7), stored, 2, shares=shares)
    assert 1 <= len(_moves(results[0])) <= 3
    assert max(record.number for record in results[0].records if record.moved) < 5
    last = results[0].records[-1].rank_seconds
    assert max(last) <= 1.1 * stored.edges / sum(speeds)
    assert _moves(results[0]) == _moves(results[1])
    summary = next(record for record in results[0].records if record.moved).summary()
    assert summary["moved"] == list(_moves(results[0])[0])
    still = run_on(lambda: PageRank(tol=0, max_iter=7), stored, 2, shares=shares, repartition=False)
    np.testing.assert_array_equal(results[0].fields["rank"], still[0].fields["rank"])


def test_bounds_stay_where_that_was_asked_or_nothing_is_gained(stored: Graph, monkeypatch) -> None:
    _timed(monkeypatch, _Slow([1.0, 1.0]))
    for options in ({"shares": "1,3", "repartition": False}, {}):
        assert not _moves(run_on(lambda: PageRank(tol=0, max_iter=5), stored, 2, **options)[0])


def test_later_runs_of_a_session_begin_with_the_bounds_of_the_last_one(stored: Graph) -> None:
    def work(ranks: ThreadRanks) -> tuple[int, ...]:
        last: tuple[int, ...] = ()
        with Session(stored, ranks=ranks, kernels="reference", threads=1) as session:
            for name in ("bfs", "sssp", "sweeps"):
                result = session.run(program_of(name, LARGER))
                check(name, LARGER, result.fields)
                last = _moves(result)[-1]
                assert session._equipment is not None
                assert session._equipment.moved is not None
                assert tuple(session._equipment.moved.bounds.tolist()) == last
                if ranks.rank == 0:  # one rank may have to make its resources anew where others need not
                    session._drop(session._equipment)
        return last

    with moving():
        first, second = on_ranks(2, work)
    assert first == second


def test_a_rank_that_takes_much_is_given_no_more_than_its_memory_holds(stored: Graph) -> None:
    def work(ranks: ThreadRanks) -> tuple[float, int]:
        with Session(stored, ranks=ranks, kernels="reference", threads=1, host_memory=64 << 20) as session:
            session.run(PageRank(tol=0, max_iter=1))
            equipment = session._equipment
            assert equipment is not None
            before, spare = equipment.most_edges, equipment.spare
            bounds = np.array([0, stored.vertices, stored.vertices])
            equipment.own(Ownership(bounds, ranks.rank), [])
            assert equipment.most_edges == before
            return before, spare - equipment.spare

    (most, taken), (_, other) = on_ranks(2, work)
    assert most > stored.edges
    assert taken >= 0 >= other


def test_small_frontiers_are_not_compared(monkeypatch) -> None:
    monkeypatch.setattr(rebalance, "MUCH", 1)
    for result in run_on(lambda: program_of("bfs", LARGER), in_memory(LARGER), 2):
        assert not any(record.rank_seconds for record in result.records)
