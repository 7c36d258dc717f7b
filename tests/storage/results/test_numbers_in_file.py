"""Numbers in a file, read and written by rows."""

from __future__ import annotations

import numpy as np
from penstock.storage.results.numbers_in_file import NumbersInFile


def test_numbers_in_a_file_are_read_where_they_are_asked_for() -> None:
    values = NumbersInFile(5000, np.dtype(np.uint32))
    values.put(np.array([3, 4098, 4999]), np.array([7, 0, 2**32 - 2], np.uint32))
    expected = np.full(5000, 2**32 - 1, np.uint32)
    expected[[3, 4098, 4999]] = 7, 0, 2**32 - 2
    for rows in (slice(None), slice(2, 4100), np.array([4999, 3, 0])):
        assert values[rows].dtype == np.uint32
        assert np.array_equal(values[rows], expected[rows])
    assert np.array_equal(np.asarray(values), expected)
    assert (len(values), values.ndim, values.dtype) == (5000, 1, np.uint32)
