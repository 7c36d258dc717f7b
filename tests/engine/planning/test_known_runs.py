"""What a run is expected to take: by runs that are like it, by those of another machine, by the rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from penstock.engine.planning import known_runs
from penstock.engine.planning.known_runs import Expected, KnownRuns, PastRun, least_of
from penstock.transfer.values.cost import Cost

AHEAD = PastRun("pagerank", "7", stays=1.0, vertices=100, edges=1000, most=10, threads=2)
RUN = replace(AHEAD, iterations=10, sweeps=10.0, seconds=20.0)
"""2 s for each sweep."""
REFERENCE = replace(
    RUN, program="bfs", most=0, iterations=5, sweeps=1.0, seconds=1.0, depth=5.0, besides=3.0, compiling=4.0
)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_runs, "cores", lambda: 2)


def by_rates(most: int | None, *, everywhere: bool = True, compiles: bool = True, disk: float = 0.0) -> Any:
    """A forecast of 5 s for the first sweep and 3 for each other one."""
    first, later = SimpleNamespace(seconds=5.0), SimpleNamespace(seconds=3.0, cost=Cost(disk=disk))
    facts = {"most_iterations": most, "everywhere": everywhere, "phases": False, "compiles": compiles}
    return SimpleNamespace(first=first, later=later, **facts)


def told(
    run: PastRun, *past: PastRun, walks: int | None = None, reference: Sequence[PastRun] = (REFERENCE,), **facts: Any
) -> Expected:
    """What is expected of a run."""
    found = KnownRuns(past, reference, 1.0).expected(run, by_rates(walks, **facts))
    assert found is not None
    return found


def test_without_a_past_run_the_rates_tell() -> None:
    found = told(RUN, replace(RUN, program="hits"), walks=10.0)
    assert (found.sweeps, found.alone_seconds, found.seconds, found.runs, found.error) == (10.0, 32.0, 32.0, 0, None)
    assert told(RUN, walks=0.5).seconds == 2.5
    assert KnownRuns([], [REFERENCE], 1.0).expected(RUN, by_rates(None)) is None


@pytest.mark.parametrize(
    ("past", "most", "sweeps"),
    [
        (RUN, 10, 10.0),
        (RUN, 20, 20.0),  # it ended at its limit, and would have gone on
        (RUN, 0, 10.0),
        (replace(RUN, iterations=11, sweeps=11.0), 10, 11.0),  # one before those that are limited
        (replace(RUN, iterations=11, sweeps=11.0), 20, 22.0),
        (replace(RUN, iterations=6, sweeps=6.0), 20, 6.0),  # it converged
        (replace(RUN, iterations=6, sweeps=6.0), 4, 4.0),
        (replace(RUN, sweeps=30.0), 20, 60.0),  # three walks in each
        (replace(RUN, most=0), 20, 10.0),  # it had no limit, as those that an older version kept
    ],
)
def test_sweeps_are_those_of_a_past_run_within_the_limit(past: PastRun, most: int, sweeps: float) -> None:
    found = told(replace(RUN, most=most), past, walks=1.0)
    assert found.sweeps == sweeps
    assert found.alone_seconds == pytest.approx(sweeps * past.seconds / past.sweeps)


def test_seconds_are_those_alone_times_what_the_load_takes() -> None:
    beside = replace(RUN, load=2.0, seconds=40.0)
    assert beside.slowdown == 2.0
    found = told(replace(RUN, load=4.0), beside)
    assert (found.alone_seconds, found.seconds, found.load, found.cores) == (20.0, 60.0, 4.0, 2)
    assert replace(RUN, threads=1, load=1.0).slowdown == 1.0  # a core is free
    assert replace(RUN, threads=0, load=9.0).slowdown == 1.0  # a GPU computes


def test_the_runs_most_like_it_count() -> None:
    other = replace(RUN, vertices=400, edges=4000, seconds=160.0)
    cached = replace(RUN, stays=0.6, seconds=50.0)
    differently = replace(RUN, parameters="8", seconds=30.0)
    assert told(RUN, RUN, other, cached, differently).seconds == 20.0
    assert told(RUN, other, cached, differently).seconds == 30.0
    assert told(RUN, other, cached).seconds == 50.0
    assert told(RUN, other).seconds == pytest.approx(40.0)  # a quarter of the edges
    assert told(RUN, RUN, RUN, RUN, replace(RUN, seconds=2000.0)).seconds == 20.0  # one went wild


@pytest.mark.parametrize("far", [{"stays": 0.1}, {"edges": 10_000, "vertices": 1000}])
def test_runs_that_are_unlike_count_where_nothing_else_is_known_of_the_program(far: dict[str, Any]) -> None:
    other = replace(RUN, **far, most=0, sweeps=3.0, seconds=99.0)
    found = told(replace(RUN, most=0), other)
    assert (found.sweeps, found.runs) == (3.0, 1)
    assert found.seconds == pytest.approx(99.0 * RUN.edges / other.edges)


def test_hubs_make_graphs_of_one_size_unlike() -> None:
    flat, skewed = replace(RUN, skew=1.0, seconds=20.0), replace(RUN, skew=80.0, seconds=70.0)
    assert told(flat, flat, skewed).seconds == 20.0
    assert told(skewed, flat, skewed).seconds == 70.0
    assert told(RUN, flat).seconds == 20.0, "not known"


def test_the_error_is_the_median_of_what_would_have_been_said_of_the_last_runs() -> None:
    past = [replace(RUN, seconds=20.0 * factor) for factor in (50.0, 1.0, 1.0, 1.0, 1.0, 2.0)]
    assert told(RUN, *past[1:]).errors == pytest.approx([0.0, 0.0, 0.0, 0.5])
    assert told(RUN, *past[:2]).error == 49.0
    assert told(RUN, RUN).error is None
    assert told(RUN, *[RUN] * 40).errors == [0.0] * known_runs.RECENT
    assert told(RUN, RUN, replace(RUN, stays=0.1)).error is None


DEEP = [
    replace(
        REFERENCE, vertices=100 * size, edges=400 * size, iterations=10 * size, depth=10.0 * size, seconds=2.0 * size
    )
    for size in (1, 4, 16)
]
"""Searches that take 0.2 s for each level."""
SEARCH = replace(DEEP[0], most=0, iterations=0, sweeps=0.0, seconds=0.0, besides=0.0, compiling=0.0)


def test_a_first_run_is_told_by_those_of_another_machine() -> None:
    found = told(replace(SEARCH, depth=80.0, edges=3200, vertices=800), reference=DEEP)
    assert (found.iterations, found.sweeps, found.runs) == (pytest.approx(80.0), 1.0, 0)
    assert found.seconds == pytest.approx(16.0)
    level = [replace(one, iterations=3) for one in DEEP]
    assert told(replace(SEARCH, depth=80.0), reference=level).iterations == pytest.approx(3.0)
    assert told(replace(SEARCH, depth=0.0), reference=DEEP).iterations == pytest.approx(40.0)


def test_runs_that_only_a_limit_ends_do_not_tell_when_others_converge() -> None:
    endless = replace(REFERENCE, most=20, iterations=20, sweeps=20.0, endless=True)
    reference = [endless] * 5 + [replace(REFERENCE, most=100, iterations=19, sweeps=19.0)]
    ahead = replace(SEARCH, most=100)
    assert told(ahead, reference=reference).iterations == 19.0
    assert told(replace(ahead, endless=True), reference=reference).iterations == 100.0
    assert told(ahead, reference=[endless]).iterations == 100.0


def test_own_runs_of_any_program_tell_how_fast_the_machine_is() -> None:
    own = replace(DEEP[0], program="wcc", seconds=6.0, besides=4.5)
    reference = [*DEEP, *(replace(one, program="wcc") for one in DEEP)]
    slow = told(SEARCH, own, reference=reference)
    assert (slow.seconds, slow.besides) == (pytest.approx(6.0), pytest.approx(4.5))
    assert KnownRuns([], DEEP, 2.0).expected(SEARCH, by_rates(None)).seconds == pytest.approx(4.0)


def test_no_run_is_faster_than_its_disk() -> None:
    assert told(SEARCH, reference=DEEP, disk=50.0).seconds == 50.0


def test_iterations_on_the_same_graph_count_wherever_its_edges_were() -> None:
    own = replace(DEEP[0], stays=0.0, iterations=7, depth=0.0)
    found = told(SEARCH, own, reference=DEEP)
    assert (found.iterations, found.runs) == (pytest.approx(7.0), 0)


def test_compiling_counts_where_kernels_are_missing() -> None:
    assert told(SEARCH, reference=DEEP).compiling == 4.0
    assert told(SEARCH, reference=DEEP, compiles=False).compiling == 0.0
    assert told(SEARCH, replace(DEEP[0], compiling=9.0), reference=DEEP).compiling == 9.0


def test_without_runs_of_another_machine_the_rest_of_a_job_is_that_of_own_runs() -> None:
    found = told(SEARCH, everywhere=False, reference=())
    assert (found.seconds, found.by_rates, found.besides, found.compiling) == (5.0, True, 0.0, 0.0)
    own = replace(DEEP[0], besides=2.0, compiling=3.0)
    found = told(SEARCH, replace(own, program="wcc"), own, reference=())
    assert (found.runs, found.by_rates, found.besides, found.compiling) == (1, False, 2.0, 3.0)
    assert told(replace(SEARCH, load=2.0), own, reference=()).besides == 3.0


def test_what_parts_take_is_never_below_zero() -> None:
    assert least_of([[1, 1], [1, 2]], [3.0, 5.0], [1.0, 1.0]) == pytest.approx([1.0, 2.0])
    assert least_of([[1, 1], [1, 2]], [3.0, 2.0], [1.0, 1.0]) == pytest.approx([30 / 13, 0.0])
    assert least_of([[0, 1], [0, 2]], [3.0, 6.0], [1.0, 0.5]) == pytest.approx([0.0, 3.0])
    assert least_of([[1], [1]], [1.0, 4.0], [1.0, 1e-9]) == pytest.approx([1.0])


def test_iterations_whose_edges_come_from_disk_take_longer() -> None:
    streamed = [replace(one, stays=0.1, seconds=6.0 * one.seconds) for one in DEEP]
    ahead = replace(SEARCH, depth=80.0, edges=3200, vertices=800)
    assert told(ahead, reference=[*DEEP, *streamed]).seconds == pytest.approx(16.0, rel=0.01)
    assert told(replace(ahead, stays=0.3), reference=[*DEEP, *streamed]).seconds == pytest.approx(96.0, rel=0.01)


def test_a_depth_is_asked_for_where_runs_of_another_machine_tell() -> None:
    """A search of the graph reads its row index and edges: not for a GPU, of which no runs come with Penstock."""
    assert KnownRuns([], DEEP, 1.0).asks_depth(SEARCH)
    assert not KnownRuns([], [], 1.0).asks_depth(SEARCH)
    ours = replace(SEARCH, depth=0.0, iterations=9, sweeps=1.0, seconds=1.0)
    assert not KnownRuns([ours], DEEP, 1.0).asks_depth(SEARCH)
