"""Ranks decide a direction from what all of them see: the slowest link's seconds, and any rank's edges on disk."""

from __future__ import annotations

import math

import numpy as np
from penstock.engine.execution.situations import certainly_pushed, seen_by_all
from penstock.engine.resources.direction import Situation, choose
from penstock.engine.resources.direction_cost import Progress, own_part
from penstock.engine.state.state import Frontier
from support.thread_ranks import on_ranks

FRONTIER = Frontier(500, 5000)
NOT_WEIGHED = (math.nan, math.nan)


def _seen(*each: tuple[Situation, tuple[float, float]]) -> list[Situation]:
    return on_ranks(len(each), lambda ranks: seen_by_all(*each[ranks.rank], ranks))


def _situation(**facts: object) -> Situation:
    return Situation(1000, 10_000, 10_000, early_exit=True, can_pull=True, **facts)  # type: ignore[arg-type]


def test_the_slowest_rank_counts() -> None:
    linked = _situation(linked=True)
    for found in _seen((linked, (3.0, 1.0)), (linked, (1.0, 2.0)), (linked, NOT_WEIGHED)):
        assert found.seconds == (3.0, 2.0)
        assert choose(found, FRONTIER, "push", growing=True) == "pull"


def test_ranks_on_cores_follow_those_behind_links() -> None:
    cores, linked = _situation(on_cores=True, kept=7), _situation(linked=True)
    for found in _seen((cores, NOT_WEIGHED), (linked, (1.0, 2.0))):
        assert (found.linked, found.on_cores, found.kept) == (True, False, None)
        assert choose(found, FRONTIER, "push", growing=True) == "push"


def test_nobody_weighs_a_small_frontier() -> None:
    linked = _situation(linked=True)
    assert {choose(found, Frontier(1, 2), "push", growing=True) for found in _seen(*[(linked, NOT_WEIGHED)] * 2)} == {
        "push"
    }


def test_a_small_frontier_is_pushed_without_a_question_once_nothing_is_on_disk() -> None:
    linked, small = _situation(linked=True), Frontier(1, 2)
    pushed = certainly_pushed(_situation(on_cores=True, kept=3), linked, small)
    assert pushed is not None
    assert choose(pushed, small, "pull", growing=False) == "push"
    assert certainly_pushed(linked, linked, FRONTIER) is None
    assert certainly_pushed(linked, _situation(linked=True, from_disk=True), small) is None
    assert certainly_pushed(linked, _situation(), small) is None


def test_on_cores_all_kept_rows_and_reads_are_added_up() -> None:
    found = _seen(
        (_situation(on_cores=True, kept=10, fetched=(1.0, 2.0)), NOT_WEIGHED),
        (_situation(on_cores=True, kept=5, fetched=(3.0, 4.0), from_disk=True), NOT_WEIGHED),
    )
    for each in found:
        assert (each.kept, each.fetched, each.from_disk, each.seconds) == (15, (4.0, 6.0), True, None)


def test_rows_of_others_are_empty_in_a_ranks_own_part() -> None:
    progress, frontier = own_part(Progress(1000, 8000, 400, 4000), FRONTIER, 0.25, 0.5)
    assert progress == Progress(1000, 4000, 850, 2000)
    assert (frontier.vertices, frontier.edges) == (125, 2500)
    assert np.isclose(frontier.edges / progress.unexplored, FRONTIER.edges / 4000)
