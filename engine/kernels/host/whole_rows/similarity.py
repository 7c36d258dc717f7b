"""Rows as sets of neighbors, compared pair by pair, or with all rows that share a neighbor.

A set of rows is given by `offsets` int64 (rows + 1,) and `neighbors`, in ascending order within a row, each once.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel

JACCARD, OVERLAP, COSINE, COMMON = range(4)
"""Measures by number."""
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
UNEVEN = 16
"""A row so many times as long as the other is searched instead of walked."""


@kernel("copy_row_parts")
def copy_row_parts(part, first, begins, ends, offsets, neighbors):  # type: ignore[no-untyped-def]
    """Copy what `part`, the edges from `first` on, has of the rows [begins, ends) to their places."""
    last = first + len(part)
    for row in range(len(begins)):
        low, high = max(begins[row], first), min(ends[row], last)
        to = offsets[row] - begins[row]
        for e in range(low, high):
            neighbors[to + e] = part[e - first]


@loop_kernel("clean_rows", grain=1024, counted=True)
def clean_rows(first_step, end_step, vertices, offsets, neighbors, lengths):  # type: ignore[no-untyped-def]
    """Put the distinct neighbors of each row at its beginning, ascending and without its vertex; count them."""
    for row in range(first_step, end_step):
        low, high = offsets[row], offsets[row + 1]
        for e in range(low + 1, high):
            if neighbors[e] < neighbors[e - 1]:
                neighbors[low:high].sort()
                break
        kept = low
        for e in range(low, high):
            w = neighbors[e]
            if w != vertices[row] and (kept == low or neighbors[kept - 1] != w):
                neighbors[kept] = w
                kept += 1
        lengths[row] = kept - low


@kernel("pack_rows")
def pack_rows(offsets, lengths, neighbors):  # type: ignore[no-untyped-def]
    """Move the rows together; `offsets` are those of before."""
    at = 0
    for row in range(len(lengths)):
        low = offsets[row]
        offsets[row] = at
        for e in range(lengths[row]):
            neighbors[at + e] = neighbors[low + e]
        at += lengths[row]
    offsets[len(lengths)] = at


@inline
def count_shared(neighbors, low, high, others, begin, end):  # type: ignore[no-untyped-def]
    """How many of neighbors[low:high] are in others[begin:end], which is not the shorter one."""
    found = 0
    if (high - low) * UNEVEN < end - begin:
        for e in range(low, high):
            wanted, stop = neighbors[e], end
            while begin < stop:
                middle = (begin + stop) // 2
                if others[middle] < wanted:
                    begin = middle + 1
                else:
                    stop = middle
            if begin < end and others[begin] == wanted:
                found += 1
        return found
    while low < high and begin < end:
        one, other = neighbors[low], others[begin]
        found += 1 if one == other else 0
        low += 1 if one <= other else 0
        begin += 1 if other <= one else 0
    return found


@loop_kernel("count_common", grain=256)
def count_common(first_step, end_step, ones, others, rows, common):  # type: ignore[no-untyped-def]
    """common[pair]; rows (pairs, 2): of `ones` and of `others`, their offsets and neighbors."""
    offsets, neighbors = ones
    other_offsets, other_neighbors = others
    for pair in range(first_step, end_step):
        low, high = offsets[rows[pair, 0]], offsets[rows[pair, 0] + 1]
        begin, end = other_offsets[rows[pair, 1]], other_offsets[rows[pair, 1] + 1]
        if high - low <= end - begin:
            common[pair] = count_shared(neighbors, low, high, other_neighbors, begin, end)
        else:
            common[pair] = count_shared(other_neighbors, begin, end, neighbors, low, high)


@inline
def wide_product(square, size):  # type: ignore[no-untyped-def]
    """The product of numbers up to 2**64 and 2**32, as what is above its last 32 bits, and these."""
    low = (square & LOW) * size
    return (square >> HALF) * size + (low >> HALF), low & LOW


@inline
def compare(measure, size, one, other):  # type: ignore[no-untyped-def]
    """1 where the first of two sets is more similar to a set of this size, 0 where both are equally so, else -1.

    one, other: members in common with it, and size, below 2**31 and 2**32. In integers, since a score is rounded: each
    score times what is positive in both denominators.
    """
    mine, common, width = np.uint64(size), np.uint64(one[0]), np.uint64(one[1])
    other_common, other_width = np.uint64(other[0]), np.uint64(other[1])
    if measure == JACCARD:
        left, right = common * (mine + other_width), other_common * (mine + width)
    elif measure == OVERLAP:
        left, right = common * min(mine, other_width), other_common * min(mine, width)
    elif measure == COSINE:
        left, low = wide_product(common * common, other_width)
        right, other_low = wide_product(other_common * other_common, width)
        if left == right:
            left, right = low, other_low
    else:
        left, right = common, other_common
    return 1 if left > right else 0 if left == right else -1


@inline
def score(measure, common, size, other_size):  # type: ignore[no-untyped-def]
    """How similar two sets are that have so many members in common; of cosine the square, which has the same order."""
    if common == 0:
        return 0.0
    if measure == JACCARD:
        return common / (np.float64(size) + other_size - common)
    if measure == OVERLAP:
        return common / np.float64(min(size, other_size))
    if measure == COSINE:
        return np.float64(common) * common / (np.float64(size) * other_size)
    return np.float64(common)
