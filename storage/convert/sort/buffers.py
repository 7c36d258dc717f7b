"""Owns the arrays that keys are sorted in, used again and again while groups are sorted side by side.

Fresh memory comes page by page from the system, which takes as long as sorting does where many threads ask
for it at once. Refuses to keep what is not needed: while a group larger than usual is sorted, nothing is kept.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]


class KeyBuffers:
    """Pairs of arrays of up to ``edges`` keys, as many as were in use at once."""

    def __init__(self, edges: int) -> None:
        self._edges = edges
        self._free: list[tuple[Keys, Keys]] = []
        self._large = 0
        self._lock = threading.Lock()

    @contextmanager
    def pair(self, edges: int) -> Iterator[tuple[Keys, Keys]]:
        """Two arrays of ``edges`` keys with anything in them, to be left when the block ends."""
        if edges > self._edges:
            with self._large_one():
                yield np.empty(edges, np.uint64), np.empty(edges, np.uint64)
            return
        with self._lock:
            found = self._free.pop() if self._free else None
        one, two = found or (np.empty(self._edges, np.uint64), np.empty(self._edges, np.uint64))
        yield one[:edges], two[:edges]
        with self._lock:
            if self._large == 0:
                self._free.append((one, two))

    def clear(self) -> None:
        """Give back what is not in use."""
        with self._lock:
            self._free.clear()

    @contextmanager
    def _large_one(self) -> Iterator[None]:
        with self._lock:
            self._large += 1
            self._free.clear()
        try:
            yield
        finally:
            with self._lock:
                self._large -= 1
