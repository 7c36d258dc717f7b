"""A pool of numbered slots, and the aligned arrays that they are in.

A slot that is not taken cannot be given back: a slab freed twice would go to two readers at once.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 4096
HUGE_PAGE = 2 << 20
"""A larger array that begins at a multiple of this can be in huge pages from its first byte."""


def aligned_empty(count: int, dtype: DTypeLike, alignment: int = ALIGNMENT) -> NDArray[Any]:
    """Return `count` uninitialized items, aligned; pages are touched when written."""
    kind = np.dtype(dtype)
    raw = np.empty(count * kind.itemsize + alignment, dtype=np.uint8)
    skip = -raw.ctypes.data % alignment
    return raw[skip : skip + count * kind.itemsize].view(kind)


class SlotPool:
    """`count` slots, all free at first; the lowest free one goes first, to keep runs together."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = list(range(count))
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        """How many slots are free."""
        return len(self._free)

    def take(self) -> int | None:
        """Take the lowest free slot; None when there is none."""
        if not self._free:
            return None
        slot = heapq.heappop(self._free)
        self._taken.add(slot)
        return slot

    def give(self, slot: int) -> None:
        """Give a taken slot back."""
        if slot not in self._taken:
            raise ValueError(f"slot {slot} of {self.count} is given back but is not taken")
        self._taken.remove(slot)
        heapq.heappush(self._free, slot)
