"""Orders of vertices (`--order`): all by falling degree, or the best-connected first and the others as they were.

Degrees are those of the input, parallel edges and self-loops included (a self-loop counts at both its ends). Ties keep
the order that the vertices have without `--order`. Degrees are counted in several threads, each in an array of its own
(counters that threads share would wait for memory one by one), as many as the memory given holds; they are added up in
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
from penstock.storage.convert.sort.read import NewIds
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.schema import vertex_dtype

HUB_SHARE = 0.08
HEAVY = 1 << 16
"""Vertices of this degree and more are sorted by comparison; they are few. The others are counted, class by class."""


def by_degree(degrees: NDArray[np.uint32]) -> NDArray[Any]:
    """New ids by old id, in the order of falling degree: a counting sort, two passes over the degrees."""
    new = np.empty(len(degrees), vertex_dtype(len(degrees)))
    heavy = np.flatnonzero(degrees >= HEAVY)
    heavy = heavy[np.argsort(-degrees[heavy].astype(np.int64), kind="stable")]
    new[heavy] = np.arange(len(heavy), dtype=new.dtype)
    counts = np.zeros(HEAVY, np.int64)
    count_classes(degrees, counts)
    starts = np.cumsum(counts[::-1])[::-1] - counts + len(heavy)
    number_classes(degrees, starts, new)
    return new


@jit
def count_classes(degrees: NDArray[np.uint32], counts: NDArray[np.int64]) -> None:
    """Count the vertices of each degree below that of heavy ones."""
    for v in range(len(degrees)):
        if degrees[v] < len(counts):
            counts[degrees[v]] += 1


@jit
def number_classes(degrees: NDArray[np.uint32], starts: NDArray[np.int64], new: NDArray[Any]) -> None:
    """Number the vertices of each degree from its start on, in their order; starts are advanced."""
    for v in range(len(degrees)):
        degree = degrees[v]
        if degree < len(starts):
            new[v] = starts[degree]
            starts[degree] += 1


def hubs_first(out: NDArray[np.uint32], into: NDArray[np.uint32]) -> NDArray[Any]:
    """New ids by old id: the top 8 % by falling score first (ties by id), then the others by id.

    HyTGraph's equation 4: H(v) = Dout(v) Din(v) / (max Dout max Din). The constant divisor changes nothing and is left
    out. Vertices of score 0 are no hubs.
    """
    score = out.astype(np.float64) * into
    vertices = len(score)
    count = min(int(np.ceil(HUB_SHARE * vertices)), int(np.count_nonzero(score)))
    new = np.empty(vertices, vertex_dtype(vertices))
    if count == 0:
        new[:] = np.arange(vertices, dtype=new.dtype)
        return new
    least = np.partition(score, vertices - count)[vertices - count]
    above = np.flatnonzero(score > least)
    level = np.flatnonzero(score == least)[: count - len(above)]
    above = above[np.argsort(-score[above], kind="stable")]
    rest = np.ones(vertices, bool)
    rest[above] = False
    rest[level] = False
    at = 0
    for part in (above, level, np.flatnonzero(rest)):
        new[part] = np.arange(at, at + len(part), dtype=new.dtype)
        at += len(part)
    return new


def inverse(new: NDArray[Any]) -> NDArray[Any]:
    """Old ids by new id."""
    old = np.empty_like(new)
    invert(new, old)
    return old


@jit
def invert(new: NDArray[Any], old: NDArray[Any]) -> None:
    """Write every vertex to where its new id says."""
    for v in range(len(new)):
        old[new[v]] = v


def permuted(new: NDArray[Any], first: NewIds | None) -> NewIds:
    """What makes new ids of some: they become others by ``first`` (None: they stay), then those that ``new`` has."""

    def renamed(ids: NDArray[Any]) -> NDArray[Any]:
        inner = ids if first is None else first(ids)
        found = np.empty(len(inner), new.dtype)
        take(new, inner, found)
        return found

    return renamed


@jit
def take(values: NDArray[Any], places: NDArray[Any], found: NDArray[Any]) -> None:
    """Copy the values at some places, without Python's lock and without a look at bounds."""
    for i in range(len(places)):
        found[i] = values[np.int64(places[i])]


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
