"""Counts, extremes and sums of a column of results, and the few rows that come first by a key.

Passes copy no more than a range of the rows; nothing is sorted whole.

A sum is NumPy's, to the bit: pairwise over all present values (Higham, SIAM J. Sci. Comput. 1993), whose tree is
followed here down to pieces that NumPy adds up itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.threads import ROWS, map_rows, ranges


def present_rows(values: NDArray[Any], absent: Any) -> NDArray[np.bool_] | None:
    """Which rows have a value, None where all have one; `absent` is what stands for none (None: nothing does)."""
    if absent is None:
        return None
    present = np.asarray(values != absent)
    return None if present.all() else present


def present_values(values: NDArray[Any], absent: Any) -> NDArray[Any]:
    """The values of the rows that have one."""
    present = present_rows(values, absent)
    return values if present is None else values[present]


Found = TypeVar("Found")
TURNS = 512
"""Of how many times that a thread is asked: to ask one takes as long as NumPy has a range of an array."""
RANGE_BYTES = 1 << 21
"""Of a range of many values: in shorter ones threads wait for each other, since one at a time runs Python's code."""


def _range_rows(values: Any) -> int:
    """Numbers of a range, whole bytes of bits; of pages no more than one, else more are wanted than have room."""
    rows: int = max(ROWS, min(RANGE_BYTES // values.dtype.itemsize, len(values) // TURNS)) // 8 * 8
    return min(rows, int(getattr(values, "page_rows", rows)))


def each_part(
    function: Callable[[NDArray[Any], int], Found],
    values: Any,
    threads: int | None,
    parts: list[tuple[int, int]] | None = None,
) -> list[Found]:
    """Return what function(values of a part, the first one's place) does, of all parts in order.

    Of values in a file (`PagedValues`) a part is what comes at once, unless others are given, and is not copied.
    """
    paged = hasattr(values, "at_hand")
    parts = parts or ranges(len(values), values.page_rows if paged else _range_rows(values))
    together = 1 if paged else max(1, len(parts) // TURNS)

    def several(first: int, last: int) -> list[Found]:
        found = []
        for part in parts[first:last]:
            with values.at_hand(*part) if paged else nullcontext(values[slice(*part)]) as some:
                found.append(function(some, part[0]))
        return found

    return [*chain.from_iterable(map_rows(several, len(parts), threads=threads, size=together))]


def count_present(values: NDArray[Any], absent: Any, *, threads: int | None = None) -> int:
    """How many rows have a value."""
    if absent is None:
        return len(values)
    return sum(each_part(lambda some, _: int(np.count_nonzero(some != absent)), values, threads))


def count_nonzero(values: NDArray[Any], absent: Any = None, *, threads: int | None = None) -> tuple[int, int]:
    """Count rows that have a value, and those whose value is not 0."""

    def count(some: NDArray[Any], _: int) -> tuple[int, int]:
        found = present_values(some, absent)
        return len(found), int(np.count_nonzero(found))

    parts = each_part(count, values, threads)
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


@dataclass(frozen=True)
class ColumnFacts:
    """How many rows have a value, the least and the largest number: NaN where there is one, None without any.

    total: the sum of floats, which is NumPy's to the bit; None of other numbers, and where it was not asked for.
    """

    present: int
    least: Any
    largest: Any
    total: Any


def facts_of(
    values: NDArray[Any], absent: Any, *, threads: int | None = None, size: int | None = None, twice: bool = True
) -> ColumnFacts:
    """Sum up a column in one pass; floats of which some are absent in two (twice=False: without their sum)."""
    flat, adds = values if values.ndim == 1 else values.reshape(-1), values.dtype.kind == "f"
    size = min(size or len(flat), _range_rows(flat))
    leaves = _leaves(0, len(flat), size)

    def find(found: NDArray[Any], _: int) -> tuple[int, Any, Any, Any]:
        present = None if absent is None else found != absent
        count = len(found) if present is None else int(np.count_nonzero(present))
        total = _added(found) if adds and count == len(found) else None
        if present is None or count in (0, len(found)):
            return (count, found.min(), found.max(), total) if count else (0, None, None, total)
        return count, *_present_extremes(found, present, absent), total

    parts = each_part(find, flat, threads, leaves)
    ends = np.cumsum([part[0] for part in parts], dtype=np.int64)
    count, total = int(ends[-1]), None
    if adds and isinstance(values, np.ndarray) and not values.flags.c_contiguous:
        total = _added(present_values(values, absent), None)
    elif adds and count == len(flat):
        total = _folded(count, (part[3] for part in parts), size)
    elif adds and twice:
        pieces = _leaves(0, count, size)

        def add(number: int, _: int) -> Any:
            return _added(_compacted(flat, absent, leaves, ends, pieces[number]))

        total = _folded(count, map_rows(add, len(pieces), threads=threads, size=1), size)
    least, largest = (np.array([part[at] for part in parts if part[0]]) for at in (1, 2))
    rows = len(values) if absent is None else count
    return ColumnFacts(rows, least.min(), largest.max(), total) if count else ColumnFacts(rows, None, None, total)


def _present_extremes(values: NDArray[Any], present: NDArray[np.bool_], absent: Any) -> tuple[Any, Any]:
    """The least and the largest of the present values; some others are absent."""
    least, largest = values.min(), values.max()
    if largest == absent:  # 0 in place of the absent values takes a fifth of the time that choosing takes
        bits = values.view(f"u{values.itemsize}")
        largest = (bits * present).view(values.dtype).max()
        if least != absent and largest > 0:
            return least, largest
    elif least != absent:
        return least, largest
    found = np.where(present, values, values[present.argmax()])
    return found.min(), found.max()


def _compacted(
    flat: NDArray[Any], absent: Any, parts: list[tuple[int, int]], ends: NDArray[np.int64], wanted: tuple[int, int]
) -> NDArray[Any]:
    """The present numbers from the first to before the last of `wanted`, counted without the absent ones.

    ends: how many are present up to the end of each part.
    """
    first, last = wanted
    begin = int(np.searchsorted(ends, first, "right"))
    end = int(np.searchsorted(ends, last, "left")) + 1
    before = int(ends[begin - 1]) if begin else 0
    pieces = [present_values(flat[a:b], absent) for a, b in parts[begin:end]]
    found = np.concatenate(pieces) if pieces else flat[:0]
    return found[first - before : last - before]


def _halves(count: int) -> int:
    """How many of so many numbers NumPy adds up first."""
    half = count // 2
    return half - half % 8


def _leaves(first: int, count: int, size: int) -> list[tuple[int, int]]:
    """The ranges of numbers that NumPy adds up itself, in order."""
    if count <= size:
        return [(first, first + count)]
    half = _halves(count)
    return [*_leaves(first, half, size), *_leaves(first + half, count - half, size)]


def _added(values: NDArray[Any], axis: int | None = 0) -> Any:
    """The sum of floats: infinite where the largest float is less, and NaN of both infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.reduce(values, axis=axis)


def _folded(count: int, sums: Iterator[Any], size: int) -> Any:
    """The sum of the leaves' sums, in NumPy's order."""
    if count <= size:
        return next(sums)
    half = _halves(count)
    left, right = _folded(half, sums, size), _folded(count - half, sums, size)
    with np.errstate(over="ignore", invalid="ignore"):
        return left + right


Keys = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Keys, what decides between equal ones, and rows; of one length, by ascending row."""


def first_rows(
    keys_of: Callable[[int, int], Keys], rows: int, count: int, *, threads: int | None = None, size: int = ROWS
) -> Keys:
    """Return the `count` rows with the smallest keys, the first one first; NaN comes last.

    Parameters
    ----------
    keys_of : callable
        The `Keys` of a range of rows; rows that do not take part are left out. Called by several threads.
    rows : int
        How many rows there are.
    count : int
        How many to return at most.
    threads : int, optional
        Most threads; default: every core.
    size : int
        Rows of a range.
    """
    limit: list[Any] = []  # key and tie, beyond which none is among the first, once a range has so many

    def least(first: int, last: int) -> Keys:
        found = keys_of(first, last)
        if limit:
            worst, tie = limit[0]
            before = (found[0] < worst) | ((found[0] == worst) & (found[1] <= tie))
            found = _taken(found, np.flatnonzero(before))
        found = _taken(found, _least(found[0], found[1], count))
        if len(found[0]) >= count > 0:
            worst = found[0].max()  # NaN where one is among them, and then no bound
            bound = worst, found[1].max(where=found[0] == worst, initial=0)
            if worst == worst and (not limit or bound < limit[0]):
                limit[:] = [bound]
        return found

    parts = list(map_rows(least, rows, threads=threads, size=size))
    if not parts:
        return _taken(keys_of(0, 0), np.empty(0, np.intp))
    keys, ties, places = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _taken((keys, ties, places), np.lexsort((ties, keys))[:count])


def _taken(found: Keys, places: NDArray[np.intp]) -> Keys:
    return found[0][places], found[1][places], found[2][places]


def _least(keys: NDArray[Any], ties: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Where the `count` smallest keys are, in ascending order of places."""
    if count == 0 or len(keys) <= count:
        return np.arange(min(len(keys), count))
    last = np.partition(keys, count - 1)[count - 1]
    before, same = (~np.isnan(keys), np.isnan(keys)) if last != last else (keys < last, keys == last)
    sure, equal = np.flatnonzero(before), np.flatnonzero(same)
    missing = count - len(sure)
    if missing < len(equal):
        equal = equal[np.argpartition(ties[equal], missing - 1)[:missing]]
    return np.sort(np.concatenate([sure, equal]))
