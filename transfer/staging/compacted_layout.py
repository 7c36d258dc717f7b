"""The layout of a compacted buffer: the places of rows, offsets and neighbors, so that one copy moves them all.

Owns the layout of a task's buffer and which part of it each of its partitions fills. One array of the vertex type:

    offsets (A + 1) | rows (A) | neighbors (a)

for A row parts and a edges; `offsets` count from the first packed neighbor. An entry of the index so costs two words:
d₂ = 8 bytes with uint32 ids (HyTGraph's Tec, Wang et al., ICDE 2023). Weights are a second array, item for item beside
the neighbors. Refuses to touch an edge: `gather.py` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class BufferPlace(NamedTuple):
    """What one partition fills of a task's buffer: row parts [r0, r1) and packed edges [a0, a1)."""

    r0: int
    r1: int
    a0: int
    a1: int


@dataclass(frozen=True, slots=True, eq=False)
class CompactedLayout:
    """The plan of one task's buffer: int64[p + 1] running sums over its p partitions, in the order of the task.

    `row_starts`: row parts before each partition; `edge_starts`: edges before it. A row that is cut by the end of a
    partition is two row parts, one in each.
    """

    row_starts: NDArray[np.int64]
    edge_starts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """A: row parts in all."""
        return int(self.row_starts[-1])

    @property
    def edges(self) -> int:
        """a: edges in all."""
        return int(self.edge_starts[-1])

    @property
    def words(self) -> int:
        """Items of the vertex type that offsets, rows and neighbors take together."""
        return self.edges + 2 * self.rows + 1

    def place(self, number: int) -> BufferPlace:
        """Return what the task's partition of this number (from 0) fills."""
        rows, edges = self.row_starts, self.edge_starts
        return BufferPlace(int(rows[number]), int(rows[number + 1]), int(edges[number]), int(edges[number + 1]))

    def slices(self, buffer: Any) -> tuple[Any, Any, Any]:
        """Cut offsets (A + 1,), rows (A,) and neighbors (a,) out of a one-dimensional buffer of any memory.

        Raises RuntimeError for a buffer of fewer than `words` items, or in whose type the offsets do not fit.
        """
        if len(buffer) < self.words:
            raise RuntimeError(f"{self.rows} rows with {self.edges} edges do not fit a buffer of {len(buffer)} words")
        if self.edges > np.iinfo(buffer.dtype).max:
            raise RuntimeError(f"offsets up to {self.edges} do not fit {buffer.dtype}")
        first, second = self.rows + 1, 2 * self.rows + 1
        return buffer[:first], buffer[first:second], buffer[second : self.words]


def compacted_layout(active_vertices: ArrayLike, active_edges: ArrayLike) -> CompactedLayout:
    """Plan the buffer of a task from the exact counts of its partitions, integers of shape (p,).

    `Demand.active_vertices` and `active_edges` of a frontier are exact; those of a whole sweep count rows without
    edges as well: ask `count_rows` there. Raises ValueError where counts cannot be right.
    """
    rows, edges = (np.asarray(counts, dtype=np.int64) for counts in (active_vertices, active_edges))
    if rows.shape != edges.shape or rows.ndim != 1 or np.any(rows < 0) or np.any(edges < rows):
        raise ValueError(f"{rows.tolist()} rows with {edges.tolist()} edges: every row part has at least one edge")
    return CompactedLayout(_starts(rows), _starts(edges))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts
