"""Passes over all vertices, range by range on all cores: what is computed on the way is as small as a range.

For what programs compute between iterations with NumPy (`start`, `phases`, `finish`), in memory that `working_bytes`
does not count, and as fast as memory is. Small graphs need no other thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.jit import jit
from penstock.storage.base.threads import map_rows

Found = TypeVar("Found")
ROWS = 1 << 15
"""Vertices of a range: its copies fit a core's cache, and NumPy's calls take longer than Python's."""
MANY_ROWS = 1 << 18
"""Vertices of a range where that is looked at once and copied little: a thousand calls take 30 ms."""
ALONE = 1 << 20
"""Vertices up to which the caller's thread is enough: to start others, and to ask how many may be, takes as long."""
CHEAP = 4
"""Times as many where a vertex takes 0.1 ns: 2.25 M take 0.2 ms on one thread, 2.3 on two with what starts them."""
PASSES = 64
"""Passes at most over values in a file that are written in any order."""
THREADS = 4
"""Most threads: so many keep the memory busy, and copies are bounded."""


def over_ranges(
    function: Callable[[int, int], Found], vertices: int, *, size: int = ROWS, alone: int = ALONE
) -> Iterator[Found]:
    """Yield function(first, last) of every range of `size` vertices in order, by several threads if there are many."""
    threads = 1 if vertices <= alone else min(cores(), THREADS)
    return map_rows(function, vertices, threads=threads, size=size)


def each_range(function: Callable[[int, int], None], vertices: int, *, size: int = ROWS) -> None:
    """Call function(first, last) for every range of `size` vertices, from several threads."""
    for _ in over_ranges(function, vertices, size=size):
        pass


def is_any(values: NDArray[Any], wanted: Any) -> bool:
    """Whether one of the values of all vertices is this one."""
    found = over_ranges(
        lambda a, b: bool((values[a:b] == wanted).any()), len(values), size=MANY_ROWS, alone=CHEAP * ALONE
    )
    return any(found)


def mask_of(function: Callable[[int, int], NDArray[np.bool_]], vertices: int) -> NDArray[np.bool_]:
    """Bool (vertices,): what function(first, last) says of every range."""
    found = np.empty(vertices, np.bool_)

    def fill(first: int, last: int) -> None:
        found[first:last] = function(first, last)

    each_range(fill, vertices)
    return found


def set_where(values: NDArray[Any], function: Callable[[int, int], NDArray[np.bool_]], value: Any) -> None:
    """Set the values where function(first, last) is True, range by range."""

    def fill(first: int, last: int) -> None:
        places = first + np.flatnonzero(function(first, last))
        if len(places):
            values[places] = value

    each_range(fill, len(values))


@jit
def _count_up(values: Any, first: int) -> None:
    for at in range(len(values)):
        values[at] = first + at


def number_all(values: NDArray[Any]) -> None:
    """Set every value to its place, as compiled code does: NumPy takes twice as long, and makes each range twice."""
    each_range(lambda first, last: _count_up(values[first:last], first), len(values), size=ALONE)


def number_places(out: NDArray[Any], places: Callable[[int, int], NDArray[Any]], first: int = 0) -> None:
    """Set `out` at the places that function(a, b) gives for a range of numbers to these, from `first` on."""

    def fill(a: int, b: int) -> None:
        out[places(a, b)] = np.arange(first + a, first + b, dtype=out.dtype)

    if isinstance(out, np.ndarray):
        each_range(fill, len(out))
        return
    size = max(ROWS, len(out) // PASSES)
    for a in range(0, len(out), size):
        fill(a, min(a + size, len(out)))


class Mask:
    """What function(first, last) says of ranges, asked where it is read: a frontier that takes no memory."""

    dtype = np.dtype(np.bool_)

    def __init__(self, function: Callable[[int, int], NDArray[np.bool_]], vertices: int) -> None:
        self._function, self._vertices = function, vertices

    def __len__(self) -> int:
        """How many vertices there are."""
        return self._vertices

    def __getitem__(self, rows: slice) -> NDArray[np.bool_]:
        """What is said of a range."""
        return self._function(*rows.indices(self._vertices)[:2])


SORTED_PARTS = 8
"""Parts in which many vertices are sorted: each takes memory for itself."""
SAMPLED = 1 << 16
"""Vertices whose values tell where the parts begin."""


def order_by(values: Callable[[int, int], NDArray[Any]], out: NDArray[Any]) -> None:
    """Set `out`, integers (vertices,), to the vertices by ascending value, of equal ones the first vertex first.

    values: those of a range; called again for each part, so that no value is held but those of a part, and no NaN.
    """
    if len(out) == 0:
        return
    parts, step = 1 if len(out) <= ALONE else SORTED_PARTS, max(1, len(out) // SAMPLED)

    def between(low: Any, end: Any, first: int, last: int) -> tuple[NDArray[Any], NDArray[Any]]:
        found, vertices = values(first, last), np.arange(first, last, dtype=out.dtype)
        inside = np.ones(len(found), np.bool_) if low is None else found >= low
        if end is not None:
            inside &= found < end
        return found[inside], vertices[inside]

    sample = np.sort(np.concatenate([*over_ranges(lambda a, b: values(a, b)[::step], len(out), size=MANY_ROWS)]))
    at = 0
    for low, end in pairwise([None, *(sample[len(sample) * part // parts] for part in range(1, parts)), None]):
        pieces = [*over_ranges(partial(between, low, end), len(out), size=MANY_ROWS)]
        found, vertices = (np.concatenate(column) for column in zip(*pieces, strict=True))
        del pieces
        out[at : at + len(found)] = vertices[np.argsort(found, kind="stable")]
        at += len(found)


def limited_ranges(sums: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Cut rows into consecutive ranges [first, last) of at most `most` in all, but at least one row.

    sums: int64 (rows + 1,), what the rows before each have together.
    """
    found, first = [], 0
    while first < len(sums) - 1:
        last = max(first + 1, int(np.searchsorted(sums, sums[first] + most, side="right")) - 1)
        found.append((first, last))
        first = last
    return found


def absolute_sum(values: NDArray[Any]) -> float:
    """The sum of the absolute values, added up in NumPy's order (pairwise) without a copy of all."""
    return _sum_of(np.abs, values, 0, len(values))


def l2_norm(values: NDArray[Any]) -> float:
    """The root of the sum of the squares, added up in the same order."""
    return math.sqrt(_sum_of(np.square, values, 0, len(values)))


def _sum_of(function: np.ufunc, values: NDArray[Any], first: int, last: int) -> float:
    """The sum of a function of the values of a range."""
    if last - first <= ROWS:
        return float(function(values[first:last]).sum())
    half = (last - first) // 2
    half -= half % 8
    return _sum_of(function, values, first, first + half) + _sum_of(function, values, first + half, last)
