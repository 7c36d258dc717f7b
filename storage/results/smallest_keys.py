"""The few rows that come first by a key, found without sorting all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.parallel_map import ROWS, map_rows

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
    limit: list[Any] = []  # an upper bound of the keys that can still be among the first, once a range has so many

    def least(first: int, last: int) -> Keys:
        found = keys_of(first, last)
        if limit:
            found = _taken(found, np.flatnonzero(found[0] <= limit[0]))
        found = _taken(found, _least(found[0], found[1], count))
        if len(found[0]) >= count > 0:
            worst = found[0].max()  # NaN where one is among them, and then no bound
            if worst == worst and (not limit or worst < limit[0]):
                limit[:] = [worst]
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
