"""Plain Python functions that the compilers of the host and of a GPU both compile.

`sort_in_place` is what an author's `incoming.sort()` is on a GPU, for one thread: numba-cuda has no sort. The rows of a
program that sorts them have been sorted by all threads before (`cuda/whole_rows/sort.py`), so a look whether they are
in order is all that is left, unless the author changed them. Heapsort (Williams, CACM 1964) needs neither recursion nor
memory. NaNs come last, as NumPy has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ONE = np.uint64(1)
INT_ONE = np.int64(1)
FIVE = np.int64(5)
EIGHT = np.int64(8)
LOW = np.int64(31)
ALL = np.uint64(0xFFFFFFFF)
EMPTY = np.uint32(0)


def row_start(index, v):  # type: ignore[no-untyped-def]
    """Return the number of the first edge of row `v` (uint64), as int64; index: bases, offsets, shift."""
    bases, offsets, shift = index
    return bases[v >> shift] + offsets[v]


def make_degree_of(row_start: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the number of edges in row `v` (uint64)."""

    def degree_of(index, v):  # type: ignore[no-untyped-def]
        return row_start(index, v + ONE) - row_start(index, v)

    return degree_of


def make_find_row(row_start: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the row in [first, last) that owns `edge`: the last one that starts at or before it."""

    def find_row(index, first, last, edge):  # type: ignore[no-untyped-def]
        low, high = np.uint64(first), np.uint64(last) - ONE
        while low < high:
            middle = (low + high + ONE) >> ONE
            if row_start(index, middle) <= edge:
                low = middle
            else:
                high = middle - ONE
        return low

    return find_row


def make_with_sent(tells_sent: bool) -> Callable[..., Any]:
    """Return a function for the scalars, and behind them what a vertex has sent where `Author.tells_sent`."""
    if not tells_sent:
        return lambda scalars, sent, at: scalars
    return lambda scalars, sent, at: scalars + (sent[at],)  # noqa: RUF005


def make_mark_blocks(add: Any, or_: Any, lowest_bit: Any, pop_count: Any) -> Callable[..., Any]:
    """Return a function that marks the blocks of 256 edges that row [start, end) touches, in a bitmap of 32-bit words.

    What was not marked before is added to the partitions in which these blocks begin: table[4 * partition + 3]. add,
    or_: atomics; lowest_bit, pop_count: of a uint32, as uint64 and int64.
    """

    def mark_blocks(start, end, partition_edges, table, blocks):  # type: ignore[no-untyped-def]
        first, last = start >> EIGHT, (end - INT_ONE) >> EIGHT
        for word in range(first >> FIVE, (last >> FIVE) + INT_ONE):
            begin = np.int64(word) << FIVE
            low, high = max(first, begin) - begin, min(last, begin + LOW) - begin
            wanted = np.uint32((ALL >> np.uint64(LOW - (high - low))) << np.uint64(low))
            new = np.uint32(wanted & ~blocks[np.uint64(word)])
            if new != EMPTY:
                new = np.uint32(new & ~or_(blocks, np.uint64(word), new))
            while new != EMPTY:
                partition = ((begin + np.int64(lowest_bit(new))) << EIGHT) // partition_edges
                after = (((partition + INT_ONE) * partition_edges - INT_ONE) >> EIGHT) - begin
                here = np.uint32(new & np.uint32(ALL >> np.uint64(LOW - min(LOW, after))))
                add(table, np.uint64(partition * np.int64(4) + np.int64(3)), pop_count(here))
                new = np.uint32(new ^ here)

    return mark_blocks


def find_part(offsets, first, last, edge):  # type: ignore[no-untyped-def]
    """Return the row part in [first, last] that owns an edge of a compacted view: the last one that starts by it."""
    low, high = first, last
    while low < high:
        middle = (low + high + np.int64(1)) >> np.int64(1)
        if np.int64(offsets[middle]) <= edge:
            low = middle
        else:
            high = middle - np.int64(1)
    return low


def make_combine(changes: Callable[..., Any], atomic: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that combines a value into target[at] atomically and returns whether that changes it."""

    def combine(target, at, value):  # type: ignore[no-untyped-def]
        return changes(target[at], value) and changes(atomic(target, at, value), value)

    return combine


def make_combine_alone(changes: Callable[..., Any], merge: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same where only one thread writes."""

    def combine(target, at, value):  # type: ignore[no-untyped-def]
        old = target[at]
        if changes(old, value):
            target[at] = merge(old, value)
            return True
        return False

    return combine


def sort_in_place(values):  # type: ignore[no-untyped-def]
    """Sort a one-dimensional array, ascending."""
    ordered = True
    for at in range(1, len(values)):
        one, other = values[at - 1], values[at]
        ordered &= not (other < one or (one != one and other == other))
    if ordered:
        return
    root, end = len(values) >> 1, len(values)
    while end > 1:
        if root > 0:  # first make a heap, from its last parent up
            root -= 1
            top = root
        else:  # then take the largest away, again and again
            end -= 1
            values[end], values[0] = values[0], values[end]
            top = 0
        child = 2 * top + 1
        while child < end:
            if child + 1 < end:
                one, other = values[child], values[child + 1]
                if one < other or (other != other and one == one):
                    child += 1
            one, other = values[top], values[child]
            if not (one < other or (other != other and one == one)):
                break
            values[top], values[child] = other, one
            top = child
            child = 2 * top + 1
