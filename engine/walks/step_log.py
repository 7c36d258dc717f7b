"""The steps that walkers of a batch have made, by blocks of walks, in memory and then in a scratch file.

A record is the cell of a step in the walks of its block, and the vertex: 8 bytes. Walks in order would be written all
over a file by every partition; records are appended, and read back once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.walks.log import collect_steps, place_steps
from penstock.engine.kernels.host.walks.steps import Found
from penstock.engine.walks.memory_plan import GAINED, PENDING_BYTES
from penstock.storage.convert.sort.memory_quota import ArrayStore, StoredArrays

Records = tuple[NDArray[np.uint32], NDArray[Any]]


def found_arrays(vertices: NDArray[Any]) -> Found:
    """What a kernel writes to, for as many walkers as `vertices` has rows."""
    walkers = len(vertices)
    gained, more = np.zeros(walkers, np.int32), np.zeros(1, np.uint8)
    return Found(vertices, gained, more, np.empty(walkers, np.int64), np.empty(walkers, np.int64))


class StepLog:
    """Steps of blocks of `block` walks, `width` cells each."""

    def __init__(self, store: ArrayStore, walks: int, block: int, width: int, dtype: np.dtype[Any]) -> None:
        self.blocks, self._block, self._width = -(-walks // block), block, width
        self.found = found_arrays(np.empty((min(block, walks), min(GAINED, width)), dtype))
        self.steps = 0
        self._store = store
        self._stored: list[list[StoredArrays]] = [[] for _ in range(self.blocks)]
        self._pending: list[list[Records]] = [[] for _ in range(self.blocks)]
        self._bytes = [0] * self.blocks
        size = self.found.vertices.size
        self._cells, self._vertices = np.empty(size, np.uint32), np.empty(size, dtype)

    def collect(self, number: int, found: Found, step: NDArray[np.uint32]) -> None:
        """Take what the walkers of a block have found, a part of `found`; step: the steps that each has made.

        Raises InputError or RunError where the scratch file cannot be written.
        """
        count = int(collect_steps(self._width, step, found.vertices, found.gained, self._cells, self._vertices))
        if count == 0:
            return
        self.steps += count
        self._pending[number].append((self._cells[:count].copy(), self._vertices[:count].copy()))
        self._bytes[number] += count * (4 + self._vertices.itemsize)
        if self._bytes[number] >= PENDING_BYTES * self._block:
            self._keep(number)

    def fill(self, number: int, walks: NDArray[Any]) -> None:
        """Write the steps of a block into its walks, and forget them. Raises RunError where they cannot be read."""
        cells = walks.reshape(-1)
        for records in self._pending[number]:
            place_steps(*records, cells)
        for stored in self._stored[number]:
            size = stored.nbytes // sum(kind.itemsize for kind in stored.dtypes)
            place_steps(*(self._store.read(stored, array, 0, size) for array in range(2)), cells)
            self._store.forget(stored)
        self._pending[number], self._stored[number] = [], []

    def _keep(self, number: int) -> None:
        cells, vertices = (np.concatenate(arrays) for arrays in zip(*self._pending[number], strict=True))
        self._stored[number].append(self._store.keep(cells, vertices))
        self._pending[number], self._bytes[number] = [], 0
