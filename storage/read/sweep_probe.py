"""Measures a `Reader` on a graph file as a sweep uses it: partitions in order, several at once, into slabs.

Beside it the same reads without decoding, so that what the disk gives, what the reader takes of it and what decoding
costs can be compared.
"""

from __future__ import annotations

import time
from collections import deque

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.measurement import RateSample
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.format.graph import Adjacency
from penstock.storage.format.read_plan import PAGE, ReadRange, plan_reads, split_bytes
from penstock.storage.read.pending_read import PendingRead, ReadRecord
from penstock.storage.read.reader import Reader
from penstock.storage.read.targets import PayloadTarget

PARTITION_BYTES = 32 << 20
"""Of neighbors, decoded: the usual size of a partition."""
AHEAD = 4
"""Partitions that are read at once."""


class SweepProbe:
    """Part of a sweep over an adjacency on disk, without weights; its slabs are allocated, and touched, once.

    payloads: the payloads are fetched, not unpacked. Raises ValueError where the file does not tell their sizes.
    """

    def __init__(self, adjacency: Adjacency, *, payloads: bool = False) -> None:
        self.adjacency = adjacency
        self._step = max(1, PARTITION_BYTES // (adjacency.chunk_edges * adjacency.neighbor_dtype.itemsize))
        self._starts: NDArray[np.int64] | None = None
        length, kind = min(adjacency.edges, self._step * adjacency.chunk_edges), adjacency.neighbor_dtype
        if payloads:
            words = adjacency.payload_words(False)
            if words is None:
                raise ValueError(f"the file does not tell the sizes of the payloads of the {adjacency.direction}-edges")
            self._starts, kind = np.concatenate([[0], np.cumsum(words)]), np.dtype(np.uint32)
            length = max(int(words[self.chunks(number)].sum()) for number in range(self.partitions))
        self._slabs = deque(aligned_empty(length, kind) for _ in range(AHEAD))
        for slab in self._slabs:
            slab[:: PAGE // slab.itemsize] = 0

    @property
    def partitions(self) -> int:
        """How many partitions the adjacency has."""
        return -(-self.adjacency.chunks // self._step)

    def chunks(self, partition: int) -> NDArray[np.int64]:
        """Return the chunks of a partition; after the last one the first follows."""
        first = partition % self.partitions * self._step
        return np.arange(first, min(first + self._step, self.adjacency.chunks))

    def reads(self, partition: int, threads: int) -> list[ReadRange]:
        """Return the reads of a partition, as a reader with so many decoding threads merges them."""
        frames = self.adjacency.neighbors
        assert frames is not None, "the graph is on disk"
        chunks = self.chunks(partition)
        lengths = frames.lengths[chunks]
        return plan_reads(
            frames.shard[chunks], frames.offsets[chunks], lengths, split_bytes(int(lengths.sum()), threads)
        )

    def run(self, reader: Reader, first: int, seconds: float) -> RateSample:
        """Fetch partitions from number ``first`` on, at least one; none is begun after ``seconds``, or a second time.

        The sample counts bytes read from disk; it is `at` the number of the reader's threads.
        """
        began = time.perf_counter()
        total, pending = ReadRecord(), deque[PendingRead]()
        try:
            for partition in range(first, first + self.partitions):
                if partition > first and time.perf_counter() - began >= seconds:
                    break
                if len(pending) == AHEAD:
                    total += pending.popleft().result()
                pending.append(self._fetch(reader, partition))
            while pending:
                total += pending.popleft().result()
        finally:
            for left in pending:
                left.cancel()
        return RateSample(reader.threads, total.bytes, time.perf_counter() - began)

    def _fetch(self, reader: Reader, partition: int) -> PendingRead:
        chunks, slab = self.chunks(partition), self._slabs[0]
        self._slabs.rotate()
        if self._starts is None:
            return reader.fetch(self.adjacency, chunks, int(chunks[0]) * self.adjacency.chunk_edges, slab)
        target = PayloadTarget(slab, int(self._starts[chunks[0]]), self._starts)
        return reader.fetch_payloads(self.adjacency, chunks, target)
