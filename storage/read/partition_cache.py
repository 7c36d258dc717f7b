"""The host cache: decoded edges of the partitions that are kept, in one arena allocated once.

The callers choose which partitions to `replace`; a pinned one is never dropped. Where the budget holds every
partition, each has its own place from the start, in order, so that the whole adjacency is one contiguous array;
otherwise places are slots of one partition each, shared by both adjacencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.slot_pool import ALIGNMENT, SlotPool, aligned_empty
from penstock.storage.read.partition_records import Extent, Ints, PartitionRecords

Allocate = Callable[[int, DTypeLike], NDArray[Any]]


class HostCache(PartitionRecords):
    """Partitions of one or two adjacencies in host memory.

    The arena has ``slots`` places of ``partition_edges`` edges each (None: one for every partition), and room for
    weights where ``weight_dtype`` is given. `starts` is in edges. ``apart``: where every partition has a place, an
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
        super().__init__(extents, partition_edges)
        entries = self.count
        self.slots = entries if slots is None else min(slots, entries)
        self.whole = self.slots == entries
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
        self.evict(evict)
        for entry in admit:
            slot = self._slots.take()
            if slot is None:
                raise ValueError(f"cache entry {entry} finds none of {self.slots} slots free")
            self._slot_of[int(entry)] = slot
            self.starts[entry] = slot * self.partition_edges

    def _give_back(self, entry: int) -> None:
        self._slots.give(self._slot_of.pop(entry))


def contiguous(starts: Ints, step: int) -> bool:
    """Return whether places follow one another in the arena."""
    return bool(len(starts)) and bool(starts[0] >= 0) and bool(np.all(np.diff(starts) == step))
