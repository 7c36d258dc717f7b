"""A law through what kernels took: launches, rows and edges told apart, wild ones passed over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.transfer.calibration.kernel_cost_fit import (
    FAR,
    KEPT,
    SLOWEST_ROW,
    SOON,
    WORTH,
    CostFit,
    CostLaw,
    fit_cost_law,
)

GIVEN = CostLaw(2e-6)


def told(law: CostLaw, rows: np.ndarray, base: np.ndarray) -> np.ndarray:
    return law.launch + law.row * rows + law.slope * base


@given(
    st.floats(1e-7, 1e-1),
    st.floats(0, SLOWEST_ROW / 2),
    st.floats(0.05, 50.0),
    st.integers(0, 2**32 - 1),
    st.integers(8, 60),
)
def test_a_law_goes_through_its_tasks(launch: float, row: float, slope: float, seed: int, count: int) -> None:
    """Errors are small, of what is nearly exact, whatever the launch, the rows and the edges take."""
    draw = np.random.default_rng(seed)
    base, rows = 10 ** draw.uniform(-6, 0, count), 10 ** draw.uniform(0, 6, count)
    seconds = told(CostLaw(launch, row, slope), rows, base) * draw.uniform(0.99, 1.01, count)
    law = fit_cost_law(rows, base, seconds, GIVEN)
    errors = np.abs(told(law, rows, base) - seconds) / seconds
    assert np.median(errors) < 0.15


def test_what_went_wild_hardly_counts() -> None:
    base = np.linspace(1e-4, 1e-2, 30)
    seconds = 1e-3 + 5 * base
    seconds[::6] += 0.5
    law = fit_cost_law(np.zeros(30), base, seconds, GIVEN)
    assert (law.launch, law.slope) == (pytest.approx(1e-3, rel=0.05), pytest.approx(5, rel=0.05))


def test_rows_and_edges_are_told_apart() -> None:
    rows, base = np.array([1e4, 1e4, 1e5, 1e5, 1e3]), np.array([1e-3, 1e-2, 1e-3, 1e-2, 1e-4])
    law = fit_cost_law(rows, base, 2e-4 + 1e-7 * rows + 0.5 * base, GIVEN)
    assert (law.launch, law.row, law.slope) == (
        pytest.approx(2e-4, rel=0.1),
        pytest.approx(1e-7, rel=0.1),
        pytest.approx(0.5, rel=0.1),
    )


def test_equal_tasks_tell_of_edges_and_empty_ones_of_a_launch() -> None:
    law = fit_cost_law(np.ones(5), np.full(5, 1e-3), np.full(5, 4e-3), GIVEN)
    assert told(law, np.ones(1), np.full(1, 2e-3))[0] == pytest.approx(8e-3, rel=0.02)
    found = fit_cost_law(np.zeros(5), np.zeros(5), np.full(5, 3e-5), GIVEN)
    assert (found.launch, found.slope) == (pytest.approx(3e-5, rel=0.05), 1.0)


@pytest.mark.parametrize("several", [1, 5])
def test_a_task_of_hardly_any_edges_tells_nothing_of_them(several: int) -> None:
    """What a kernel takes that is loaded first, say: a law of its one edge would foretell minutes for a thousand."""
    law = fit_cost_law(np.ones(several), np.full(several, 5e-9), np.full(several, 0.02), GIVEN)
    assert 0.001 < told(law, np.full(1, 4e3), np.full(1, 2e-5))[0] < 0.05


def test_more_never_takes_less() -> None:
    falling = fit_cost_law(np.zeros(3), np.array([1e-3, 1e-2, 1e-1]), np.array([3.0, 2.0, 1.0]), GIVEN)
    assert falling.slope == pytest.approx(1 / FAR)
    below = fit_cost_law(np.array([3.0, 1.0]), np.array([1.0, 2.0]), np.array([0.1, 1.1]), GIVEN)
    assert min(below.launch, below.row) >= 0.0
    assert below.slope > 0.0
    assert fit_cost_law(np.array([1.0, 3.0]), np.zeros(2), np.array([1.0, 9.0]), GIVEN).row == 0.0


def test_the_given_law_holds_until_there_is_something_and_old_tasks_are_forgotten() -> None:
    fit = CostFit(GIVEN)
    fit.learn([])
    assert fit.law == GIVEN
    for slope in (3.0, 7.0):
        for at in range(KEPT + SOON):
            fit.learn([(0.0, 1e-3 * (1 + at), slope * 1e-3 * (1 + at))])
        assert fit.law.slope == pytest.approx(slope, rel=0.02)


def test_what_takes_no_time_is_not_worth_a_law() -> None:
    fit = CostFit(GIVEN)
    for _ in range(9):
        fit.learn([(0.0, 0.0, WORTH / 10)])
    assert fit.law is GIVEN
    fit.learn([(0.0, 0.0, WORTH / 5)])
    assert fit.law.launch == pytest.approx(WORTH / 10, rel=0.1)


def test_many_tasks_change_the_law_by_so_many_together() -> None:
    fit = CostFit(GIVEN)
    for _ in range(KEPT):
        fit.learn([(0.0, 1.0, 1.0)])
    settled = fit.law
    for _ in range(SOON - 1):
        fit.learn([(0.0, 1.0, 9.0)])
    assert fit.law is settled
    fit.learn([(0.0, 1.0, 9.0)])
    assert fit.law is not settled


def test_a_law_that_holds_is_not_drawn_anew() -> None:
    fit, law = CostFit(GIVEN), CostLaw(1e-3, 0.0, 2.0)
    base = np.linspace(1e-3, 1e-1, SOON)
    tasks = list(zip(np.zeros(SOON), base, told(law, np.zeros(SOON), base), strict=True))
    fit.learn(tasks)
    drawn = fit.law
    assert drawn is not fit.given
    fit.learn([(rows, work, 1.02 * seconds) for rows, work, seconds in tasks])
    assert fit.law is drawn
    fit.learn([(rows, work, 3 * seconds) for rows, work, seconds in tasks])
    assert fit.law is not drawn
