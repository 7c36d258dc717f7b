"""Owns the log: edges in input order with the ids they came with, until those can be mapped.

Only conversions that change ids need it. In memory while there is room, then on disk.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.sort.memory_quota import MemoryQuota, Scratch, ScratchFile
from penstock.storage.convert.sort.weights import narrow
from penstock.storage.format.edges import EdgeBatch


@dataclass(slots=True)
class _Entry:
    arrays: tuple[NDArray[Any] | None, ...]
    dtypes: tuple[np.dtype[Any] | None, ...]
    edges: int
    starts: tuple[int, ...] = ()
    taken: int = 0


class EdgeLog:
    """Batches in input order, ids as they came; in memory while there is room, then on disk."""

    def __init__(self, room: MemoryQuota, scratch: Scratch, name: str) -> None:
        self.edges = 0
        self.payload_bytes = 0
        self._room = room
        self._scratch = scratch
        self._name = name
        self._entries: deque[_Entry] = deque()
        self._file: ScratchFile | None = None

    def add(self, batch: EdgeBatch) -> None:
        """Keep a batch, its weights narrowed. Raises as `narrow` and `ScratchFile.append`."""
        weights = None if batch.weights is None else narrow(batch.weights, self._name)[0]
        arrays = (batch.sources, batch.targets, weights)
        dtypes = tuple(None if array is None else array.dtype for array in arrays)
        entry = _Entry(arrays, dtypes, len(batch))
        size = sum(array.nbytes for array in arrays if array is not None)
        self.payload_bytes += size
        if self._room.take(size):
            entry.taken = size
        else:
            self._file = self._file or self._scratch.open()
            file = self._file
            entry.starts = tuple(-1 if array is None else file.append(array) for array in arrays)
            entry.arrays = ()
        self.edges += len(batch)
        self._entries.append(entry)

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order."""
        for entry in self._entries:
            yield self._batch(entry)

    def drain(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order; what was yielded is forgotten."""
        while self._entries:
            entry = self._entries.popleft()
            yield self._batch(entry)
            self._room.give(entry.taken)
        if self._file is not None:
            self._file.close()

    def _batch(self, entry: _Entry) -> EdgeBatch:
        arrays = entry.arrays
        if entry.starts:
            arrays = tuple(map(self._read, entry.starts, entry.dtypes, [entry.edges] * 3))
        sources, targets, weights = arrays
        assert sources is not None
        assert targets is not None
        return EdgeBatch(sources, targets, weights)

    def _read(self, start: int, dtype: np.dtype[Any] | None, edges: int) -> NDArray[Any] | None:
        if dtype is None or self._file is None:
            return None
        array = np.empty(edges, dtype)
        self._file.read(start, array)
        return array
