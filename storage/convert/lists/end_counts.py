"""Degrees counted while edges pass, in arrays that grow with the vertices, as long as memory allows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.edge_keys import count_ends

NARROW = 1 << 32
"""Up to so many ends 32 bits hold every count."""


class EndCounts:
    """Counts of the ends of edges by vertex: of sources and of targets apart, or with ``both`` in one array.

    room_bytes: how much memory they may take; where that is too little they are dropped.
    """

    def __init__(self, room_bytes: int, *, both: bool) -> None:
        self._room, self._both = room_bytes, both
        self._counts: list[NDArray[Any]] | None = [np.zeros(0, np.uint32) for _ in range(1 if both else 2)]
        self._edges = 0

    @property
    def counts(self) -> list[NDArray[Any]] | None:
        """The arrays, which may have vertices that do not exist; None where they were dropped."""
        return self._counts

    def drop(self) -> None:
        """Count nothing any more."""
        self._counts = None

    def add(self, number: int, blocks: Iterable[NDArray[Any]]) -> None:
        """Add counts of vertices 0, 1, … to one of the arrays, for which there must be room."""
        at = 0
        for block in blocks if self._counts is not None else ():
            part = (self._counts or [])[number][at : at + len(block)]
            part += block.astype(part.dtype, copy=False)
            at += len(block)

    def make_room(self, vertices: int, edges: int) -> None:
        """Make room for so many vertices, and for so many edges more."""
        self._edges += edges
        if self._counts is None:
            return
        kind = np.dtype(np.uint64 if 2 * self._edges >= NARROW else np.uint32)
        before = self._counts[0]
        if vertices <= len(before) and kind == before.dtype:
            return
        each = len(self._counts) * (kind.itemsize + before.itemsize)  # the old array is there while the new one is made
        if vertices * each > self._room:
            self.drop()
            return
        size = max(vertices, min(2 * len(before), self._room // each))
        for number, counts in enumerate(self._counts):
            grown = np.zeros(size, kind)
            grown[: len(counts)] = counts
            self._counts[number] = grown

    def count(self, sources: NDArray[Any], targets: NDArray[Any]) -> None:
        """Count the ends of edges. There must be room."""
        if self._counts is not None:
            count_ends(sources, targets, self._counts)

    def of(self, vertices: int) -> list[NDArray[Any]]:
        """The counts of so many vertices, of sources first; none where they were dropped."""
        if self._counts is None:
            return []
        self.make_room(vertices, 0)
        return [counts[:vertices] for counts in self._counts or []]
