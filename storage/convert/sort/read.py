"""Owns the first stage: a source's batches become runs of the spill, packed in parallel.

Small batches are joined first, so that a run is large enough to be read back in few pieces.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.convert.sort.run import KeyRun, Packing, pack_edges
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.format.edges import EdgeBatch

Item = TypeVar("Item")
NewIds = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What is done to a batch: joined to runs of ``run_edges`` edges, ids of sources replaced by ``new_ids``
    (None: kept) and those of targets by ``new_targets``, packed; ``in_flight`` at a time."""

    run_edges: int
    in_flight: int
    packing: Packing
    new_ids: NewIds | None = None
    new_targets: NewIds | None = None

    def renamed(self, batch: EdgeBatch) -> EdgeBatch:
        """The batch in new ids."""
        if self.new_ids is None or self.new_targets is None:
            return batch
        return EdgeBatch(self.new_ids(batch.sources), self.new_targets(batch.targets), batch.weights)


@contextmanager
def closed_after(items: Iterator[Item]) -> Iterator[Iterator[Item]]:
    """Yield a generator and close it when the block ends, so that its threads and files end too."""
    try:
        yield items
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


class Backlog:
    """Batches on their way into a spill while something else goes on: joined, packed in threads,
    added in order. Call `finish` when all are in."""

    def __init__(self, spill: Spill, steps: Steps, pool: Executor) -> None:
        self._spill = spill
        self._steps = steps
        self._pool = pool
        self._held: list[EdgeBatch] = []
        self._count = 0
        self._packing: deque[Future[KeyRun]] = deque()

    def add(self, batch: EdgeBatch) -> None:
        """Take a batch."""
        self._held.append(batch)
        self._count += len(batch)
        if self._count >= self._steps.run_edges:
            self._pack()

    def finish(self) -> None:
        """Put everything that is held into the spill."""
        if self._held:
            self._pack()
        while self._packing:
            self._spill.add(self._packing.popleft().result())

    def _pack(self) -> None:
        self._packing.append(self._pool.submit(_packed, self._held, self._steps))
        self._held, self._count = [], 0
        while len(self._packing) >= self._steps.in_flight:
            self._spill.add(self._packing.popleft().result())


def joined(batches: Iterable[EdgeBatch], edges: int) -> Iterator[list[EdgeBatch]]:
    """Put neighboring small batches together, at most about ``edges`` in each list."""
    held: list[EdgeBatch] = []
    count = 0
    for batch in batches:
        changed = held and (held[0].weights is None) != (batch.weights is None)
        if held and (changed or count + len(batch) > edges):
            yield held
            held, count = [], 0
        held.append(batch)
        count += len(batch)
    if held:
        yield held


def _packed(batches: list[EdgeBatch], steps: Steps) -> KeyRun:
    """One run of some batches. They are forgotten here first: joined, they lie in memory once."""
    batch = _concatenated(batches)
    batches.clear()
    return pack_edges(steps.renamed(batch), steps.packing)


def _concatenated(batches: list[EdgeBatch]) -> EdgeBatch:
    if len(batches) == 1:
        return batches[0]
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return EdgeBatch(
        np.concatenate([batch.sources for batch in batches]),
        np.concatenate([batch.targets for batch in batches]),
        np.concatenate(weights) if weights else None,
    )


def fill_spill(spill: Spill, batches: Iterable[EdgeBatch], steps: Steps, pool: Executor) -> Iterator[int]:
    """Pack batches into the spill, in order; yield the edges of each run when it is in."""

    def pack(run: list[EdgeBatch]) -> tuple[int, KeyRun]:
        return sum(map(len, run)), _packed(run, steps)

    runs = joined(batches, steps.run_edges)
    with closing(ordered_map(pool, pack, runs, steps.in_flight)) as packed:
        for edges, run in packed:
            spill.add(run)
            yield edges
