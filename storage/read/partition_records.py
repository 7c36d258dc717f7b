"""What a cache of partitions knows of each: where it is, which chunks are loaded, how much it was used, its pins.

A partition is known by its entry, `entry(direction, number)`: entries number the partitions of all adjacencies. One
thread changes the records; others only fill the arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NEIGHBORS = 1
WEIGHTS = 2
NOWHERE = -1

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Extent:
    """One adjacency that the cache serves: its direction, its edges, and the edges of a chunk."""

    direction: str
    edges: int
    chunk_edges: int

    @property
    def chunks(self) -> int:
        """How many chunks it has."""
        return -(-self.edges // self.chunk_edges)


class PartitionRecords(ABC):
    """Records of the partitions of one or two adjacencies; `starts`, `use` and `pins` have one item per entry.

    `starts`: the position of a placed partition in the cache's array, else -1. `flights`: what is being read into an
    entry. `changes`: how often what is held has changed. `whole`: whether every partition has a place of its own.
    """

    whole: bool

    def __init__(self, extents: Sequence[Extent], partition_edges: int) -> None:
        self.partition_edges = partition_edges
        self.extents = {extent.direction: extent for extent in extents}
        self._entries: dict[str, slice] = {}
        entries = 0
        for extent in extents:
            first, entries = entries, entries - (-extent.edges // partition_edges)
            self._entries[extent.direction] = slice(first, entries)
        self.count = entries
        self.starts: Ints = np.full(entries, NOWHERE, dtype=np.int64)
        self.use = np.zeros(entries, dtype=np.float64)
        self.pins = np.zeros(entries, dtype=np.int64)
        self.flights: dict[int, list[Any]] = {}
        self._held = {e.direction: np.zeros(e.chunks, dtype=np.uint8) for e in extents}
        self._complete: dict[tuple[str, bool], bool] = {}
        self.changes = 0

    @property
    def busy(self) -> NDArray[np.bool_]:
        """Which entries may not lose their place: pinned, or being filled; bool per entry."""
        busy = self.pins > 0
        busy[list(self.flights)] = True
        return busy

    def entry(self, direction: str, number: int) -> int:
        """Return the entry of a partition."""
        return int(self._entries[direction].start) + number

    def entries(self, direction: str) -> slice:
        """Return the entries of one adjacency."""
        return self._entries[direction]

    def held(self, direction: str) -> NDArray[np.uint8]:
        """Return per chunk of an adjacency what is here: bits NEIGHBORS and WEIGHTS, uint8[chunks]."""
        return self._held[direction]

    def complete(self, direction: str, with_weights: bool) -> bool:
        """Return whether every partition has a place, and every chunk of an adjacency is here."""
        known = self._complete.get((direction, with_weights))
        if known is None:
            bits = needed(with_weights)
            known = self.whole and bool(np.all((self._held[direction] & bits) == bits))
            self._complete[direction, with_weights] = known
        return known

    def mark(self, direction: str, chunks: Ints, with_weights: bool) -> None:
        """Note that these chunks now hold their edges."""
        self._held[direction][chunks] |= needed(with_weights)
        self._complete.clear()
        self.changes += 1

    def unmark(self, direction: str, chunks: Ints, with_weights: bool) -> None:
        """Note that these chunks do not hold their edges."""
        self._held[direction][chunks] &= ~needed(with_weights)
        self._complete.clear()
        self.changes += 1

    def evict(self, entries: Iterable[int]) -> None:
        """Take the places of entries away. ValueError for one that is pinned, or being filled."""
        for entry in entries:
            if self.pins[entry] or entry in self.flights:
                raise ValueError(f"cache entry {entry} is in use and cannot be dropped")
            self._give_back(int(entry))
            self.starts[entry] = NOWHERE
            self._forget(int(entry))

    @abstractmethod
    def _give_back(self, entry: int) -> None:
        """Give back the place of an entry."""

    def _forget(self, entry: int) -> None:
        for direction, entries in self._entries.items():
            if entries.start <= entry < entries.stop:
                number = entry - entries.start
                step = self.partition_edges // self.extents[direction].chunk_edges
                self._held[direction][number * step : (number + 1) * step] = 0
        self._complete.clear()
        self.changes += 1


def needed(with_weights: bool) -> np.uint8:
    """Return the bits that a chunk must have to be read."""
    return np.uint8(NEIGHBORS | WEIGHTS if with_weights else NEIGHBORS)
