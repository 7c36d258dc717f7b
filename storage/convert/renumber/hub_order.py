"""Owns hub sorting: the vertices through which most goes come first, so that they lie together.

HyTGraph (equation 4) scores a vertex H(v) = Dout(v) Din(v) / (max Dout max Din); the top 8 % are
placed in front by descending score, the rest keep their order. The constant divisor changes
nothing and is left out. Degrees are those of the input, parallel edges included.
"""

from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.format.edges import EdgeBatch

HUB_SHARE = 0.08


class DegreeCount:
    """Out- and in-degrees of ``vertices`` vertices, counted by range on several threads."""

    def __init__(self, vertices: int, workers: int, pool: Executor) -> None:
        self.out = np.zeros(vertices, np.uint32)
        self.into = np.zeros(vertices, np.uint32)
        self._pool = pool
        self._ranges = [(vertices * i // workers, vertices * (i + 1) // workers) for i in range(workers)]

    def add(self, batch: EdgeBatch) -> None:
        """Count a batch; its ids are below ``vertices``."""
        tasks = [
            self._pool.submit(count_range, ids, first, last, degrees)
            for ids, degrees in ((batch.sources, self.out), (batch.targets, self.into))
            for first, last in self._ranges
        ]
        for task in tasks:
            task.result()


@jit
def count_range(ids: NDArray[Any], first: int, last: int, degrees: NDArray[np.uint32]) -> None:
    """Count the ids in [first, last): nobody else writes there."""
    for i in range(len(ids)):
        vertex = np.int64(ids[i])
        if first <= vertex < last:
            degrees[vertex] += np.uint32(1)


def hub_order(out: NDArray[np.uint32], into: NDArray[np.uint32]) -> NDArray[Any]:
    """Old ids in their new order: hubs by descending score (ties by id), then the others by id."""
    score = out.astype(np.float64) * into
    vertices = len(score)
    count = min(int(np.ceil(HUB_SHARE * vertices)), int(np.count_nonzero(score)))
    dtype = np.uint32 if vertices <= 1 << 32 else np.uint64
    if count == 0:
        return np.arange(vertices, dtype=dtype)
    least = np.partition(score, vertices - count)[vertices - count]
    above = np.flatnonzero(score > least)
    level = np.flatnonzero(score == least)[: count - len(above)]
    above = above[np.argsort(-score[above], kind="stable")]
    rest = np.ones(vertices, bool)
    rest[above] = False
    rest[level] = False
    return np.concatenate([above, level, np.flatnonzero(rest)]).astype(dtype)


def inverse(order: NDArray[Any]) -> NDArray[Any]:
    """New id of each old id."""
    new = np.empty_like(order)
    new[order] = np.arange(len(order), dtype=order.dtype)
    return new
