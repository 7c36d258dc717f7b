"""Owns the log: edges in input order with the ids they came with, until those can be mapped.

Only conversions that change ids need it. Edges that the input can give once more are not kept: to read them again takes
less than to write them to fresh memory, and no memory.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor
from functools import partial

from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.convert.sort.memory_quota import ArrayStore, MemoryQuota, ScratchFiles, StoredArrays
from penstock.storage.convert.sort.weights import narrow
from penstock.storage.format.edges import EdgeBatch

Entry = tuple[Callable[[], EdgeBatch], StoredArrays | None]
"""How to read a batch, and where it is if the log keeps it."""


class EdgeLog:
    """Batches in input order, ids as they came; in memory while there is room, then on disk.

    pool: reads them, at most ``ahead`` at a time.
    """

    def __init__(self, quota: MemoryQuota, scratch: ScratchFiles, name: str, *, pool: Executor, ahead: int) -> None:
        self.edges = 0
        self.payload_bytes = 0
        self._name, self._pool, self._ahead = name, pool, ahead
        self._store = ArrayStore(quota, scratch)
        self._batches: deque[Entry] = deque()

    @property
    def in_memory(self) -> bool:
        """Whether memory holds all of it."""
        return not self._store.on_disk and self.payload_bytes > 0

    def add(self, batch: EdgeBatch) -> None:
        """Keep a batch, its weights narrowed. Raises as `narrow` and `ArrayStore.keep`."""
        self.edges += len(batch)
        if batch.again is not None:
            self._batches.append((batch.again, None))
            return
        weights = () if batch.weights is None else (narrow(batch.weights, self._name)[0],)
        arrays = (batch.sources, batch.targets, *weights)
        self.payload_bytes += sum(array.nbytes for array in arrays)
        stored = self._store.keep(*arrays)
        self._batches.append((partial(self._stored, stored, len(batch)), stored))

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order. Raises RunError where the disk failed, or the input was changed."""
        return (batch for batch, _ in self._read(self._batches))

    def drain(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order; what was yielded is forgotten. Raises as `batches`."""
        for batch, stored in self._read(self._batches.popleft() for _ in range(len(self._batches))):
            yield batch
            if stored is not None:
                self._store.forget(stored)
        self._store.close()

    def _read(self, some: Iterable[Entry]) -> Generator[tuple[EdgeBatch, StoredArrays | None]]:
        return ordered_map(self._pool, lambda one: (one[0](), one[1]), some, self._ahead)

    def _stored(self, stored: StoredArrays, edges: int) -> EdgeBatch:
        arrays = [self._store.read(stored, number, 0, edges) for number in range(len(stored.dtypes))]
        return EdgeBatch(arrays[0], arrays[1], arrays[2] if arrays[2:] else None)
