"""The semi-iteration: numbers in, coefficients out; on matrices whose eigenvalues are known it does as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine.programs.hits import HIGHEST_CUT, POWER, SemiIteration


def solved(eigenvalues: list[float], tolerance: float, rounds: int, *, power: bool = False) -> tuple[int, np.ndarray]:
    """Rounds that it takes from a vector of ones, and the vector (L1 norm 1), by the same recurrence as HITS."""
    matrix = np.array(eigenvalues)
    vector, former = np.full(len(matrix), 1 / len(matrix)), np.zeros(len(matrix))
    choice = SemiIteration()
    for number in range(rounds):
        image = matrix * vector
        growth = float(np.abs(image).sum())
        change = float(np.abs(image / growth - vector).sum())
        if change < tolerance:
            return number, image / growth
        a, b, c = POWER if power else choice.following(change, growth)
        vector, former = a * image + b * vector + c * former, vector
        norm = float(np.abs(vector).sum())
        vector, former = vector / norm, former / norm
    return rounds, vector


def test_begins_with_power_rounds_and_sets_the_cut_by_what_they_lose() -> None:
    choice = SemiIteration()
    assert [choice.following(change, 10.0) for change in (0.8, 0.4, 0.3)] == [POWER] * 3
    assert choice.cut == pytest.approx(7.5)
    assert choice.following(0.25, 10.0) == pytest.approx((2 / 7.5, -1.0, 0.0))
    assert choice.following(0.1, 10.0) == pytest.approx((4 / 7.5, -2.0, -1.0))


def test_a_change_that_grows_sets_no_cut() -> None:
    choice = SemiIteration()
    assert [choice.following(change, 1.0) for change in (0.1, 0.2, 0.3, 0.4)] == [POWER] * 4
    assert choice.cut == 0
    choice.following(0.2, 1.0)
    assert choice.cut == pytest.approx(0.5)


@pytest.mark.parametrize(("change", "first"), [(0.0, 1.0), (0.5, 0.0), (math.nan, 1.0)])
def test_nothing_to_go_by_is_a_power_round(change: float, first: float) -> None:
    choice = SemiIteration(cut=0.5, step=3, began=1.0)
    assert choice.following(change, first) == POWER
    assert (choice.cut, choice.step) == (0.5, 3)


def test_a_cycle_that_falls_behind_raises_the_cut_to_the_eigenvalue_it_met() -> None:
    """What a second eigenvalue leaves of a cycle is the ratio of the polynomial's values there and at the first."""
    first, second, cut, step = 10.0, 9.5, 8.0, 6
    left = np.cosh(step * np.arccosh(2 * second / cut - 1)) / np.cosh(step * np.arccosh(2 * first / cut - 1))
    choice = SemiIteration(cut=cut, step=step, began=0.1)
    assert choice.following(0.1 * left, first) == POWER
    assert choice.cut == pytest.approx(second)
    assert choice.step == 0


def test_a_cycle_that_keeps_its_promise_goes_on() -> None:
    choice = SemiIteration(cut=8.0, step=6, began=0.1)
    promised = 0.1 / np.cosh(6 * np.arccosh(2 * 10.0 / 8.0 - 1))
    assert choice.following(promised * 3.9, 10.0) != POWER
    assert (choice.cut, choice.step) == (8.0, 7)


def test_the_cut_stays_below_the_first_eigenvalue() -> None:
    choice = SemiIteration(cut=8.0, step=9, began=0.1)
    choice.following(0.1, 10.0)
    assert choice.cut <= 10.0 * HIGHEST_CUT


@pytest.mark.parametrize("second", [0.5, 0.9, 0.99, 0.999])
def test_rounds_are_about_the_root_of_a_power_iterations(second: float) -> None:
    eigenvalues = [1.0, *np.linspace(0.0, second, 30).tolist()]
    fast, vector = solved(eigenvalues, 1e-10, 5000)
    slow, _ = solved(eigenvalues, 1e-10, 50_000, power=True)
    assert fast <= 0.7 * slow, (fast, slow)
    assert fast <= 40 / math.sqrt(1 - second), fast
    assert np.abs(vector[1:]).sum() < 1e-10 / (1 - second) * 2


@given(st.lists(st.floats(0.0, 0.97), min_size=1, max_size=20))
def test_any_spectrum_ends_at_the_dominant_vector(others: list[float]) -> None:
    rounds, vector = solved([1.0, *others], 1e-9, 2000)
    assert rounds < 2000
    assert vector[0] == pytest.approx(1.0, abs=1e-6)
