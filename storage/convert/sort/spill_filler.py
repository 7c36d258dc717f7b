"""Owns the first stage: batches of edges become runs of the spill, packed in parallel.

Small batches are joined first, so that a run is large enough to be read back in few pieces.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.sort.run import KeyPacking, KeyRun, pack_edges
from penstock.storage.convert.sort.seen_ids import SeenIds
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.ingest.core.edges import EdgeBatch

NewIds = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How batches become runs, which have about ``run_edges`` edges and are packed ``in_flight`` at a time.

    keys: what a run looks like. new_ids, new_targets: the new ids of sources and of targets; None: ids are kept.
    seen: where the ids that occur are marked, if anywhere.
    """

    run_edges: int
    in_flight: int
    keys: KeyPacking
    new_ids: NewIds | None = None
    new_targets: NewIds | None = None
    seen: SeenIds | None = None

    def renamed(self, batch: EdgeBatch) -> EdgeBatch:
        """The batch in new ids."""
        if self.new_ids is None or self.new_targets is None:
            return batch
        return EdgeBatch(self.new_ids(batch.sources), self.new_targets(batch.targets), batch.weights)


class SpillFiller:
    """Batches on their way into a spill: joined, packed in threads, added in order. Call `finish` when all are in."""

    def __init__(self, spill: Spill, packing: Packing, pool: Executor) -> None:
        self._spill = spill
        self._packing = packing
        self._pool = pool
        self._held: list[EdgeBatch] = []
        self._count = 0
        self._under_way: deque[tuple[Future[KeyRun], int]] = deque()

    def fill(self, batches: Iterable[EdgeBatch]) -> Iterator[int]:
        """Take all batches; yield how many of their edges have come into the spill, each time that some have."""
        for batch in batches:
            if came := self.add(batch):
                yield came
        yield self.finish()

    def add(self, batch: EdgeBatch) -> int:
        """Take a batch; return how many edges, of this one and those before, have come into the spill."""
        if len(batch) == 0:
            return 0
        came = 0
        most = self._packing.run_edges
        if self._held and (
            self._count + len(batch) > most or (self._held[0].weights is None) != (batch.weights is None)
        ):
            came += self._pack()
        self._held.append(batch)
        self._count += len(batch)
        return came + (self._pack() if self._count >= most else 0)

    def finish(self) -> int:
        """Put everything that is held into the spill. Returns as `add`."""
        return (self._pack() if self._held else 0) + self._collect(0)

    def _pack(self) -> int:
        self._under_way.append((self._pool.submit(_packed, self._held, self._packing), self._count))
        self._held, self._count = [], 0
        return self._collect(self._packing.in_flight - 1)

    def _collect(self, most: int) -> int:
        came = 0
        while len(self._under_way) > most:
            packed, edges = self._under_way.popleft()
            self._spill.add(packed.result())
            del packed  # and with it what the spill has written to disk
            came += edges
        return came


def _packed(batches: list[EdgeBatch], packing: Packing) -> KeyRun:
    """One run of some batches. They are forgotten here first: joined, they are in memory once."""
    batch = packing.renamed(batches[0]) if len(batches) == 1 else _joined(batches, packing)
    batches.clear()
    if packing.seen is not None:
        packing.seen.see(batch, drop_loops=packing.keys.drop_loops)
    return pack_edges(batch, packing.keys)


def _joined(batches: list[EdgeBatch], packing: Packing) -> EdgeBatch:
    """Batches one after another in new ids; these are found batch by batch, in memory that is used again and again."""
    weights = [part.weights for part in batches if part.weights is not None]
    joined = np.concatenate(weights) if weights else None
    if packing.new_ids is None:
        sources = np.concatenate([part.sources for part in batches])
        return EdgeBatch(sources, np.concatenate([part.targets for part in batches]), joined)
    edges, at = sum(map(len, batches)), 0
    ends = np.empty((2, 0), np.uint32)
    for part in map(packing.renamed, batches):
        ends = np.empty((2, edges), part.sources.dtype) if at == 0 else ends
        ends[:, at : at + len(part)] = part.sources, part.targets
        at += len(part)
    return EdgeBatch(ends[0], ends[1], joined)
