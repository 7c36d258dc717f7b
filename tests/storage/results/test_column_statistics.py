"""Statistics by ranges of rows are those of NumPy over whole columns; sums to the bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from penstock.storage.base.threads import ROWS, map_rows, ranges
from penstock.storage.results import column_statistics as statistics
from penstock.storage.results.column_statistics import Keys, first_rows
from support.covering import covering

COLUMNS = st.one_of(
    arrays.arrays(st.sampled_from(["u1", "u4", "i8"]), st.integers(0, 40), elements=st.integers(0, 5)),
    arrays.arrays("i8", st.integers(0, 40), elements=st.integers(-5, 5)),
    arrays.arrays("f8", st.integers(0, 40), elements=st.sampled_from([0.0, 1.5, -2.0, np.inf, np.nan])),
)


@given(values=COLUMNS, absent=st.sampled_from([None, 0, 3, 5, np.inf, -2.0]))
def test_counts_and_extremes_are_those_of_the_present(values: NDArray[Any], absent: Any) -> None:
    present = values if absent is None else values[values != absent]
    assert statistics.count_present(values, absent) == len(present)
    assert statistics.count_nonzero(values, absent) == (len(present), np.count_nonzero(present))
    found = statistics.facts_of(values, absent)
    assert found.present == len(present)
    assert values.dtype.kind == "f" or found.total is None
    if not len(present):
        assert (found.least, found.largest) == (None, None)
        return
    np.testing.assert_array_equal([found.least, found.largest], [present.min(), present.max()])
    assert found.least.dtype == values.dtype


def test_ranges_of_a_large_column_are_joined() -> None:
    values = np.random.default_rng(1).integers(0, 1000, 3 * ROWS + 5)
    present = values[values != 0]
    wanted = statistics.ColumnFacts(len(present), present.min(), present.max(), None)
    assert statistics.facts_of(values, 0, threads=3) == wanted
    assert statistics.count_nonzero(values, 7, threads=2)[1] == np.count_nonzero(values[values != 7])


def test_vectors_have_extremes_over_all_components() -> None:
    values = np.arange(12.0).reshape(4, 3)
    assert statistics.facts_of(values, None) == statistics.ColumnFacts(4, 0.0, 11.0, values.sum())
    assert statistics.facts_of(values[:, 1], None).total == values[:, 1].sum()


@covering("kind, count, size", ["f4", "f8"], [0, 1, 127, 128, 129, 1000, 4097, 100_003], [128, 1000, ROWS])
def test_a_sum_is_numpys_to_the_bit(kind: str, count: int, size: int) -> None:
    random = np.random.default_rng(count)
    values = (random.standard_normal(count) * 10.0 ** random.uniform(-8, 8, count)).astype(kind)
    assert statistics.facts_of(values, None, threads=2, size=size).total.tobytes() == values.sum().tobytes()
    holed = values.copy()
    holed[random.random(count) < 0.3] = np.inf
    found = statistics.facts_of(holed, np.inf, threads=2, size=size)
    assert found.total.tobytes() == holed[holed != np.inf].sum().tobytes()
    once = statistics.facts_of(holed, np.inf, threads=2, size=size, twice=False)
    assert once == (replace(found, total=None) if found.present < count else found)


@covering("kind, size, absent", ["f4", "f8"], [128, ROWS], [None, np.inf, 7.0])
def test_a_sum_beyond_the_largest_float_is_infinite_and_warns_of_nothing(kind: str, size: int, absent: Any) -> None:
    """As warnings are errors in tests."""
    values = np.full(1000, np.finfo(kind).max, kind)
    values[3] = 7
    assert statistics.facts_of(values, absent, size=size).total == np.inf
    assert statistics.facts_of(values.reshape(-1, 2)[:, 1], absent, size=size).total == np.inf
    values[[0, -1]] = np.inf, -np.inf
    assert np.isnan(statistics.facts_of(values, None, size=size).total)


def test_ranges_come_in_order_whatever_the_threads() -> None:
    assert ranges(10, 4) == [(0, 4), (4, 8), (8, 10)]
    for threads in (1, 3):
        assert list(map_rows(lambda a, b: (a, b), 10, threads=threads, size=4)) == ranges(10, 4)
    assert list(map_rows(lambda a, b: (a, b), 0)) == []


KEYS = st.one_of(
    arrays.arrays("u4", st.integers(0, 60), elements=st.integers(0, 6)),
    arrays.arrays("f8", st.integers(0, 60), elements=st.sampled_from([0.0, 1.5, -2.0, np.inf, np.nan])),
)


@given(keys=KEYS, count=st.integers(0, 70), size=st.sampled_from([1, 3, 16, 100]), threads=st.sampled_from([1, 3]))
def test_they_are_those_of_a_stable_sort(keys: NDArray[Any], count: int, size: int, threads: int) -> None:
    def keys_of(first: int, last: int) -> Keys:
        rows = np.arange(first, last)
        return keys[first:last], rows, rows

    found = first_rows(keys_of, len(keys), count, threads=threads, size=size)
    wanted = np.argsort(keys, kind="stable")[:count]
    assert found[2].tolist() == wanted.tolist()
    np.testing.assert_array_equal(found[0], keys[wanted])


@given(keys=KEYS, count=st.integers(0, 70), seed=st.integers(0, 5))
def test_ties_decide_and_rows_may_be_left_out(keys: NDArray[Any], count: int, seed: int) -> None:
    ties = np.random.default_rng(seed).permutation(len(keys))

    def keys_of(first: int, last: int) -> Keys:
        rows = np.arange(first, last)[keys[first:last] != 0]
        return keys[rows], ties[rows], rows

    present = np.flatnonzero(keys != 0)
    wanted = present[np.lexsort((ties[present], keys[present]))[:count]]
    assert first_rows(keys_of, len(keys), count, threads=2, size=7)[2].tolist() == wanted.tolist()
