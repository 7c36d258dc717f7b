"""Owns ids: which occur, and the compiled map from them to 0..n-1 in ascending order.

Ids are collected as sorted distinct arrays that are merged pair by pair, as in merge sort. A lookup
goes through a *guide*, where each of the ids' leading bit patterns begins, and ends with a binary
search in what little is left (nothing, where ids are dense). Eight bytes an id, and at most eight
of guide; refuses more than its memory.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.format.schema import vertex_dtype

Ids = NDArray[np.uint64]
MERGE_BYTES = 24


def distinct(*parts: NDArray[Any] | None) -> Ids:
    """The ids of some arrays (None: of none), ascending, each once."""
    ids = np.concatenate([part for part in parts if part is not None])
    ids.sort()
    keep = np.ones(len(ids), bool)
    np.not_equal(ids[1:], ids[:-1], out=keep[1:])
    return ids[keep].astype(np.uint64)


class IdSet:
    """All ids that occur. ``limit_bytes`` bounds what collecting and merging them may hold; ``option`` wants them."""

    def __init__(self, limit_bytes: int, option: str = "--renumber") -> None:
        self._limit, self._option = limit_bytes, option
        self._levels: list[Ids] = []
        self._held = 0

    def add(self, ids: Ids) -> None:
        """Add ascending distinct ids.

        Raises:
            InputError: there are more than the memory can hold.
        """
        if len(ids) == 0:
            return
        self._levels.append(ids)
        self._held += len(ids)
        if self._held * MERGE_BYTES > self._limit:
            self.merged()
            self._check()
        while len(self._levels) > 1 and 2 * len(self._levels[-1]) > len(self._levels[-2]):
            self._merge()

    def merged(self) -> Ids:
        """All ids, ascending, each once."""
        while len(self._levels) > 1:
            self._merge()
        return self._levels[0] if self._levels else np.empty(0, np.uint64)

    def _merge(self) -> None:
        small, large = self._levels.pop(), self._levels.pop()
        merged = np.empty(len(small) + len(large), np.uint64)
        count = merge_distinct(small, large, merged)
        if count < len(merged):
            merged = merged[:count].copy()
        self._held += count - len(small) - len(large)
        self._levels.append(merged)

    def _check(self) -> None:
        needed = self._held * MERGE_BYTES
        if needed > self._limit:
            raise InputError(
                f"{self._option}: the map of {self._held} different ids and more needs at least "
                f"{format_bytes(needed)} while it is made, and may have "
                f"{format_bytes(self._limit)}; raise --host-memory"
            )


@jit
def merge_distinct(a: Ids, b: Ids, merged: Ids) -> int:
    """Merge two ascending arrays of distinct ids; return how many distinct ones there are."""
    i = 0
    j = 0
    count = 0
    while i < len(a) and j < len(b):
        left = a[i]
        right = b[j]
        merged[count] = min(left, right)
        count += 1
        if left <= right:
            i += 1
        if right <= left:
            j += 1
    while i < len(a):
        merged[count] = a[i]
        count += 1
        i += 1
    while j < len(b):
        merged[count] = b[j]
        count += 1
        j += 1
    return count


class IdMap:
    """From ids to positions in the ascending array ``ids``."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.dtype = np.dtype(np.uint32 if len(ids) <= 1 << 32 else np.uint64)
        spread = int(ids[-1] - ids[0]).bit_length() if len(ids) else 0
        guide_bits = min(spread, len(ids).bit_length())
        self._shift = spread - guide_bits
        slots = np.empty((1 << guide_bits) + 1, self.dtype if len(ids) else np.uint32)
        fill_guide(ids, self._shift, slots)
        self._guide = slots

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """Positions of ``values``, each of which must be one of ``ids``."""
        found = np.empty(len(values), self.dtype)
        if len(values):
            look_up(values, self.ids, self._guide, self._shift, found)
        return found

    def narrow_ids(self) -> NDArray[Any]:
        """The ids, as uint32 where that holds all."""
        return self.ids.astype(vertex_dtype(int(self.ids[-1]) + 1 if len(self.ids) else 0), copy=False)

    def first_other(self, values: NDArray[Any]) -> int:
        """Return where the first value is that is none of ``ids``, or -1."""
        if len(values) == 0 or len(self.ids) == 0:
            return 0 if len(values) else -1
        others = (values < self.ids[0]) | (values > self.ids[-1])
        if not others.any():
            others = self.ids[self(values)] != values
        return int(np.argmax(others)) if others.any() else -1


@jit
def fill_guide(ids: Ids, shift: int, guide: NDArray[Any]) -> None:
    """``guide[p]`` = the first position whose id has leading pattern p or more."""
    move = np.uint64(shift)
    at = 0
    for pattern in range(len(guide) - 1):
        while at < len(ids) and (ids[at] - ids[0]) >> move < np.uint64(pattern):
            at += 1
        guide[pattern] = at
    guide[len(guide) - 1] = len(ids)


@jit
def look_up(values: NDArray[Any], ids: Ids, guide: NDArray[Any], shift: int, found: NDArray[Any]) -> None:
    """Positions of values in ascending ids."""
    move = np.uint64(shift)
    base = ids[0]
    for i in range(len(values)):
        value = np.uint64(values[i])
        pattern = (value - base) >> move
        low = np.int64(guide[pattern])
        high = np.int64(guide[pattern + np.uint64(1)])
        while high - low > 1:
            middle = (low + high) >> 1
            if ids[middle] <= value:
                low = middle
            else:
                high = middle
        found[i] = low
