"""The steps that walkers of a batch have made, by blocks of walks, in memory and then in a scratch file.

A record is the cell of a step in the walks of its block, and the vertex: 8 bytes. Walks in order would be written all
over a file by every partition; records are appended, and read back once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.walks.log import collect_steps, count_steps, place_steps
from penstock.engine.kernels.host.walks.steps import Found
from penstock.engine.walks.memory_plan import PENDING_BYTES
from penstock.storage.convert.sort.memory_quota import ArrayStore, StoredArrays

Records = tuple[NDArray[np.uint32], NDArray[Any], NDArray[np.int64]]
"""Cells, vertices, and where those of each block end."""


def found_arrays(vertices: NDArray[Any], units: int) -> Found:
    """What a kernel writes to, rows being those of `vertices`; each unit of walkers has as many."""
    rows = len(vertices)
    owner, chosen, places = (np.empty(rows, np.int64) for _ in range(3))
    return Found(
        vertices, owner, np.zeros(rows, np.int32), np.zeros(units, np.int32), np.zeros(1, np.uint8), chosen, places
    )


class StepLog:
    """Steps of blocks of `block` walks, `width` cells each."""

    def __init__(self, store: ArrayStore, walks: int, block: int, width: int, dtype: np.dtype[Any]) -> None:
        self.blocks, self.steps = -(-walks // block), 0
        self._block, self._width, self._dtype, self._store = block, width, dtype, store
        self._stored: list[list[StoredArrays]] = [[] for _ in range(self.blocks)]
        self._pending: list[Records] = []
        self._bytes, self._most = 0, PENDING_BYTES * walks

    def collect(self, found: Found, step: NDArray[np.uint32]) -> None:
        """Take what walkers have found; step: the steps that each has made.

        Raises InputError or RunError where the scratch file cannot be written.
        """
        count = int(count_steps(found))
        if count == 0:
            return
        cells, vertices = np.empty(count, np.uint32), np.empty(count, self._dtype)
        ends = np.empty(self.blocks, np.int64)
        collect_steps(self._block, self._width, step, found, cells, vertices, ends)
        self.steps += count
        self._pending.append((cells, vertices, ends))
        self._bytes += cells.nbytes + vertices.nbytes + ends.nbytes
        if self._bytes >= self._most:
            self.flush()

    def flush(self) -> None:
        """Store what is pending, block by block. Raises as `collect`."""
        for number in range(self.blocks):
            parts = [(cells[a:b], vertices[a:b]) for cells, vertices, (a, b) in self._parts_of(number) if a < b]
            if parts:
                joined = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
                self._stored[number].append(self._store.keep(*joined))
        self._pending, self._bytes = [], 0

    def _parts_of(self, number: int) -> list[tuple[NDArray[np.uint32], NDArray[Any], tuple[int, int]]]:
        """What is pending, and which records are those of a block."""
        return [
            (cells, vertices, (int(ends[number - 1]) if number else 0, int(ends[number])))
            for cells, vertices, ends in self._pending
        ]

    def fill(self, number: int, walks: NDArray[Any]) -> None:
        """Write the stored steps of a block into its walks, and forget them. Raises RunError where reading fails."""
        flat = walks.reshape(-1)
        for stored in self._stored[number]:
            size = stored.nbytes // sum(kind.itemsize for kind in stored.dtypes)
            cells, vertices = (self._store.read(stored, array, 0, size) for array in range(2))
            place_steps(cells, vertices, flat)
            self._store.forget(stored)
        self._stored[number] = []
