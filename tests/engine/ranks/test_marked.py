"""What bitmaps mark is listed in ascending order, whatever the density."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.ranks.marked import marked, marked_values, put_listed, put_marked, unite_words
from penstock.engine.state.state import Bitmap


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_marked_vertices_are_listed_by_span(share: float) -> None:
    marks = np.random.default_rng(1).random((3, 4096)) < share
    words = np.packbits(marks, axis=1, bitorder="little").view(np.uint64)
    spans = np.array([0, 2, 7])
    rows, columns = np.nonzero(marks)
    np.testing.assert_array_equal(marked(words, spans), spans[rows] * 4096 + columns)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_values_of_marked_vertices_are_taken_and_put_in_their_order(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(2)
    marks = random.random((2, 4096)) < 0.2
    words, spans = np.packbits(marks, axis=1, bitorder="little").view(np.uint64), np.array([1, 3])
    values = random.integers(0, 100, (4 * 4096, *shape))
    at = marked(words, spans)
    np.testing.assert_array_equal(marked_values(words, spans, values), values[at])
    wanted, found = values.copy(), random.integers(0, 100, (len(at), *shape))
    wanted[at] = found
    put_marked(words, spans, found, values)
    np.testing.assert_array_equal(values, wanted)


def test_listed_vertices_and_those_of_other_bitmaps_are_marked() -> None:
    random = np.random.default_rng(3)
    bitmap, values = Bitmap.empty(3 * 4096), np.zeros(3 * 4096)
    others = np.zeros((2, len(bitmap.words)), np.uint64)
    listed = np.unique(random.integers(0, 4096, 50)).astype(np.uint32)
    put_listed(listed, listed + 0.5, values, bitmap.words, bitmap.summary)
    np.testing.assert_array_equal(values[listed], listed + 0.5)
    assert values.sum() == (listed + 0.5).sum()
    others[0, 70], others[1, 70], others[1, 191] = 1, 4, 1 << 63
    unite_words(bitmap.words, others, bitmap.summary)
    wanted = [*listed.tolist(), 70 * 64, 70 * 64 + 2, 3 * 4096 - 1]
    assert marked(bitmap.words.reshape(-1, 64), np.arange(3)).tolist() == wanted
    summary = np.packbits(bitmap.words != 0, bitorder="little").view(np.uint64)
    np.testing.assert_array_equal(bitmap.summary, summary)
