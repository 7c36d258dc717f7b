"""Timelines of ranks on one clock: what a few collectives tell of clocks that are apart."""

from __future__ import annotations

import numpy as np
from penstock.engine.ranks.timelines import clocks_ahead, gather_timelines
from penstock.storage.base.timeline import Timeline, Work
from support.thread_ranks import ThreadRanks, on_ranks


def test_a_clock_that_may_be_the_same_is_taken_for_it() -> None:
    moments = np.array([[[0.0, 1.0], [2.0, 3.0]], [[0.5, 1.1], [2.2, 3.1]]])
    assert clocks_ahead(moments).tolist() == [0.0, 0.0]


def test_the_tightest_collectives_tell_how_far_clocks_are_apart() -> None:
    begins, durations, late = np.array([0.0, 5.0, 9.0]), np.array([2.0, 0.02, 3.0]), np.array([1.0, 0.0, 0.5])
    first = np.stack([begins, begins + durations], axis=1)
    other = np.stack([begins + late, begins + durations], axis=1) + 100.0
    ahead = clocks_ahead(np.stack([first, other]))
    assert ahead[0] == 0.0
    assert abs(ahead[1] - 100.0) <= 0.02


def test_all_ranks_have_all_timelines() -> None:
    def work(ranks: ThreadRanks):
        timeline = Timeline(4)
        for number in range(ranks.rank + 4):
            timeline.add(timeline.track("kernel", "cpu"), f"push {ranks.rank}", float(number), 0.5, Work(items=number))
        return gather_timelines(ranks, timeline)

    for found in on_ranks(2, work):
        assert [(one.rank, one.ahead, one.timeline.dropped) for one in found] == [(0, 0.0, 0), (1, 0.0, 1)]
        assert [span.began for span in found[1].timeline.spans()] == [1.0, 2.0, 3.0, 4.0]
        assert {span.name for span in found[1].timeline.spans()} == {"push 1"}
