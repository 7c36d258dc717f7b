"""The direction rule as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from penstock.engine.direction import Situation, certain_push, choose
from penstock.engine.frontier import Frontier

BFS = Situation(vertices=1800, edges=15000, unexplored_edges=15000, early_exit=True, can_pull=True)
RANK = Situation(vertices=1800, edges=1000, unexplored_edges=1000, early_exit=False, can_pull=True)


@pytest.mark.parametrize(
    ("situation", "frontier", "previous", "growing", "expected"),
    [
        (BFS, Frontier(10, 1000), "push", True, "push"),
        (BFS, Frontier(10, 1001), "push", True, "pull"),
        (BFS, Frontier(10, 1001), "push", False, "push"),
        (BFS, Frontier(100, 10), "pull", False, "push"),
        (BFS, Frontier(101, 10), "pull", False, "pull"),
        (BFS, Frontier(10, 10), "pull", True, "pull"),
        (RANK, Frontier(10, 500), "push", True, "push"),
        (RANK, Frontier(10, 501), "push", False, "pull"),
        (RANK, Frontier(0, 0, everything=True), "push", False, "pull"),
    ],
)
def test_both_sides_of_each_threshold(situation, frontier, previous, growing, expected) -> None:
    assert choose(situation, frontier, previous, growing) == expected


@pytest.mark.parametrize("previous", ["push", "pull"])
@pytest.mark.parametrize("growing", [True, False])
@pytest.mark.parametrize(
    ("unvisited", "unexplored", "pulled_above"),
    [
        (100, 15000, 844),  # 400 for the rows; 100 * 15000 / 844 edges until one is active, a quarter of them: 444
        (1500, 10, 6002),  # rows that nobody reaches: hardly an edge is left, but each is visited
        (0, 0, 0),
    ],
)
def test_on_cores_a_pull_must_read_less(unvisited, unexplored, pulled_above, growing, previous) -> None:
    situation = replace(BFS, on_cores=True, unvisited=unvisited, unexplored_edges=unexplored)
    least = next(n for n in range(15001) if choose(situation, Frontier(1, n), previous, growing) == "pull")
    assert least == pulled_above + 1


def test_without_in_edges_there_is_no_pull_and_force_wins() -> None:
    everyone = Frontier(1800, 1000, everything=True)
    assert choose(Situation(1, 1, 1, True, can_pull=False), everyone, "pull", True) == "push"
    assert choose(Situation(1, 1, 1, True, can_pull=True, forced="push"), everyone, "pull", True) == "push"


@pytest.mark.parametrize("edges", [0, 7, 500, 501, 950, 1000, 1001, 15000])
@pytest.mark.parametrize("growing", [True, False])
@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("forced", [None, "push"])
@pytest.mark.parametrize("situation", [BFS, RANK, replace(BFS, can_pull=False), replace(RANK, unexplored_edges=9)])
def test_what_is_certainly_pushed(situation, forced, linked, growing, edges) -> None:
    """Both ways: what the bounds allow is pushed, and what they do not would be pulled."""
    situation = replace(situation, forced=forced, linked=linked)
    most, alpha = certain_push(situation)
    allowed = edges <= most and not (alpha and growing and edges > situation.unexplored_edges // alpha)
    if edges <= situation.edges:
        assert allowed == (choose(situation, Frontier(10, edges), "push", growing) == "push")
