"""Row prefixes: the first few edges of every row of one adjacency, kept on a device that cannot hold all of it.

Pulls that stop at the first active in-neighbor read little more than the first edges of rows, and each row costs a line
over the link. Prefixes that are resident serve most rows; only rows longer than their prefix, without an active
neighbor in it, still need edges over the link. Owns how many edges a prefix may have for a budget, and the copying of
prefixes out of views. Refuses weights: no program with early exit reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from penstock.storage.format.index import Index
from penstock.transfer.values.task import Direction, TaskRecord
from penstock.transfer.values.view import View

LONGEST = 32


@dataclass
class RowPrefixCache:
    """The first `each` edges of every row: `index` has their places in `neighbors`, an array of the device.

    rows: the first row that may have edges, and the first after the last one.
    """

    each: int
    index: Index
    neighbors: Any
    rows: tuple[int, int]
    filled: bool = False

    def view(self, key: Direction) -> View:
        """The heads as edges of rows that are no longer than they."""
        record = TaskRecord("resident", key, (), edges=self.index.edges)
        return View(0, self.index.edges, *self.rows, self.neighbors, None, record)


def prefix_bytes(vertices: int, edges: int, neighbor_bytes: int) -> int:
    """Bytes on the device of so many heads' edges and their index."""
    return edges * neighbor_bytes + 4 * (vertices + 1) + edges // 512


def longest_prefix(index: Index, neighbor_bytes: int, budget: int, threads: int = 1) -> int:
    """The longest head, a power of two of edges, at which all heads fit `budget` bytes; 0 where none does."""
    rows = index.clipped_counts(LONGEST, threads)
    longest = 0
    for length in (1 << power for power in range(LONGEST.bit_length())):
        edges = int(rows @ np.minimum(np.arange(LONGEST + 1), length))
        if prefix_bytes(index.vertices, edges, neighbor_bytes) <= budget:
            longest = length
    return longest
