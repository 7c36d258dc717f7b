"""The cache of partitions: the edges of those that are kept, plain or packed, in arrays allocated once.

A partition is known by its entry, `entry(direction, number)`: entries number the partitions of all adjacencies. Of each
the cache knows where it is, which chunks are loaded, how much it was used, and its pins. The callers choose which
partitions to `replace`; a pinned one is never dropped. Where there is room for every partition, each has its own place
from the start, in order, so that a whole plain adjacency is one contiguous array; otherwise both adjacencies share the
room. One thread changes the records; others only fill the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.slot_pool import ALIGNMENT, RangePool, aligned_empty
from penstock.storage.format.packed_layout import PackedLayout, PieceTable

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency

NEIGHBORS = 1
WEIGHTS = 2
NOWHERE = -1
NO_CHUNKS = np.zeros(0, np.uint8)

Ints = NDArray[np.int64]
Allocate = Callable[[int, DTypeLike], NDArray[Any]]
WORDS: tuple[DTypeLike, None] = (np.uint32, None)
"""The type of the words of pieces, which have no weights apart."""


class PartitionCache:
    """Partitions of one or two adjacencies.

    The arrays have ``room`` items (0: nothing is kept; None: as many as every partition takes): edges, a place being as
    long as the longest partition or, of packed layouts, words of pieces (`packed_layout.py`), which differ in length.
    ``dtypes``: of items, and of weights where there are any. ``apart``: where every partition has a place, an adjacency
    begins with a page of its own, which can be locked apart from the other's.

    `starts`, `sizes`, `use` and `pins` have one item per entry: the position of a placed partition in the arrays, else
    -1; the items of its place; and what the callers count. `tables`: the pieces of packed adjacencies, none of plain
    ones. `flights`: what is being read into an entry. `changes`: how often what is held has changed. `whole`: whether
    every partition has a place of its own.
    """

    def __init__(
        self,
        extents: Sequence[Adjacency] | Sequence[PackedLayout],
        partition_edges: int,
        dtypes: tuple[DTypeLike, DTypeLike | None] = WORDS,
        room: int | None = None,
        allocate: Allocate = aligned_empty,
        *,
        apart: bool = False,
    ) -> None:
        self.partition_edges = partition_edges
        self.extents = {extent.direction: extent for extent in extents}
        self.tables: Mapping[str, PieceTable] = {
            extent.direction: extent.pieces(partition_edges) for extent in extents if isinstance(extent, PackedLayout)
        }
        self._entries: dict[str, slice] = {}
        self.count, sizes, places, end = 0, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        for extent in extents:
            table = self.tables.get(extent.direction)
            taken = np.full(-(-extent.edges // partition_edges), partition_edges) if table is None else table.sizes
            first, self.count = self.count, self.count + len(taken)
            self._entries[extent.direction] = slice(first, self.count)
            sizes.append(taken)
            places.append(end + np.cumsum(taken) - taken)
            there = extent.edges if table is None else int(taken.sum())
            end += -(-there // ALIGNMENT) * ALIGNMENT if apart else there
        self.sizes: Ints = np.concatenate(sizes)
        total = int(self.sizes.sum())
        self.whole = room is None or room >= total
        self.room = total if room is None else min(room, total)
        self.starts: Ints = np.concatenate(places) if self.whole else np.full(self.count, NOWHERE, dtype=np.int64)
        self.use = np.zeros(self.count, dtype=np.float64)
        self.pins = np.zeros(self.count, dtype=np.int64)
        self.flights: dict[int, list[Any]] = {}
        self.changes = 0
        self._held = {e.direction: np.zeros(-(-e.edges // e.chunk_edges), dtype=np.uint8) for e in extents}
        self._complete: dict[tuple[str, bool], bool] = {}
        self._ranges = RangePool(0 if self.whole else self.room)
        items = end if self.whole else self.room
        if not items:
            allocate = aligned_empty
        self._items = allocate(items, dtypes[0])
        self._weights = None if dtypes[1] is None else allocate(items, dtypes[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, whether touched yet or not."""
        return self._items.nbytes + (0 if self._weights is None else self._weights.nbytes)

    @property
    def with_weights(self) -> bool:
        """Whether there is room for weights."""
        packed = (table.layout.weights is not None for table in self.tables.values())
        return self._weights is not None or any(packed)

    @property
    def free(self) -> int:
        """Items that hold no partition."""
        return self._ranges.free

    @property
    def longest(self) -> int:
        """Items of the longest place."""
        return int(self.sizes.max(initial=0))

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
        """Return the entries of one adjacency; none where it is read by its windows alone."""
        return self._entries.get(direction, slice(0, 0))

    def held(self, direction: str) -> NDArray[np.uint8]:
        """Return per chunk of an adjacency what is here: bits NEIGHBORS and WEIGHTS, uint8[chunks]."""
        return self._held.get(direction, NO_CHUNKS)

    def complete(self, direction: str, with_weights: bool) -> bool:
        """Return whether every partition has a place, and every chunk of an adjacency is here."""
        known = self._complete.get((direction, with_weights))
        if known is None:
            bits = needed(with_weights)
            known = self.whole and direction in self._held and bool(np.all((self._held[direction] & bits) == bits))
            self._complete[direction, with_weights] = known
        return known

    def arrays(
        self, direction: str, first: int, count: int, with_weights: bool
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the arrays of `count` placed partitions, one after another; packed, the words of one piece.

        Their length is the edges of those partitions. ValueError when a partition has no place,
        when they are not in order, or when weights are wanted of a cache without them.
        """
        entries = slice(self.entry(direction, first), self.entry(direction, first + count))
        run, length = self.starts[entries], int(self.sizes[entries].sum())
        if not contiguous(run, self.partition_edges):
            raise ValueError(f"partitions {first}..{first + count - 1} ({direction}) are at {run}")
        if self.tables:
            return self._items[run[0] : run[0] + length], None
        if with_weights and self._weights is None:
            raise ValueError("weights are wanted of a cache that was made without them")
        length = min(length, self.extents[direction].edges - first * self.partition_edges)
        part = slice(int(run[0]), int(run[0]) + length)
        return self._items[part], self._weights[part] if with_weights and self._weights is not None else None

    def adjacency(self, direction: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the arrays of a plain adjacency all of whose partitions have places, loaded or not."""
        first, edges = self._entries[direction].start, self.extents[direction].edges
        start = int(self.starts[first]) if edges else 0
        part = slice(start, start + edges)
        return self._items[part], None if self._weights is None else self._weights[part]

    def mark(self, direction: str, chunks: Ints, with_weights: bool) -> None:
        """Note that these chunks now hold their edges."""
        self._held[direction][chunks] |= needed(with_weights)
        self._changed()

    def unmark(self, direction: str, chunks: Ints, with_weights: bool) -> None:
        """Note that these chunks do not hold their edges."""
        self._held[direction][chunks] &= ~needed(with_weights)
        self._changed()

    def replace(self, evict: Iterable[int], admit: Iterable[int]) -> None:
        """Take the places of some entries away and give places, which hold nothing yet, to others where there is a gap.

        ValueError for an evicted entry that is pinned, being filled, or has no place.
        """
        if self.whole:
            return
        for entry in evict:
            if self.pins[entry] or entry in self.flights:
                raise ValueError(f"cache entry {entry} is in use and cannot be dropped")
            self._ranges.give(int(self.starts[entry]))
            self.starts[entry] = NOWHERE
            self._forget(int(entry))
        for entry in admit:
            start = self._ranges.take(int(self.sizes[entry]))
            if start is not None:
                self.starts[entry] = start

    def _forget(self, entry: int) -> None:
        for direction, entries in self._entries.items():
            if entries.start <= entry < entries.stop:
                number = entry - entries.start
                step = self.partition_edges // self.extents[direction].chunk_edges
                self._held[direction][number * step : (number + 1) * step] = 0
        self._changed()

    def _changed(self) -> None:
        self._complete.clear()
        self.changes += 1


def needed(with_weights: bool) -> np.uint8:
    """Return the bits that a chunk must have to be read."""
    return np.uint8(NEIGHBORS | WEIGHTS if with_weights else NEIGHBORS)


def contiguous(starts: Ints, step: int) -> bool:
    """Return whether places follow one another in the arrays."""
    return bool(len(starts)) and bool(starts[0] >= 0) and bool(np.all(np.diff(starts) == step))
