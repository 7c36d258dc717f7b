"""A pool of ranges, the aligned arrays that they are in, and memory that is only reserved.

A range that is not taken cannot be given back: a slab freed twice would go to two readers at once.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 4096
MAP_NORESERVE = 0x4000
"""Linux's; `mmap` has no name for it before Python 3.13. Address space then counts as memory where it is touched."""
HUGE_PAGE = 2 << 20
"""A larger array that begins at a multiple of this can be in huge pages from its first byte."""


def aligned_empty(count: int, dtype: DTypeLike, alignment: int = ALIGNMENT) -> NDArray[Any]:
    """Return `count` uninitialized items, aligned; pages are touched when written."""
    kind = np.dtype(dtype)
    raw = np.empty(count * kind.itemsize + alignment, dtype=np.uint8)
    skip = -raw.ctypes.data % alignment
    return raw[skip : skip + count * kind.itemsize].view(kind)


def reserved(size: int) -> mmap.mmap:
    """Return zeros, of which only those that are touched take memory, however small. Raises MemoryError."""
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
    except OSError as error:
        raise MemoryError(f"{size} bytes could not be reserved: {error.strerror}") from error


class ReservedArray:
    """An array of zeros in reserved address space, from a multiple of HUGE_PAGE on; `values` are its items.

    dtype: of an item, which may be a vector (`np.dtype((number, shape))`). huge: whether it lies in huge pages, where
    the system has them.
    Raises MemoryError where so much address space cannot be had.
    """

    def __init__(self, count: int, dtype: DTypeLike, *, huge: bool) -> None:
        kind = np.dtype(dtype)
        self._space = reserved(-(-count * kind.itemsize // ALIGNMENT) * ALIGNMENT + HUGE_PAGE)
        self._begin = -np.frombuffer(self._space, np.uint8).ctypes.data % HUGE_PAGE
        if huge:
            with suppress(OSError):  # a system without huge pages
                self._space.madvise(mmap.MADV_HUGEPAGE)
        self.kind = kind
        self.values: NDArray[Any] = np.frombuffer(self._space, kind, count, self._begin)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Where the items first..last-1 lie in the space, in whole pages of ALIGNMENT bytes."""
        size, ends = self.kind.itemsize, min(last, len(self.values))
        begin, end = first * size // ALIGNMENT, -(-ends * size // ALIGNMENT)
        return self._begin + begin * ALIGNMENT, self._begin + end * ALIGNMENT

    def memory(self, first: int, last: int) -> memoryview:
        """The bytes of `span`."""
        begin, end = self.span(first, last)
        return memoryview(self._space)[begin:end]

    def back(self, first: int, last: int) -> None:
        """Do nothing: an item has memory from when it is written."""

    def forget(self, first: int, last: int) -> None:
        """Give the memory of `span` back; what is there is 0 then."""
        begin, end = self.span(first, last)
        self._space.madvise(mmap.MADV_DONTNEED, begin, end - begin)


class RangePool:
    """`count` items, all free at first; the lowest gap that is long enough goes first, to keep runs together."""

    def __init__(self, count: int) -> None:
        self.count = self.free = count
        self._gaps: list[tuple[int, int]] = [(0, count)] if count else []
        self._taken: dict[int, int] = {}

    def take(self, length: int) -> int | None:
        """Take `length` items, at least one, and return the first; None where no gap is so long."""
        for at, (first, room) in enumerate(self._gaps):
            if room >= length:
                self._gaps[at : at + 1] = [(first + length, room - length)] if room > length else []
                self._taken[first] = length
                self.free -= length
                return first
        return None

    def give(self, first: int) -> None:
        """Give back the range that begins at item `first`, and join it with the gaps beside it."""
        if first not in self._taken:
            raise ValueError(f"the range at {first} of {self.count} is given back but is not taken")
        length = self._taken.pop(first)
        self.free += length
        at = bisect_left(self._gaps, (first, 0))
        begin, end, low, high = first, first + length, at, at
        if at > 0 and sum(self._gaps[at - 1]) == first:
            low, begin = at - 1, self._gaps[at - 1][0]
        if at < len(self._gaps) and self._gaps[at][0] == end:
            high, end = at + 1, sum(self._gaps[at])
        self._gaps[low:high] = [(begin, end - begin)]
