"""Owns the order of names: by their bytes, compiled.

Sorting goes by eight bytes at a time, the most significant first, and only within what is equal so
far (multikey quicksort after Bentley and Sedgewick, SODA 1997, with words for characters). No name holds a
zero byte and none comes twice, so a name that ends counts as zeros and nothing is ever equal to the end.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.encoding.string_array import comes_before

_SMALL = 12


def sorted_order(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of distinct names in the order of their bytes."""
    order = np.arange(len(ends), dtype=np.int64)
    if len(ends):
        sort_words(text, ends, order, np.empty(len(ends), np.uint64))
    return order


@jit
def word_at(text: NDArray[np.uint8], start: int, end: int) -> Any:
    """The first eight bytes from ``start``, the first most significant; zeros from ``end`` on."""
    word = np.uint64(0)
    for i in range(8):
        byte = np.uint64(text[start + i]) if start + i < end else np.uint64(0)
        word = (word << np.uint64(8)) | byte
    return word


@jit
def sort_words(
    text: NDArray[np.uint8], ends: NDArray[np.int64], order: NDArray[np.int64], words: NDArray[np.uint64]
) -> None:
    """Sort ``order``, numbers of names; ``words`` is room for as many: eight bytes of each from some depth on."""
    pending = np.empty((len(order) // _SMALL + 64, 4), np.int64)
    pending[0, 0], pending[0, 1], pending[0, 2], pending[0, 3] = 0, len(order), 0, 1
    top = 1
    while top > 0:
        top -= 1
        low, high, depth = pending[top, 0], pending[top, 1], pending[top, 2]
        if pending[top, 3] == 1:
            for i in range(low, high):
                name = order[i]
                words[i] = word_at(text, (ends[name - 1] if name > 0 else 0) + depth, ends[name])
        if high - low <= _SMALL:
            _insertion(text, ends, order, low, high, depth)
            continue
        below, above = _divide(order, words, low, high)
        for part in range(3):
            start = low if part == 0 else below if part == 1 else above
            stop = below if part == 0 else above if part == 1 else high
            if stop - start <= _SMALL:
                _insertion(text, ends, order, start, stop, depth)
                continue
            pending[top, 0], pending[top, 1] = start, stop
            pending[top, 2] = depth + 8 if part == 1 else depth
            pending[top, 3] = 1 if part == 1 else 0
            top += 1


@jit
def _divide(order: NDArray[np.int64], words: NDArray[np.uint64], low: int, high: int) -> tuple[int, int]:
    """Put what is below a middle word before it and what is above behind it; return where those equal begin and end."""
    one, middle, other = words[low], words[(low + high) >> 1], words[high - 1]
    pivot = max(min(one, middle), min(max(one, middle), other))
    below, at, above = low, low, high
    while at < above:
        word = words[at]
        if word < pivot:
            words[at], words[below] = words[below], word
            order[at], order[below] = order[below], order[at]
            below += 1
            at += 1
        elif word > pivot:
            above -= 1
            words[at], words[above] = words[above], word
            order[at], order[above] = order[above], order[at]
        else:
            at += 1
    return below, above


@jit
def _insertion(
    text: NDArray[np.uint8], ends: NDArray[np.int64], order: NDArray[np.int64], low: int, high: int, depth: int
) -> None:
    for i in range(low + 1, high):
        name = order[i]
        start = (ends[name - 1] if name > 0 else 0) + depth
        j = i
        while j > low:
            other = order[j - 1]
            other_start = (ends[other - 1] if other > 0 else 0) + depth
            if not comes_before(text, start, ends[name], text, other_start, ends[other]):
                break
            order[j] = other
            j -= 1
        order[j] = name
