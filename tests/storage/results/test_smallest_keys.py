"""The first rows by a key are those of a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from penstock.storage.results.smallest_keys import Keys, first_rows

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
