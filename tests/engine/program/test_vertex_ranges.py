"""Passes by ranges: every vertex once, and sums that are NumPy's to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.program import vertex_ranges
from penstock.engine.program.vertex_ranges import ROWS, absolute_sum, each_range, mask_of, order_by, over_ranges

COUNTS = [0, 1, ROWS - 1, ROWS, ROWS + 1, 5 * ROWS + 77]


@pytest.mark.parametrize("count", COUNTS)
def test_every_vertex_is_in_one_range(count: int) -> None:
    seen = np.zeros(count, np.int64)

    def see(first: int, last: int) -> None:
        seen[first:last] += 1

    each_range(see, count)
    assert (seen == 1).all()
    assert list(over_ranges(lambda first, last: (first, last), count)) == [
        (first, min(first + ROWS, count)) for first in range(0, count, ROWS)
    ]
    assert np.array_equal(mask_of(lambda a, b: np.arange(a, b) % 3 == 0, count), np.arange(count) % 3 == 0)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_numbers_are_places(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vertex_ranges, "ALONE", 64)
    for first, last in ((0, 0), (0, 1), (5, 900), (64, 128)):
        around = np.full(1000, 7, dtype)
        vertex_ranges.number_all(around[first:last])
        assert np.array_equal(around[first:last], np.arange(last - first))
        assert (np.delete(around, np.s_[first:last]) == 7).all()


@pytest.mark.parametrize("count", COUNTS)
def test_absolute_sums_are_numpys(count: int) -> None:
    values = np.random.default_rng(count).normal(0, 1e3, count)
    assert absolute_sum(values) == np.abs(values).sum()


@pytest.mark.parametrize("kind", ["u4", "u8"])
@pytest.mark.parametrize("shape", ["far", "near", "one high", "equal", "none"])
def test_many_vertices_are_sorted_in_parts(kind: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether values are spread evenly or not; of equal ones the first vertex comes first."""
    monkeypatch.setattr(vertex_ranges, "ALONE", 0)
    monkeypatch.setattr(vertex_ranges, "SAMPLED", 100)
    monkeypatch.setattr(vertex_ranges, "MANY_ROWS", 70)
    values = np.random.default_rng(3).permutation(0 if shape == "none" else 1000).astype(kind)
    if shape == "far":
        values *= np.array(np.iinfo(kind).max // 1000, kind)
    elif shape == "one high":
        values[7] = np.iinfo(kind).max
    elif shape == "equal":
        values //= np.array(300, kind)
    found = np.empty(len(values), np.uint32)
    order_by(lambda first, last: values[first:last], found)
    assert found.tolist() == np.argsort(values, kind="stable").tolist()


def test_an_error_in_a_range_is_the_callers() -> None:
    def fail(first: int, last: int) -> None:
        if first == 2 * ROWS:
            raise ValueError("the third range")

    with pytest.raises(ValueError, match="the third range"):
        each_range(fail, 5 * ROWS)
