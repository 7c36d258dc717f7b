"""Which blocks of a list are wanted: by the bounds of their vertices, a word of the bitmap at a time."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.kernels.interface import WaysName
from penstock.engine.resources.block_stream import count_wanted, wanted_blocks
from penstock.storage.format.schema import LIST_BLOCK

SPANS = np.array([[0, 10, 640, 700], [64, 200, 0, 63], [640, 999, 128, 128]], np.uint32)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize(
    ("active", "ways", "wanted"),
    [
        ([], "both", [False, False, False]),
        ([5], "forward", [True, False, False]),
        ([5], "reverse", [False, True, False]),
        ([5], "both", [True, True, False]),
        ([130], "undirected", [False, True, True]),
        ([199, 999], "forward", [False, True, True]),
        ([300], "undirected", [False, False, False]),
    ],
)
def test_wanted_blocks(active: list[int], ways: WaysName, wanted: list[bool], dtype: type) -> None:
    bits = 8 * np.dtype(dtype).itemsize
    words = np.zeros(1024 // bits, dtype)
    for vertex in active:
        words[vertex // bits] |= dtype(1 << vertex % bits)
    assert wanted_blocks(words, SPANS, ways).tolist() == wanted


def test_count_wanted() -> None:
    """A block counts wherever some of it is; ranges need not be whole blocks."""
    wanted = np.array([True, False, True, True])
    e0 = np.array([0, 1, 2]) * LIST_BLOCK + np.array([0, 100, 5])
    e1 = np.array([1, 2, 3]) * LIST_BLOCK + np.array([0, 0, 5])
    assert count_wanted(wanted, e0, e1).tolist() == [1, 0, 2]
