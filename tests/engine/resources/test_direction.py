"""The direction rule as a table."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from penstock.engine.programs import bfs, reachability
from penstock.engine.resources.direction import Situation, certain_push, choose, is_certain, traversals, weighs
from penstock.engine.resources.direction_cost import DegreeSample, DirectionSide, LinkCosts
from penstock.engine.session import Session
from penstock.engine.state.state import Frontier
from penstock.transfer.values.rates import Rates
from support.graphs import in_memory, skewed
from support.oracles import EdgeList

BFS = Situation(vertices=1800, edges=15000, unexplored_edges=15000, early_exit=True, can_pull=True)
RANK = Situation(vertices=1800, edges=1000, unexplored_edges=1000, early_exit=False, can_pull=True)

FEW = replace(RANK, on_cores=True)
"""One core walks all edges."""
CHEAP = replace(FEW, edges=100_000, unexplored_edges=100_000, selective=True)
"""Edges are in the memory of cores, and pushes write only what changes a vertex."""


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
        (FEW, Frontier(1800, 1000), "push", True, "push"),
        (FEW, Frontier(0, 0, everything=True), "push", False, "pull"),
        (CHEAP, Frontier(10, 90_000), "pull", True, "push"),
        (CHEAP, Frontier(10, 90_001), "push", False, "pull"),
        (CHEAP, Frontier(0, 0, everything=True), "push", False, "pull"),
        (replace(CHEAP, from_disk=True), Frontier(10, 50_001), "push", False, "pull"),
        (replace(CHEAP, on_cores=False), Frontier(10, 50_001), "push", False, "pull"),
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


def test_on_cores_reading_from_disk_counts_on_either_side() -> None:
    """Whatever a push must read pulls earlier, whatever a pull must read later, edge by edge."""

    def least(push: float, pull: float) -> int:
        situation = replace(BFS, on_cores=True, unvisited=100, from_disk=True, fetched=(push, pull))
        return next(n for n in range(15001) if choose(situation, Frontier(1, n), "push", True) == "pull")

    assert least(200.0, 0.0) < least(0.0, 0.0) < least(0.0, 200.0)
    assert least(1e6, 0.0) == 0
    assert least(300.0, 300.0) == least(0.0, 0.0)


@pytest.mark.parametrize(
    ("from_disk", "fetched", "pulled_above"), [(False, 0, 1 << 14), (True, 0, 500), (True, 400, 100)]
)
def test_kept_rows_are_pulled_where_a_push_costs_more_than_they_have(from_disk, fetched, pulled_above) -> None:
    """In memory small frontiers are left to fused iterations."""
    situation = replace(BFS, on_cores=True, from_disk=from_disk, fetched=(fetched, 1e9), kept=2000, unvisited=1800)
    assert choose(situation, Frontier(1, pulled_above), "push", True) == "push"
    assert choose(situation, Frontier(1, pulled_above + 1), "push", True) == "pull"


def test_a_small_frontier_is_weighed_where_edges_may_come_from_disk() -> None:
    """Its few rows may lie in every chunk."""
    situation = replace(BFS, linked=True)
    assert not weighs(situation, Frontier(1, 1))
    assert weighs(replace(situation, from_disk=True), Frontier(1, 1))
    assert not weighs(replace(situation, from_disk=True, forced="push"), Frontier(1, 1))


@pytest.mark.parametrize("left", [(0, 0), (3, 9), (100, 15000), (1500, 10), (1800, 15000)])
def test_on_cores_few_edges_for_each_unvisited_row_are_certainly_pushed(left) -> None:
    """However many were explored; how many edges a pull would read besides is not asked."""
    situation = replace(BFS, on_cores=True, unvisited=left[0], unexplored_edges=left[1])
    most, alpha, per_row = certain_push(situation)
    assert (alpha, per_row > 0) == (0, True)
    for edges in range(min(most, int(per_row * left[0])) + 1):
        assert choose(situation, Frontier(10, edges), "push", True) == "push"
    assert certain_push(replace(situation, forced="push")) == (situation.edges, 0, 0.0)


def test_without_in_edges_there_is_no_pull_and_force_wins() -> None:
    everyone = Frontier(1800, 1000, everything=True)
    assert choose(Situation(1, 1, 1, True, can_pull=False), everyone, "pull", True) == "push"
    assert choose(Situation(1, 1, 1, True, can_pull=True, forced="push"), everyone, "pull", True) == "push"


TENS = DegreeSample(np.array([10.0]), np.array([1500.0]), 300.0)
LINK = LinkCosts(Rates.emulated(1, 1e6), 4, TENS, DirectionSide(100), DirectionSide(100), routes=("zero-copy",))
OVER = replace(BFS, linked=True, unvisited=1800, link=LINK)


@pytest.mark.parametrize("previous", ["push", "pull"])
@pytest.mark.parametrize("growing", [True, False])
@pytest.mark.parametrize(
    ("situation", "frontier", "expected"),
    [
        (OVER, Frontier(200, 4000), "push"),  # 319 lines; 1500 rows of which 3.7 edges each are read: 1 + 2.7 / 8
        (OVER, Frontier(1000, 14000), "push"),  # 1406 lines; 1500 rows
        (replace(OVER, unvisited=1800 - 700, unexplored_edges=13000), Frontier(500, 12000), "pull"),  # 859; 359
        (replace(OVER, link=replace(LINK, head=8)), Frontier(200, 4000), "pull"),  # 8 idle edges: 8 rows of 100
        (replace(OVER, link=replace(LINK, pull=DirectionSide(100, here=0.95))), Frontier(200, 4000), "pull"),
        (replace(OVER, link=None), Frontier(28, 28), "push"),  # not worth weighing: nobody looks at the link
        (replace(OVER, unvisited=29, unexplored_edges=29), Frontier(29, 29), "pull"),  # 29; none is left
    ],
)
def test_over_a_link_a_pull_must_take_less(situation, frontier, expected, growing, previous) -> None:
    assert choose(situation, frontier, previous, growing) == expected


@pytest.mark.parametrize("program", [bfs.BFS, reachability.Reachability])
@pytest.mark.parametrize("directed", [True, False])
def test_every_iteration_takes_the_direction_that_moves_less(program, directed) -> None:
    """Within a tenth of the bytes, for what a search reads is foretold, and lines are only counted afterwards."""
    edges = EdgeList(6000, *skewed(6000, 50000, 5), None, directed)
    options = {"device": "emulated", "route": "zero-copy"}
    options["tuning"] = {"link_rate": 100_000_000, "residency": "none", "feedback": False}
    moved, chosen = {}, {}
    for direction in ("auto", "push", "pull"):
        with Session(in_memory(edges), direction=direction, threads=1, **options) as session:
            records = session.run(program(5000)).records
        moved[direction] = [sum(task.bytes_link for task in record.tasks) for record in records]
        chosen[direction] = {record.direction for record in records}
    best = [min(both) for both in zip(moved["push"], moved["pull"], strict=True)]
    assert sum(moved["auto"]) <= 1.1 * sum(best)
    assert chosen["auto"] == {"push", "pull"}


@pytest.mark.parametrize(
    "situation", [BFS, RANK, replace(BFS, can_pull=False), replace(RANK, unexplored_edges=9), FEW, CHEAP]
)
def test_what_is_certainly_pushed(situation) -> None:
    """Both ways: what the bounds allow is pushed, and what they do not would be pulled, or is weighed."""
    for forced, linked in product([None, "push"], [True, False]):
        there = replace(situation, forced=forced, linked=linked, link=LINK)
        most, alpha, per_row = certain_push(there)
        assert per_row == 0
        for edges, growing in product([0, 7, 28, 29, 500, 501, 950, 1000, 1001, 15000, 90_000, 90_001], [True, False]):
            if edges > there.edges:
                continue
            frontier = Frontier(10, edges)
            allowed = edges <= most and not (alpha and growing and edges > there.unexplored_edges // alpha)
            pushed = choose(there, frontier, "push", growing) == "push"
            assert pushed if allowed else weighs(there, frontier) or not pushed, (forced, linked, edges, growing)


@pytest.mark.parametrize("frontier", [Frontier(10, n) for n in (0, 500, 501, 900, 901)] + [Frontier(1800, 0, True)])
def test_what_is_certain_does_not_depend_on_where_edges_are(frontier) -> None:
    there = [replace(RANK, linked=linked, on_cores=on) for linked in (True, False) for on in (True, False)]
    found = {choose(situation, frontier, "push", True) for situation in there}
    assert [is_certain(situation, frontier) for situation in there] == [len(found) == 1] * 4
    assert not is_certain(BFS, frontier)


OUT, IN = "out", "in"


@pytest.mark.parametrize(
    ("along", "directed", "both_stored", "wanted"),
    [
        ("out", True, True, {"push": [("push", OUT)], "pull": [("pull", IN)]}),
        ("in", True, True, {"push": [("push", IN)], "pull": [("pull", OUT)]}),
        ("both", True, True, {"push": [("push", OUT), ("push", IN)], "pull": [("pull", IN), ("pull", OUT)]}),
        ("out", True, False, {"push": [("push", OUT)]}),
        ("in", True, False, {"pull": [("pull", OUT)]}),
        ("both", True, False, {"push": [("push", OUT), ("pull", OUT)]}),
        ("out", False, True, {"push": [("push", OUT)], "pull": [("pull", IN)]}),
        ("both", False, True, {"push": [("push", OUT)], "pull": [("pull", IN)]}),
    ],
)
def test_walks(along: str, directed: bool, both_stored: bool, wanted: dict[str, list[tuple[str, str]]]) -> None:
    found = traversals(along, directed=directed, both_stored=both_stored)
    assert {direction: [walk[:2] for walk in some] for direction, some in found.items()} == wanted


@pytest.mark.parametrize(
    ("along", "directed", "ways"),
    [("out", True, "forward"), ("in", True, "reverse"), ("both", True, "both"), ("in", False, "undirected")],
)
def test_a_list_is_pushed_along_in_one_walk(along: str, directed: bool, ways: str) -> None:
    found = traversals(along, directed=directed, both_stored=False, listed=True)
    assert found == {"push": (("push", "out", ways),)}
