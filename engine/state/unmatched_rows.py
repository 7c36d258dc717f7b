"""Rows that a pull has read to their ends in vain, kept in memory: the next pull needs no others.

Where a vertex that no longer accepts messages never does again (`Program.visits_once`), every vertex that still
accepts some after a pull over all rows is one of those that it found no message for. On skewed graphs these are most of
the vertices that are left after the widest frontier, and a hundredth of the edges: the rest of a search then reads
neither the graph nor the disk. Owns the arrays and their size; `kernels/host/early_pull.py` fills and reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERTEX_BYTES, LEAST_BYTES = 6, 1 << 16
"""Rows are kept in so many bytes a vertex, and so many more ..."""
FREE_SHARE = 3
"""... but in no more than this part of what state, index and reading leave of the budget; or in what edges leave."""
SEGMENT_VERTICES = 32
"""A segment holds rows of the 64 vertices of a word; a word whose rows two blocks of edges share has two."""
SPARE_SEGMENTS = 1024


@dataclass
class UnmatchedRows:
    """Rows, or pieces of them, in segments: the number of a word; for each row how many edges it has, and these.

    In front of a row's neighbors stands their number << 6 | the vertex' bit in the word; there are less than 2^26.
    starts: where segments begin, and the last one ends. taken: uint64[1], the segments taken in its upper and the items
    in its lower 40 bits, more than there is room for if it was too small. complete: whether they are all rows of
    vertices that still accept messages.
    """

    items: NDArray[Any]
    starts: NDArray[np.int64]
    taken: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(1, np.uint64))
    complete: bool = False

    @classmethod
    def with_room(cls, size: int, vertices: int, dtype: Any) -> UnmatchedRows:
        """Room for so many bytes; memory is touched when it is written."""
        starts = np.zeros(_segments(vertices) + 1, np.int64)
        return cls(np.empty((size - starts.nbytes) // np.dtype(dtype).itemsize, dtype), starts)

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return int(self.taken[0]) >> 40

    @property
    def used(self) -> int:
        """How many items there are."""
        return int(self.taken[0]) & ((1 << 40) - 1)

    def begin(self) -> None:
        """Forget what was kept: a pull over the graph's rows begins."""
        self.taken[0], self.complete = 0, False

    def end(self) -> None:
        """The pull has passed every row."""
        self.complete = self.used <= len(self.items) and self.segments < len(self.starts)
        if self.complete:
            self.starts[self.segments] = self.used


def unmatched_bytes(vertices: int, free: int, edges: int) -> int:
    """Bytes that a run may keep rows in, of so many that are free; 0: it keeps none.

    edges: bytes of all edges, which stay in memory where they fit.
    """
    left = free - edges if edges <= free else free // FREE_SHARE
    size = min(VERTEX_BYTES * vertices + LEAST_BYTES, left)
    return size if size > 2 * 8 * (_segments(vertices) + 1) else 0


def _segments(vertices: int) -> int:
    return vertices // SEGMENT_VERTICES + SPARE_SEGMENTS
