"""Estimates of a push and a pull over a link: against what is counted level by level, and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine.resources.direction_cost import (
    DegreeSample,
    DirectionSide,
    LinkCosts,
    Progress,
    least_pull_seconds,
    pull_seconds,
    push_seconds,
    reading,
    sample_degrees,
)
from penstock.engine.state.state import Frontier
from penstock.storage.format.graph import Graph
from penstock.storage.format.index import from_degrees
from penstock.transfer.values.rates import Rates
from support.covering import covering
from support.graphs import in_memory
from support.oracles import EdgeList

RATES = Rates(
    copy_bytes=1e6, gather_bytes=1e9, line_rate=1e3, sector_rate=4e3, kernel_edges=1e12, kernel_latency=0.0
)  # a line takes 1 ms, a short request a quarter of that, 1 MB a second; nothing else takes long
TENS = DegreeSample(np.array([10.0]), np.array([1000.0]), 0.0)
LINK = LinkCosts(RATES, 4, TENS, DirectionSide(10), DirectionSide(10), routes=("zero-copy",), glance=0.0)
START = Progress(vertices=1000, edges=10000, unvisited=1000, unexplored=10000)
PLAN = 3e-4


def starts_of(graph: Graph) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Where the rows of the in-adjacency begin, and its neighbors."""
    into = graph.into
    assert into is not None
    assert into.arrays is not None
    return into.index().starts(0, graph.vertices + 1), into.arrays[0]


def counted(graph: Graph, active: NDArray[np.bool_], rows: NDArray[np.int64], head: int) -> tuple[int, int]:
    """Edges of `rows` in heads, and behind them, that a pull reads until it finds an active one."""
    starts, neighbors = starts_of(graph)
    places = np.append(np.flatnonzero(active[neighbors]), len(neighbors))
    first, end = starts[rows], starts[rows + 1]
    last = np.minimum(places[np.searchsorted(places, first)] + 1, end)
    split = np.minimum(first + head, end)
    return int((np.minimum(last, split) - first).sum()), int(np.maximum(last - split, 0).sum())


@covering("head, directed, seed", [0, 2, 8], [True, False], [1, 2])
def test_what_a_pull_reads_is_foretold(*, directed: bool, head: int, seed: int) -> None:
    """Every level of a search whose frontier is worth weighing, rows that are never reached included."""
    vertices = 6000
    random = np.random.default_rng(seed)
    names = random.permutation(vertices)  # the degree says nothing about the number
    ends = names[(vertices * random.random((2, 12 * vertices)) ** 2).astype(np.int64)]
    graph = in_memory(EdgeList(vertices, *ends, None, directed))
    out = graph.out.index()
    degrees, into = out.degrees(0, vertices), sample_degrees((graph.into or graph.out).index())
    (starts, neighbors), level = starts_of(graph), np.full(vertices, -1)
    targets = np.repeat(np.arange(vertices), np.diff(starts))
    level[int(np.argmax(degrees == 6))] = 0
    unvisited, unexplored, weighed = vertices, graph.edges, 0
    for number in range(20):
        active = level == number
        frontier = Frontier(int(active.sum()), int(degrees[active].sum()))
        rows = np.flatnonzero(level < 0)
        if frontier.edges > vertices // 64:
            link = replace(LINK, degrees=into, head=head)
            read = reading(link, Progress(vertices, graph.edges, unvisited, unexplored), frontier)
            in_heads, behind = counted(graph, active, rows, head)
            assert read.head_edges == pytest.approx(in_heads, rel=0.25, abs=graph.edges / 100)
            assert read.edges == pytest.approx(behind, rel=0.35, abs=graph.edges / 50)
            assert read.rows <= read.requests <= read.edges
            weighed += 1
        unvisited, unexplored = unvisited - frontier.vertices, unexplored - frontier.edges
        found = targets[active[neighbors]]
        level[found[level[found] < 0]] = number + 1
    assert weighed >= 3


def test_neighborhoods_keep_more_rows_unvisited_than_chance_would() -> None:
    """Half of the edges explored, from half of the vertices: chance would leave a thousandth of the rows."""
    half = replace(START, unvisited=500, unexplored=5000)
    read = reading(LINK, half, Frontier(1, 1))
    assert read.rows == pytest.approx(499)
    assert read.edges == pytest.approx(4990, rel=0.01)


def test_a_pull_to_a_frontier_without_edges_reads_all_that_is_unexplored() -> None:
    half = replace(START, unvisited=500, unexplored=5000)
    assert reading(LINK, half, Frontier(3, 0)).edges == pytest.approx(4980, rel=0.01)


def test_degrees_are_sampled() -> None:
    rng = np.random.default_rng(3)
    degrees = np.minimum(rng.zipf(1.7, 50_000) - 1, 300)
    found = sample_degrees(from_degrees(len(degrees), lambda: [degrees]))
    assert found.rows.sum() + found.empty == pytest.approx(len(degrees))
    assert found.empty == pytest.approx((degrees == 0).sum(), rel=0.03)
    assert found.rows @ found.length == pytest.approx(degrees.sum(), rel=0.1)
    few = np.array([0, 1, 63, 64, 100, 128, 0])
    exact = sample_degrees(from_degrees(len(few), lambda: [few]))
    assert (exact.length.tolist(), exact.rows.tolist(), exact.empty) == ([1, 63, 82, 128], [1, 1, 2, 1], 2)
    assert sample_degrees(from_degrees(0, list)).rows.sum() == 0


@pytest.mark.parametrize(
    ("change", "frontier", "seconds"),
    [
        # 100 rows of 40 bytes: 100 * (1 - 4 / 128) + 4000 / 128 lines of 1/4 to 1 ms, in between 1/16
        ({}, Frontier(100, 1000), PLAN + 0.128125 * (0.25 + 0.75 * 8 / 96)),
        ({"push": DirectionSide(10, here=0.75)}, Frontier(100, 1000), PLAN + 0.25 * 0.128125 * (0.25 + 0.75 * 8 / 96)),
        (
            {"push": DirectionSide(10, here=0.75), "at_once": True},
            Frontier(100, 1000),
            0.128125 * (0.25 + 0.75 * 8 / 96),
        ),
        ({"routes": ("filter",)}, Frontier(1000, 1000), PLAN + 0.04),  # every chunk
        ({"routes": ("filter",)}, Frontier(1, 1000), PLAN + 0.04 * (1 - np.exp(-0.1))),  # one chunk of ten, nearly
        ({"routes": ("compaction",)}, Frontier(100, 1000), PLAN + 0.0048),
        ({"routes": ("compaction", "filter")}, Frontier(1000, 9000), PLAN + 0.04),  # 0.044 is more than all
        ({"push": DirectionSide(10, fetch_seconds=3.0)}, Frontier(1000, 9000), PLAN + 3.0),
        ({"rates": replace(RATES, kernel_edges=1e3)}, Frontier(100, 9000), PLAN + 9.0),
    ],
)
def test_a_push_by_hand(change: dict[str, Any], frontier: Frontier, seconds: float) -> None:
    assert push_seconds(replace(LINK, **change), START, frontier) == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        ({}, PLAN + 1.689e3 * 0.25e-3),  # 1000 rows, (1 - 0.9 ** 10) / 0.1 edges of each: 1 + 5.513 / 8 requests
        ({"pull": DirectionSide(10, here=0.5)}, PLAN + 1.689e3 * 0.125e-3),
        ({"head": 10}, PLAN),
        ({"head": 6}, PLAN + 531.44 * (1 + 2.439 / 8) * 0.25e-3),  # 0.9 ** 6 of the rows, (1 - 0.9 ** 4) / 0.1 edges
        ({"routes": ("filter", "zero-copy")}, PLAN + 0.04),
        ({"pull": DirectionSide(10, fetch_seconds=3.0)}, PLAN + 3.0),
        ({"pull": DirectionSide(10, fetch_seconds=3.0), "head": 10}, PLAN),
        ({"rates": replace(RATES, kernel_edges=1e3), "glance": 2.0}, PLAN + 2.0 + 6.513),
        ({"rates": replace(RATES, kernel_edges=1e3), "head": 10}, PLAN + 6.513),
    ],
)
def test_a_pull_by_hand(change: dict[str, Any], seconds: float) -> None:
    link = replace(LINK, **change)
    assert pull_seconds(link, START, Frontier(1, 1000)) == pytest.approx(seconds, rel=1e-3)
    assert 0 < least_pull_seconds(link, START) <= pull_seconds(link, START, Frontier(1, 1000))
