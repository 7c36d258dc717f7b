"""Rows of some vertices as sets of neighbors in memory, read from an adjacency piece by piece.

Refuses no vertex: an isolated one has an empty row. Self-loops are left out, and parallel edges are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.whole_rows import similarity as kernels
from penstock.engine.program.vertex_ranges import limited_ranges
from penstock.storage.format.graph import Adjacency

PIECE_EDGES = 1 << 19
"""Edges that are read at once, in whole chunks."""
ROW_BYTES = 40
"""Of each row beside its neighbors, while rows are loaded."""

Integers = NDArray[np.int64]

Runs = list[tuple[int, int]]
"""Ranges [first, last) of rows."""


def runs(sizes: Integers, most: int) -> Runs:
    """Cut rows into consecutive runs of at most `most` bytes, one row at least; sizes: bytes of each."""
    return limited_ranges(np.concatenate([[0], np.cumsum(sizes)]), most)


def even_cuts(work: Integers, steps: int) -> Integers:
    """First rows of so many steps of about the same work, and the number of rows."""
    sums = np.cumsum(work + 1)
    total = int(sums[-1]) if len(sums) else 0
    inner = np.searchsorted(sums, np.linspace(0, total, steps + 1)[1:-1])
    return np.concatenate([[0], inner, [len(work)]]).astype(np.int64)


@dataclass(frozen=True)
class RowSets:
    """Distinct neighbors of some vertices, ascending in every row.

    vertices: int64 (rows,), ascending. offsets: int64 (rows + 1,). neighbors: of the graph's vertex dtype.
    """

    vertices: Integers
    offsets: Integers
    neighbors: NDArray[Any]

    @property
    def sizes(self) -> Integers:
        """How many neighbors each row has."""
        return np.diff(self.offsets)

    def rows_of(self, vertices: Integers) -> Integers:
        """The numbers of the rows of some of the vertices."""
        return np.searchsorted(self.vertices, vertices)


def load_rows(adjacency: Adjacency, vertices: Integers, threads: int) -> RowSets:
    """Read the rows of some vertices, ascending. Raises RunError where they cannot be read, or are damaged."""
    index = adjacency.index()
    begins, ends = index.starts_of(vertices), index.starts_of(vertices + 1)
    offsets = np.concatenate([[0], np.cumsum(ends - begins)])
    neighbors = np.empty(int(offsets[-1]), adjacency.neighbor_dtype)
    step = -(-PIECE_EDGES // adjacency.chunk_edges) * adjacency.chunk_edges
    for piece in range(0, adjacency.edges, step):
        first = int(np.searchsorted(ends, piece, side="right"))
        last = int(np.searchsorted(begins, piece + step, side="left"))
        if first >= last:
            continue
        low, high = max(piece, int(begins[first])), min(piece + step, int(ends[last - 1]))
        if low < high:
            rows = slice(first, last)
            part, _ = adjacency.edges_in(low, high, weights=False)
            kernels.copy_row_parts(part, low, begins[rows], ends[rows], offsets[first : last + 1], neighbors)
    lengths = np.zeros(len(vertices), np.int64)
    kernels.clean_rows(threads, len(vertices), vertices, offsets, neighbors, lengths)
    kernels.pack_rows(offsets, lengths, neighbors)
    return RowSets(vertices, offsets, neighbors[: offsets[-1]])
