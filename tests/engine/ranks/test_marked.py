"""What bitmaps mark is listed in ascending order, whatever the density."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.ranks.marked import marked


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_marked_vertices_are_listed_by_span(share: float) -> None:
    marks = np.random.default_rng(1).random((3, 4096)) < share
    words = np.packbits(marks, axis=1, bitorder="little").view(np.uint64)
    spans = np.array([0, 2, 7])
    rows, columns = np.nonzero(marks)
    np.testing.assert_array_equal(marked(words, spans), spans[rows] * 4096 + columns)
