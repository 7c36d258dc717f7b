"""What bitmaps in host memory mark: listing it, and reading and writing values there, a span of 4096 vertices a row.

Compiled: NumPy would unpack bitmaps, a byte a vertex, and look up and check every id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit, jit_inlined

ONE, TWO, FOUR, TOP = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
SIX, LOW = np.uint64(6), np.uint64(63)
PAIRS, FOURS, EIGHTS, ONES = (np.uint64(mask * (2**64 // 255)) for mask in (0x55, 0x33, 0x0F, 0x01))


def marked(words: NDArray[np.uint64], spans: NDArray[Any]) -> NDArray[np.int64]:
    """The vertices that are marked, ascending; words: uint64 (spans, 64), of the spans with these numbers."""
    found = np.empty(int(np.bitwise_count(words).sum()), dtype=np.int64)
    list_marked(words, spans, found)
    return found


def marked_values(words: NDArray[np.uint64], spans: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """The values of the vertices that are marked, in their order; words: as above, values: of all vertices."""
    found = np.empty((int(np.bitwise_count(words).sum()), *values.shape[1:]), dtype=values.dtype)
    take_marked(words, spans, values, found)
    return found


@jit_inlined
def lowest(left: Any) -> Any:
    """The number of the lowest bit: how many lie below it, counted in pairs, fours and eights."""
    below = (left & (~left + ONE)) - ONE
    below = below - ((below >> ONE) & PAIRS)
    below = (below & FOURS) + ((below >> TWO) & FOURS)
    below = (below + (below >> FOUR)) & EIGHTS
    return (below * ONES) >> TOP


@jit
def list_marked(words: NDArray[np.uint64], spans: NDArray[Any], found: NDArray[np.int64]) -> None:
    """Fill `found` with the vertices that are marked."""
    at = 0
    for row in range(len(spans)):
        for column in range(64):
            first = np.uint64(spans[row] * 4096 + column * 64)
            left = words[row, column]
            while left != 0:
                found[at] = first | lowest(left)
                left &= left - ONE
                at += 1


@jit
def take_marked(words: NDArray[np.uint64], spans: NDArray[Any], values: NDArray[Any], found: NDArray[Any]) -> None:
    """Fill `found` with the values of the vertices that are marked."""
    at = 0
    for row in range(len(spans)):
        for column in range(64):
            first = np.uint64(spans[row] * 4096 + column * 64)
            left = words[row, column]
            while left != 0:
                found[at] = values[first | lowest(left)]
                left &= left - ONE
                at += 1


@jit
def put_marked(words: NDArray[np.uint64], spans: NDArray[Any], found: NDArray[Any], values: NDArray[Any]) -> None:
    """Write `found` to the values of the vertices that are marked."""
    at = 0
    for row in range(len(spans)):
        for column in range(64):
            first = np.uint64(spans[row] * 4096 + column * 64)
            left = words[row, column]
            while left != 0:
                values[first | lowest(left)] = found[at]
                left &= left - ONE
                at += 1


@jit
def put_listed(
    ids: NDArray[Any],
    found: NDArray[Any],
    values: NDArray[Any],
    words: NDArray[np.uint64],
    summary: NDArray[np.uint64],
) -> None:
    """Write `found` to the values of listed vertices, and mark these in a bitmap and its summary."""
    for at in range(len(ids)):
        v = np.uint64(ids[at])
        values[v] = found[at]
        word = v >> SIX
        words[word] |= ONE << (v & LOW)
        summary[word >> SIX] |= ONE << (word & LOW)


@jit
def unite_words(words: NDArray[np.uint64], others: NDArray[np.uint64], summary: NDArray[np.uint64]) -> None:
    """Set the bits that any of `others`, uint64 (ranks, words), has set, and the bit of each word that is not empty."""
    for over in range(len(summary)):
        upper = np.uint64(0)
        for column in range(64):
            at = over * 64 + column
            word = words[at]
            for rank in range(len(others)):
                word |= others[rank, at]
            words[at] = word
            upper |= np.uint64(word != 0) << np.uint64(column)
        summary[over] = upper
