"""What ranks compute of their own vertices alone: the answers and frontiers of one process."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution import loop, owned_steps
from penstock.engine.execution.owned_steps import OwnedSteps, keeps_apart
from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels
from penstock.engine.program.program import Program
from penstock.engine.program.program_description import variant
from penstock.engine.programs.bfs import BFS, BFSLevels, InRounds
from penstock.engine.programs.closeness import LevelsFrom
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.sssp import SSSP
from penstock.engine.ranks import rank_exchange
from penstock.engine.session import Session
from penstock.storage.format.graph import Graph
from support.graphs import in_memory
from support.oracles import EdgeList
from support.thread_ranks import ThreadRanks, on_ranks, run_on

VERTICES, WIDE = 20_000, 1_000
COMPILED = {"kernels": "host"}


@cache
def graph() -> Graph:
    """Of five spans of vertices, whose search has wide frontiers, and long ways at its end."""
    random = np.random.default_rng(5)
    core, way = VERTICES - 40, np.arange(VERTICES - 41, VERTICES)
    source, target = random.integers(0, core, (2, 4 * core))
    return in_memory(EdgeList(VERTICES, np.append(source, way[:-1]), np.append(target, way[1:]), None, False))


class Noted:
    """What the ranks of a run have done, as OwnedSteps says."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.handed_out = self.parts = 0
        hand_out, select = OwnedSteps.hand_out, OwnedSteps.select

        def noting_hand_out(owned: OwnedSteps) -> None:
            self.handed_out += owned.apart
            hand_out(owned)

        def noting_select(owned: OwnedSteps, one: Any) -> Any:
            def noting(state: Any) -> Any:
                self.parts += state.last - state.first < VERTICES
                return one(state)

            return select(owned, noting)

        patch.setattr(owned_steps, "list_capacity", lambda program, vertices: WIDE)
        patch.setattr(OwnedSteps, "hand_out", noting_hand_out)
        patch.setattr(OwnedSteps, "select", noting_select)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Counts of this test's ranks."""
    return Noted(monkeypatch)


@pytest.mark.parametrize(("size", "options"), [(2, {}), (3, {"direction": "pull"}), (2, {"direction": "push"})])
@pytest.mark.parametrize("parents", [True, False])
def test_searches_are_those_of_one_process(noted: Noted, size: int, options: dict[str, str], parents: bool) -> None:
    (alone,) = run_on(lambda: BFS(3, parents=parents), graph(), 1, **COMPILED, **options)
    assert not noted.parts
    for result in run_on(lambda: BFS(3, parents=parents), graph(), size, **COMPILED, **options):
        for name, values in alone.fields.items():
            np.testing.assert_array_equal(result.fields[name], values)
        told = [(one.direction, one.vertices, one.edges) for one in result.records]
        assert told == [(one.direction, one.vertices, one.edges) for one in alone.records]
    assert noted.parts >= size
    assert noted.handed_out == (0 if options.get("direction") == "push" else size)


@pytest.mark.parametrize("program", [BFS(0), BFS(0, parents=False), Reachability(0)], ids=["bfs", "levels", "reached"])
def test_numbers_of_a_byte_give_the_same(program: Program) -> None:
    way = np.arange(VERTICES - 1)
    deep = in_memory(EdgeList(300, way[:299], way[1:300], None, False))
    (alone,) = run_on(lambda: program, deep, 1)
    for result in run_on(lambda: program.form(deep, "auto").lighter(deep), deep, 2):  # type: ignore[arg-type, return-value]
        for name, values in alone.fields.items():
            np.testing.assert_array_equal(result.fields[name], values)


def test_ranks_take_the_lightest_form_that_one_of_them_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def work(ranks: ThreadRanks) -> Any:
        with Session(graph(), ranks=ranks, threads=1, device="cpu") as session:
            session._most_of_all = lambda number: asked.append(number) or 1  # type: ignore[method-assign]
            return session.run(BFS(3, parents=False))

    (alone,) = run_on(lambda: BFS(3, parents=False), graph(), 1, **COMPILED)
    for result in on_ranks(2, work):
        assert isinstance(result.program, InRounds)
        np.testing.assert_array_equal(result.fields["level"], alone.fields["level"])
    assert asked == [0, 0]


def test_runs_with_checkpoints_hand_out_all_messages(noted: Noted, tmp_path: Any) -> None:
    (alone,) = run_on(lambda: BFS(3), graph(), 1, **COMPILED)

    def work(ranks: ThreadRanks) -> Any:
        kept = Checkpoints(tmp_path / "kept", 1) if ranks.rank == 0 else None
        with Session(graph(), ranks=ranks, kernels="host", threads=1) as session:
            return session.run(BFS(3), checkpoints=kept)

    for result in on_ranks(2, work):
        np.testing.assert_array_equal(result.fields["parent"], alone.fields["parent"])
    assert not noted.handed_out


def test_ranks_select_by_priority_all_alike_and_walk_as_one_process_does(noted: Noted) -> None:
    (alone,) = run_on(lambda: SSSP(3), graph(), 1, **COMPILED)
    assert max(one.edges for one in alone.records) > graph().edges / 4
    for result in run_on(lambda: SSSP(3), graph(), 2, **COMPILED):
        np.testing.assert_array_equal(result.fields["distance"], alone.fields["distance"])
        assert {one.direction for one in result.records} == {one.direction for one in alone.records} == {"push"}
    assert not noted.parts


@pytest.mark.parametrize("few", [0, 40])
@pytest.mark.parametrize(("size", "at_once"), [(2, 1 << 20), (3, 700), (5, 64)])
@pytest.mark.parametrize("parents", [True, False])
def test_pushes_to_what_others_have_reached_change_nothing(
    few: int, size: int, at_once: int, parents: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pushes and pulls take turns, so that pushes lead to vertices that were reached while values are apart."""

    def chosen(situation: Any, frontier: Any, direction: str, growing: bool) -> str:
        return "push" if frontier.vertices % 2 else "pull"

    monkeypatch.setattr(loop, "choose", chosen)
    monkeypatch.setattr(rank_exchange, "FEW", few)
    monkeypatch.setattr(HostExchangeKernels, "exchanged_at_once", at_once)
    random = np.random.default_rng(size)
    for vertices in (70, 3_000, 9_001):
        edges = random.integers(0, vertices, (2, 3 * vertices))
        some = in_memory(EdgeList(vertices, *edges, None, True))
        (alone,) = run_on(lambda: BFS(3, parents=parents), some, 1)
        for result in run_on(lambda: BFS(3, parents=parents), some, size, **COMPILED):
            for name, values in alone.fields.items():
                np.testing.assert_array_equal(result.fields[name], values)
            told = [(one.direction, one.vertices, one.edges) for one in result.records]
            assert told == [(one.direction, one.vertices, one.edges) for one in alone.records]


class Halting(BFSLevels):
    """A search of which a vertex may be active or not when it is reached, which others cannot know."""

    def active(level):  # type: ignore[no-untyped-def]
        """Who goes on."""
        return level < 3


class Sending(BFSLevels):
    """A search that reads what its sources have."""

    def edge(level):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return level + 1


@pytest.mark.parametrize(
    ("program", "holds"),
    [
        (BFS(0), True),
        (BFSLevels(0), True),
        (BFS(0, target=5), False),
        (Sending(0), False),
        (Halting(0), False),
        (variant(LevelsFrom, along="both")(0), True),
        (Reachability(0), False),
        (SSSP(0), False),
        (PageRank(), False),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Program) else None,
)
def test_searches_that_read_no_values_of_sources_stay_apart(program: Program, holds: bool) -> None:
    assert keeps_apart(program) == holds
