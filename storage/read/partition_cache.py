"""The host cache: decoded edges of the partitions that are kept, in one arena allocated once.

It records where each partition is, which of its chunks are loaded, how much it was used lately, and how many readers
pin it. The callers choose which partitions to `replace`; a pinned one is never dropped. Where the budget holds every
partition, each has its own place from the start, in order, so that the whole adjacency is one contiguous array;
otherwise places are slots of one partition each, shared by both adjacencies. One thread changes the records; others
only fill the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.slot_pool import ALIGNMENT, SlotPool, aligned_empty

NEIGHBORS = 1
WEIGHTS = 2
NOWHERE = -1

Ints = NDArray[np.int64]
Allocate = Callable[[int, DTypeLike], NDArray[Any]]


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


class HostCache:
    """Partitions of one or two adjacencies in host memory.

    The arena has ``slots`` places of ``partition_edges`` edges each (None: one for every partition), and room for
    weights where ``weight_dtype`` is given. A partition is known by its entry, `entry(direction, number)`; `starts`,
    `use` and `pins` are arrays with one item per entry. `starts` is the arena position (in edges) of a placed
    partition, else -1. `changes`: how often what is held has changed. ``apart``: where every partition has a place, an
    adjacency begins with a page of its own, which can be locked apart from the other's.
    """

    def __init__(
        self,
        extents: Sequence[Extent],
        partition_edges: int,
        neighbor_dtype: DTypeLike,
        weight_dtype: DTypeLike | None = None,
        slots: int | None = None,
        allocate: Allocate = aligned_empty,
        *,
        apart: bool = False,
    ) -> None:
        self.partition_edges = partition_edges
        self.extents = {extent.direction: extent for extent in extents}
        self._entries: dict[str, slice] = {}
        entries = 0
        for extent in extents:
            first, entries = entries, entries - (-extent.edges // partition_edges)
            self._entries[extent.direction] = slice(first, entries)
        self.slots = entries if slots is None else min(slots, entries)
        self.whole = self.slots == entries
        self.starts: Ints = np.full(entries, NOWHERE, dtype=np.int64)
        self.use = np.zeros(entries, dtype=np.float64)
        self.pins = np.zeros(entries, dtype=np.int64)
        self.flights: dict[int, list[Any]] = {}
        self._held = {e.direction: np.zeros(e.chunks, dtype=np.uint8) for e in extents}
        self._complete: dict[tuple[str, bool], bool] = {}
        self.changes = 0
        self._slots = SlotPool(0 if self.whole else self.slots)
        self._slot_of: dict[int, int] = {}
        edges = self.slots * partition_edges
        if self.whole:
            edges = 0
            for direction, span in self._entries.items():
                self.starts[span] = edges + np.arange(span.stop - span.start) * partition_edges
                there = self.extents[direction].edges
                edges += -(-there // ALIGNMENT) * ALIGNMENT if apart else there
        self._neighbors = allocate(edges, neighbor_dtype)
        self._weights = None if weight_dtype is None else allocate(edges, weight_dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the arena, whether touched yet or not."""
        return self._neighbors.nbytes + (0 if self._weights is None else self._weights.nbytes)

    @property
    def with_weights(self) -> bool:
        """Whether there is room for weights."""
        return self._weights is not None

    @property
    def free(self) -> int:
        """Slots that hold no partition."""
        return self._slots.free

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
        """Return whether every chunk of an adjacency is here, in one contiguous array."""
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

    def arrays(
        self, direction: str, first: int, count: int, with_weights: bool
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the arena's arrays of `count` placed partitions, one after another.

        Their length is the edges of those partitions. ValueError when a partition has no place,
        when they are not in order, or when weights are wanted of a cache without them.
        """
        run = self.starts[self.entry(direction, first) : self.entry(direction, first + count)]
        if not contiguous(run, self.partition_edges):
            raise ValueError(f"partitions {first}..{first + count - 1} ({direction}) are at {run}")
        if with_weights and self._weights is None:
            raise ValueError("weights are wanted of a cache that was made without them")
        e0 = first * self.partition_edges
        e1 = min(e0 + count * self.partition_edges, self.extents[direction].edges)
        part = slice(int(run[0]), int(run[0]) + e1 - e0)
        weights = self._weights[part] if with_weights and self._weights is not None else None
        return self._neighbors[part], weights

    def adjacency(self, direction: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the arena's arrays of an adjacency all of whose partitions have places, loaded or not."""
        first, edges = self._entries[direction].start, self.extents[direction].edges
        start = int(self.starts[first]) if edges else 0
        part = slice(start, start + edges)
        return self._neighbors[part], None if self._weights is None else self._weights[part]

    def replace(self, evict: Iterable[int], admit: Iterable[int]) -> None:
        """Take the places of some entries away and give places to others, which hold nothing yet.

        ValueError when an evicted entry is pinned or has no place, or an admitted one finds none.
        """
        if self.whole:
            return
        for entry in evict:
            if self.pins[entry] or entry in self.flights:
                raise ValueError(f"cache entry {entry} is in use and cannot be dropped")
            self._slots.give(self._slot_of.pop(int(entry)))
            self.starts[entry] = NOWHERE
            self._forget(int(entry))
        for entry in admit:
            slot = self._slots.take()
            if slot is None:
                raise ValueError(f"cache entry {entry} finds none of {self.slots} slots free")
            self._slot_of[int(entry)] = slot
            self.starts[entry] = slot * self.partition_edges

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


def contiguous(starts: Ints, step: int) -> bool:
    """Return whether places follow one another in the arena."""
    return bool(len(starts)) and bool(starts[0] >= 0) and bool(np.all(np.diff(starts) == step))
