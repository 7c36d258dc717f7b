"""A cache of packed partitions: their pieces (`packed_layout.py`) in ranges of one array, allocated once.

Pieces differ in length, so places are ranges of any length; a piece that finds no gap gets no place. Where the array
holds every piece, each has its place from the start, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.slot_pool import RangePool, aligned_empty
from penstock.storage.format.packed_layout import PackedLayout, PieceTable
from penstock.storage.read.partition_cache import Allocate
from penstock.storage.read.partition_records import Extent, Ints, PartitionRecords


class PackedCache(PartitionRecords):
    """Packed partitions of one or two adjacencies, in `words` 32-bit words (None: as many as all of them take).

    `tables`: the pieces of each adjacency. `starts`: the word at which a placed piece begins. `sizes`: words of each
    piece, int64 per entry.
    """

    def __init__(
        self,
        layouts: Sequence[PackedLayout],
        partition_edges: int,
        words: int | None = None,
        allocate: Allocate = aligned_empty,
    ) -> None:
        extents = [Extent(layout.direction, layout.edges, layout.chunk_edges) for layout in layouts]
        super().__init__(extents, partition_edges)
        self.tables: Mapping[str, PieceTable] = {layout.direction: layout.pieces(partition_edges) for layout in layouts}
        self.sizes: Ints = np.concatenate([table.sizes for table in self.tables.values()])
        total = int(self.sizes.sum())
        self.words = total if words is None else min(words, total)
        self.whole = self.words == total
        self.with_weights = any(layout.weights is not None for layout in layouts)
        self._ranges = RangePool(self.words)
        self._array = allocate(self.words, np.dtype(np.uint32))
        if self.whole:
            self.starts[:] = np.cumsum(self.sizes) - self.sizes

    @property
    def nbytes(self) -> int:
        """Bytes of the array, whether touched yet or not."""
        return 4 * self.words

    @property
    def free(self) -> int:
        """Words that hold no piece."""
        return 0 if self.whole else self._ranges.free

    def piece(self, direction: str, number: int) -> NDArray[Any]:
        """Return the words of a placed piece. ValueError for one that has no place."""
        entry = self.entry(direction, number)
        start = int(self.starts[entry])
        if start < 0:
            raise ValueError(f"partition {number} ({direction}) has no place")
        return self._array[start : start + int(self.sizes[entry])]

    def replace(self, evict: Iterable[int], admit: Iterable[int]) -> None:
        """Take the places of some entries away and give places, which hold nothing yet, to others where there is a gap.

        ValueError when an evicted entry is pinned or being filled.
        """
        if self.whole:
            return
        self.evict(evict)
        for entry in admit:
            start = self._ranges.take(int(self.sizes[entry]))
            if start is not None:
                self.starts[entry] = start

    def _give_back(self, entry: int) -> None:
        self._ranges.give(int(self.starts[entry]))
