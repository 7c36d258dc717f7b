"""Narrow numbers of a run, read as the wider ones of its answer."""

from __future__ import annotations

import numpy as np
from penstock.engine.program.precision import Widened


def test_values_are_widened_where_they_are_read_and_none_stays_none() -> None:
    values = Widened(np.array([0, 254, 255], np.uint8), np.dtype(np.uint32))
    expected = np.array([0, 254, 2**32 - 1], np.uint32)
    for found, right in (
        (np.asarray(values), expected),
        (values[1:], expected[1:]),
        (values[np.array([2, 0])], expected[[2, 0]]),
    ):
        assert found.dtype == np.uint32
        assert np.array_equal(found, right)
    assert (len(values), values.ndim, values.dtype) == (3, 1, np.uint32)
