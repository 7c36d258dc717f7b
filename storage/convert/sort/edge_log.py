"""Owns the log: edges in input order with the ids they came with, until those can be mapped.

Only conversions that change ids need it.
"""

from collections import deque
from collections.abc import Iterator

from penstock.storage.convert.sort.memory_quota import ArrayStore, MemoryQuota, ScratchFiles, StoredArrays
from penstock.storage.convert.sort.weights import narrow
from penstock.storage.format.edges import EdgeBatch


class EdgeLog:
    """Batches in input order, ids as they came; in memory while there is room, then on disk."""

    def __init__(self, quota: MemoryQuota, scratch: ScratchFiles, name: str) -> None:
        self.edges = 0
        self.payload_bytes = 0
        self._name = name
        self._store = ArrayStore(quota, scratch)
        self._batches: deque[tuple[StoredArrays, int]] = deque()

    @property
    def on_disk(self) -> bool:
        """Whether some of it did not fit into memory."""
        return self._store.on_disk

    def add(self, batch: EdgeBatch) -> None:
        """Keep a batch, its weights narrowed. Raises as `narrow` and `ArrayStore.keep`."""
        weights = () if batch.weights is None else (narrow(batch.weights, self._name)[0],)
        arrays = (batch.sources, batch.targets, *weights)
        self.payload_bytes += sum(array.nbytes for array in arrays)
        self.edges += len(batch)
        self._batches.append((self._store.keep(*arrays), len(batch)))

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order."""
        for stored, edges in self._batches:
            yield self._batch(stored, edges)

    def drain(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order; what was yielded is forgotten."""
        while self._batches:
            stored, edges = self._batches.popleft()
            yield self._batch(stored, edges)
            self._store.forget(stored)
        self._store.close()

    def _batch(self, stored: StoredArrays, edges: int) -> EdgeBatch:
        arrays = [self._store.read(stored, number, 0, edges) for number in range(len(stored.dtypes))]
        return EdgeBatch(arrays[0], arrays[1], arrays[2] if arrays[2:] else None)
