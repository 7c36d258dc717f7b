"""Rows as sets of neighbors, compared pair by pair, or with all rows that share a neighbor.

A set of rows is given by `offsets` int64 (rows + 1,) and `neighbors`, in ascending order within a row, each once.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel

JACCARD, OVERLAP, COSINE, COMMON = range(4)
"""Measures by number."""
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


@loop_kernel("sum_neighbor_degrees", grain=1024)
def sum_neighbor_degrees(first_step, end_step, offsets, neighbors, degrees, sums):  # type: ignore[no-untyped-def]
    """sums[row] = the degrees of its neighbors together."""
    for row in range(first_step, end_step):
        total = 0
        for e in range(offsets[row], offsets[row + 1]):
            total += degrees[neighbors[e]]
        sums[row] = total


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
def score(measure, common, size, other_size):  # type: ignore[no-untyped-def]
    """How similar two sets are that have so many members in common."""
    if common == 0:
        return 0.0
    if measure == JACCARD:
        return common / (np.float64(size) + other_size - common)
    if measure == OVERLAP:
        return common / np.float64(min(size, other_size))
    if measure == COSINE:
        return common / np.sqrt(np.float64(size) * other_size)
    return np.float64(common)


@loop_kernel("take_similar", grain=1, counted=True)
def take_similar(first_step, end_step, cuts, ones, others, sizes, order, slots, asked, found):  # type: ignore[no-untyped-def]
    """Count the neighbors that rows share with all others, as far as `others` has these, and take the best at last.

    cuts: first rows of every step. ones: vertices, offsets, neighbors. others: the first vertex, offsets, neighbors of
    the rows against the edges. order: of equals the lowest comes first; no items: the lowest id. slots: starts, counts,
    vertices and common neighbors of what was found so far. asked: measure, whether this is the last part, whether
    neighbors are left out. found: numbers (rows,), vertices and common neighbors (rows, k).
    """
    vertices, offsets, neighbors = ones
    base, other_offsets, other_neighbors = others
    slot_starts, slot_counts, slot_vertices, slot_common = slots
    measure, is_last, without_neighbors = asked
    numbers, best, best_common = found
    common = np.zeros(len(sizes), np.uint32)
    touched = np.empty(len(sizes), neighbors.dtype)
    scores = np.empty(best.shape[1], np.float64)
    for step in range(first_step, end_step):
        for row in range(cuts[step], cuts[step + 1]):
            u, count = vertices[row], 0
            for at in range(slot_starts[row], slot_starts[row] + slot_counts[row]):
                touched[count] = slot_vertices[at]
                common[touched[count]] = slot_common[at]
                count += 1
            for e in range(offsets[row], offsets[row + 1]):
                x = np.int64(neighbors[e]) - base
                if 0 <= x < len(other_offsets) - 1:
                    for at in range(other_offsets[x], other_offsets[x + 1]):
                        w = other_neighbors[at]
                        if w != u:
                            if common[w] == 0:
                                touched[count] = w
                                count += 1
                            common[w] += np.uint32(1)
            if not is_last:
                slot_counts[row] = count
                for at in range(count):
                    slot_vertices[slot_starts[row] + at] = touched[at]
                    slot_common[slot_starts[row] + at] = common[touched[at]]
                    common[touched[at]] = 0
                continue
            if without_neighbors:
                for e in range(offsets[row], offsets[row + 1]):
                    common[neighbors[e]] = 0
            taken = 0
            for at in range(count):
                w = touched[at]
                shared = common[w]
                common[w] = 0
                if shared == 0:
                    continue
                value = score(measure, shared, sizes[u], sizes[w])
                place = taken
                while place > 0 and (
                    value > scores[place - 1]
                    or (
                        value == scores[place - 1]
                        and (w < best[row, place - 1] if len(order) == 0 else order[w] < order[best[row, place - 1]])
                    )
                ):
                    place -= 1
                if place == len(scores):
                    continue
                taken = min(taken + 1, len(scores))
                for late in range(taken - 1, place, -1):
                    scores[late] = scores[late - 1]
                    best[row, late], best_common[row, late] = best[row, late - 1], best_common[row, late - 1]
                scores[place], best[row, place], best_common[row, place] = value, w, shared
            numbers[row] = taken
