"""Degrees of all vertices, counted batch by batch in several threads, each in an array of its own.

Counters that threads share would need atomic additions, which wait for memory one by one; those of one thread overlap.
So there are as many arrays as threads, fewer where the memory given does not hold so many, and they are added up in
the end. A count stops at 2^32 - 1.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.format.edges import EdgeBatch

MOST = (1 << 32) - 1
RANGE = 1 << 18
"""Vertices whose counts are added up at a time."""


def count_degrees(
    batches: Iterable[EdgeBatch],
    renamed: Callable[[EdgeBatch], EdgeBatch],
    vertices: int,
    *,
    apart: bool,
    pool: Executor,
    copies: int,
) -> NDArray[np.uint32]:
    """Count both ends of all edges; ids are below ``vertices`` once ``renamed``.

    Returns (2, vertices): degrees of sources and of targets ``apart``, or (1, vertices): their sum.
    """
    rows = 2 if apart else 1
    counters: SimpleQueue[NDArray[np.uint32]] = SimpleQueue()
    held = [np.zeros((rows, vertices), np.uint32) for _ in range(copies)]
    for counter in held:
        counters.put(counter)

    def count(batch: EdgeBatch) -> None:
        batch = renamed(batch)
        counter = counters.get()
        try:
            count_ids(batch.sources, counter[0])
            count_ids(batch.targets, counter[-1])
        finally:
            counters.put(counter)

    for _ in ordered_map(pool, count, batches, copies + 1):
        pass
    flat = [counter.reshape(-1) for counter in held]
    total = flat[0]
    for _ in ordered_map(pool, partial(_add_up, flat), range(0, len(total), RANGE), copies + 1):
        pass
    return held[0]


def _add_up(counters: list[NDArray[np.uint32]], first: int) -> None:
    """Add one range of all counters to the first."""
    for other in counters[1:]:
        add_counts(counters[0][first : first + RANGE], other[first : first + RANGE])


@jit
def count_ids(ids: NDArray[Any], counts: NDArray[np.uint32]) -> None:
    """Count every id once."""
    for i in range(len(ids)):
        vertex = np.int64(ids[i])
        count = counts[vertex]
        counts[vertex] = count + np.uint32(count != np.uint32(MOST))


@jit
def add_counts(counts: NDArray[np.uint32], others: NDArray[np.uint32]) -> None:
    """Add other counts."""
    for i in range(len(counts)):
        counts[i] = min(np.uint64(counts[i]) + np.uint64(others[i]), np.uint64(MOST))
