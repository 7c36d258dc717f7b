"""Bounds between ranks move to where no rank is busy for longer than it must, and stay where nothing is gained."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine.ranks.repartition import RankLoads, measured, new_bounds, starting_shares
from penstock.engine.resources.ownership import Ownership
from penstock.storage.format.index import Index, from_offsets

EVEN = from_offsets(np.arange(0, 60_001, 6))
SPEEDS = st.lists(st.floats(1, 4), min_size=2, max_size=5)


def _loads(busy: list[float] | np.ndarray, **given: object) -> RankLoads:
    size = len(busy)
    facts = {"read": np.zeros(size), "most": np.full(size, math.inf), "expected": 10.0, "sure": True} | given
    return RankLoads(np.array(busy, dtype=np.float64), **facts)  # type: ignore[arg-type]


def _reach(bounds: np.ndarray) -> np.ndarray:
    return np.stack([bounds[:-1], bounds[1:]], axis=1)


def _busy(bounds: np.ndarray, index: Index, speeds: list[float], heavy: float = 1.0) -> np.ndarray:
    """Seconds of ranks of these speeds; an edge in the first half of the vertices takes `heavy` times as long."""
    half = index.vertices // 2
    each = [[min(v, half), max(0, v - half)] for v in bounds.tolist()]
    starts = [index.starts(v, v + 1)[0] for v in bounds.tolist()]
    middle = int(index.starts(half, half + 1)[0])
    work = [min(s, middle) * heavy + max(0, s - middle) + sum(v) for s, v in zip(starts, each, strict=True)]
    return np.diff(work) / np.array(speeds)


def _steps(bounds: np.ndarray, index: Index, speeds: list[float], heavy: float = 1.0, most: int = 5) -> np.ndarray:
    before = None
    for _ in range(most):
        busy = _busy(bounds, index, speeds, heavy)
        moved = new_bounds(bounds, [index], _loads(busy, before=before), _reach(bounds))
        if moved is None:
            return bounds
        bounds, before = moved, measured(bounds, [index], busy)
    return bounds


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=60), st.data(), st.integers(1, 5), st.floats(0, 1e-3),
    st.integers(0, 2000),
)  # fmt: skip
def test_bounds_stay_sorted_and_cover_all(degrees, data, size: int, read: float, most: int) -> None:
    index = from_offsets(np.concatenate([[0], np.cumsum(degrees)]))
    inner = sorted(data.draw(st.lists(st.integers(0, len(degrees)), min_size=size - 1, max_size=size - 1)))
    bounds = np.array([0, *inner, len(degrees)])
    busy = data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    loads = _loads(busy, read=np.full(size, read), most=np.full(size, float(most)))
    moved = new_bounds(bounds, [index], loads, _reach(bounds))
    if moved is not None:
        assert (moved[0], moved[-1], len(moved)) == (0, len(degrees), size + 1)
        assert (np.diff(moved) >= 0).all()
        grows = (moved[:-1] < bounds[:-1]) | (moved[1:] > bounds[1:])
        union = np.stack([np.minimum(moved[:-1], bounds[:-1]), np.maximum(moved[1:], bounds[1:])], axis=1)
        held = [int(index.starts(b, b + 1)[0] - index.starts(a, a + 1)[0]) for a, b in union.tolist()]
        assert all(edges <= most for edges, more in zip(held, grows, strict=True) if more)


@given(st.integers(1, 6), st.floats(0.95, 1.0))
def test_equal_loads_do_not_move(size: int, noise: float) -> None:
    bounds = Ownership.of([EVEN], EVEN.vertices, 0, size).bounds
    busy = np.where(np.arange(size) % 2, noise, 1.0)
    assert new_bounds(bounds, [EVEN], _loads(busy), _reach(bounds)) is None


@given(st.integers(2, 6), st.data())
def test_a_bad_start_is_balanced_in_one_step_where_speeds_are_equal(size: int, data) -> None:
    shares = data.draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    bounds = Ownership.of([EVEN], EVEN.vertices, 0, size, shares).bounds
    busy = _busy(_steps(bounds, EVEN, [1.0] * size, most=1), EVEN, [1.0] * size)
    assert busy.max() <= 1.1 * busy.mean()


@given(SPEEDS, st.data())
def test_unequal_speeds_are_balanced_in_five_steps(speeds: list[float], data) -> None:
    shares = data.draw(st.lists(st.integers(1, 4), min_size=len(speeds), max_size=len(speeds)))
    bounds = Ownership.of([EVEN], EVEN.vertices, 0, len(speeds), shares).bounds
    balanced = _busy(np.array([0, EVEN.vertices]), EVEN, [sum(speeds)])[0]
    assert _busy(_steps(bounds, EVEN, speeds), EVEN, speeds).max() <= 1.1 * balanced


@given(st.floats(1, 6))
def test_rows_of_unequal_cost_are_balanced_in_five_steps(heavy: float) -> None:
    bounds = Ownership.of([EVEN], EVEN.vertices, 0, 2).bounds
    busy = _busy(_steps(bounds, EVEN, [1.0, 1.0], heavy), EVEN, [1.0, 1.0], heavy)
    assert busy.max() <= 1.1 * busy.mean()


def test_one_measurement_must_show_more_than_several() -> None:
    bounds = np.array([0, 5000, 10_000])
    for busy, once, sure in (([1.0, 0.8], False, True), ([1.0, 0.55], True, True), ([1.0, 0.94], False, False)):
        for several, moves in ((False, once), (True, sure)):
            found = new_bounds(bounds, [EVEN], _loads(busy, sure=several), _reach(bounds))
            assert (found is not None) == moves, (busy, several)


@pytest.mark.parametrize(("expected", "moves"), [(1, False), (10, True)])
def test_a_move_has_to_gain_what_its_reads_take(expected: int, moves: bool) -> None:
    bounds = np.array([0, 2500, 10_000])
    loads = _loads([0.25, 0.75], read=np.full(2, 1.0 / 15_000), expected=float(expected))
    assert (new_bounds(bounds, [EVEN], loads, _reach(bounds)) is not None) == moves


def test_what_a_rank_had_before_is_not_read_again() -> None:
    bounds, read = np.array([0, 2500, 10_000]), np.full(2, 1.0 / 15_000)
    loads = _loads([0.25, 0.75], read=read, expected=1.0, most=np.full(2, 1e9))
    assert new_bounds(bounds, [EVEN], loads, _reach(bounds)) is None
    assert new_bounds(bounds, [EVEN], loads, np.array([[0, 6000], [2500, 10_000]])) is not None


def test_a_rank_gets_no_more_than_it_has_room_for() -> None:
    bounds = np.array([0, 2500, 10_000])
    loads = _loads([0.25, 0.75], most=np.array([6 * 4000.0, math.inf]))
    assert new_bounds(bounds, [EVEN], loads, _reach(bounds)).tolist() == [0, 3750, 10_000]
    held = np.array([[0, 4000], [2500, 10_000]])  # what it had before stays in its memory
    assert new_bounds(bounds, [EVEN], loads, held).tolist() == [0, 3750, 10_000]
    none = _loads([0.25, 0.75], most=np.array([6 * 2500.0, math.inf]))
    assert new_bounds(bounds, [EVEN], none, _reach(bounds)) is None


def test_nothing_moves_where_nothing_was_measured() -> None:
    empty = from_offsets(np.zeros(1, np.int64))
    assert new_bounds(np.array([0, 0, 0]), [empty], _loads([1.0, 2.0]), np.zeros((2, 2), np.int64)) is None
    assert new_bounds(np.array([0, 1, 10_000]), [EVEN], _loads([0.0, 0.0]), np.zeros((2, 2), np.int64)) is None


@pytest.mark.parametrize(
    ("abilities", "shares"),
    [
        ([(4.0, math.inf, 0.0), (4.0, math.inf, 0.0)], None),
        ([(1.0, math.inf, 0.0), (3.0, math.inf, 0.0)], (250.0, 750.0)),
        ([(10.0, 2.0, 400.0), (10.0, 2.0, 100.0)], (650.0, 350.0)),  # a quarter of the memory for edges
        ([(10.0, 2.0, 900.0), (10.0, 2.0, 100.0)], (750.0, 250.0)),  # all that the first has stays there
        ([(10.0, 2.0, 0.0), (0.5, math.inf, 0.0)], (800.0, 200.0)),  # cores beside a device
    ],
)
def test_what_ranks_begin_with(abilities: list[tuple[float, ...]], shares: tuple[float, ...] | None) -> None:
    found = starting_shares(np.array(abilities), 1000)
    assert found == (None if shares is None else pytest.approx(shares, rel=1e-6))
