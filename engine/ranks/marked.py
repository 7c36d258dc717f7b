"""Listing what bitmaps in host memory mark, a span of 4096 vertices a row. NumPy would unpack them, a byte a vertex."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

ONE, TWO, FOUR, TOP = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
PAIRS, FOURS, EIGHTS, ONES = (np.uint64(mask * (2**64 // 255)) for mask in (0x55, 0x33, 0x0F, 0x01))


def marked(words: NDArray[np.uint64], spans: NDArray[Any]) -> NDArray[np.int64]:
    """The vertices that are marked, ascending; words: uint64 (spans, 64), of the spans with these numbers."""
    found = np.empty(int(np.bitwise_count(words).sum()), dtype=np.int64)
    list_marked(words, spans, found)
    return found


@jit
def list_marked(words: NDArray[np.uint64], spans: NDArray[Any], found: NDArray[np.int64]) -> None:
    """Fill `found`; the number of the lowest bit is how many lie below it, counted in pairs, fours and eights."""
    at = 0
    for row in range(len(spans)):
        for column in range(64):
            first = spans[row] * 4096 + column * 64
            left = words[row, column]
            while left != 0:
                below = (left & (~left + ONE)) - ONE
                below = below - ((below >> ONE) & PAIRS)
                below = (below & FOURS) + ((below >> TWO) & FOURS)
                below = (below + (below >> FOUR)) & EIGHTS
                found[at] = first + np.int64((below * ONES) >> TOP)
                left &= left - ONE
                at += 1
