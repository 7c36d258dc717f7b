"""Orders of vertices (`--order`): by falling degree, the best-connected first, or along depth-first paths.

Degrees are those of the input, parallel edges and self-loops included (a self-loop counts at both its ends). Ties keep
the order that the vertices have without `--order`. Degrees are counted in several threads, each in an array of its own
(counters that threads share would wait for memory one by one), as many as the memory given holds; they are added up in
the end. A count stops at 2^32 - 1.

Along paths, strongly connected components are in topological order. Vertices are numbered in reverse postorder of a
depth-first search: a path is followed to its end, and what an edge leads to has the larger number unless the edge
closes a cycle. The aim is that of DiGraph's paths (Zhang et al., ASPLOS 2019, Algorithm 1), whose paths have a bounded
length instead; `../../decisions/order.md` compares both.

The search is semi-external (SEMI-DFS: Sibeyn, Abello, Meyer, SPAA 2002): vertices have their state in memory, edges are
read in batches. A forest is searched again together with a buffer of edges that contradict it, until no edge does, for
PASSES passes or SEARCHES buffers at most; then the order is as far as it got.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.base.threads import ordered_map
from penstock.storage.convert.sort.spill_filler import NewIds
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.core.edges import EdgeBatch

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


PASSES = 2
"""How often all edges are read at most. A graph whose edges fit into the buffer takes one."""
SEARCHES = 16
"""How many buffers are searched at most, which bounds what the order costs where memory is short."""
EDGE_BYTES = 12
"""What an edge in the buffer takes with ids of 4 bytes: both ends, and its place in the row of its source."""
LEAST_EDGES = 1 << 12


class PathOrder:
    """Depth-first search of a graph whose edges come in batches, pass by pass.

    room: bytes for edges, of which there are so many; both: every edge also leads back. The state of
    a vertex is 36 bytes, with its edge of the forest.
    """

    def __init__(self, vertices: int, room: int, edges: int, *, both: bool = False) -> None:
        ids = vertex_dtype(vertices + 1)
        edges = min(edges * (1 + both), max(LEAST_EDGES, room // (EDGE_BYTES // 4 * ids.itemsize)))
        self._both = both
        self._sources, self._targets = np.empty(max(1, edges), ids), np.empty(max(1, edges), ids)
        self._buffered = 0
        self._searches = 0
        self._before = np.arange(vertices - 1, -1, -1, dtype=ids)
        self._after = self._before.copy()
        self._parent = np.full(vertices, vertices, ids)

    def read(self, batches: Iterable[EdgeBatch]) -> bool:
        """Read all edges once; returns whether another pass may change the order."""
        found = 0
        for batch in batches:
            for sources, targets in ((batch.sources, batch.targets), (batch.targets, batch.sources))[: 1 + self._both]:
                at = 0
                while True:
                    before = self._buffered
                    self._buffered, at = keep_edges(
                        sources, targets, at, self._before, self._after, self._searches == 0,
                        self._sources, self._targets, before,
                    )  # fmt: skip
                    found += self._buffered - before
                    if at == len(sources):
                        break
                    self._search()
                    if self._searches == SEARCHES:
                        return False
        if self._buffered:
            self._search()
            return 1 < self._searches < SEARCHES
        return found > 0

    def new_ids(self) -> NDArray[Any]:
        """New ids by old id."""
        vertices = len(self._after)
        last = self._after.dtype.type(max(0, vertices - 1))
        return np.asarray(last - self._after, dtype=vertex_dtype(vertices))

    def _search(self) -> None:
        """Search the forest and the buffered edges, which gives the next forest; empty the buffer."""
        vertices = len(self._before)
        starts, ends = np.zeros(vertices + 1, np.int64), np.empty(vertices, np.int64)
        sequence = np.empty_like(self._before)
        neighbors = np.empty(vertices + self._buffered, self._before.dtype)
        forest = self._before, self._after, self._parent
        edges = self._sources[: self._buffered], self._targets[: self._buffered]
        fill_rows(forest, edges, sequence, starts, ends, neighbors)
        search(forest, sequence, starts, ends, neighbors)
        self._buffered = 0
        self._searches += 1


def by_paths(read: Callable[[], Iterable[EdgeBatch]], order: PathOrder) -> NDArray[Any]:
    """New ids by old id; read: gives all edges, in vertices from 0, each time anew."""
    for _ in range(PASSES):
        if not order.read(read()):
            break
    return order.new_ids()


@jit
def keep_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    first: int,
    before: NDArray[Any],
    after: NDArray[Any],
    every: bool,
    kept_sources: NDArray[Any],
    kept_targets: NDArray[Any],
    kept: int,
) -> tuple[int, int]:
    """Buffer edges from the first on: every one, or those whose target is searched only after their source is left.

    Returns how many edges the buffer holds, and the edge to go on with: the buffer is full, or all were seen.
    """
    for i in range(first, len(sources)):
        u, v = np.int64(sources[i]), np.int64(targets[i])
        if u == v:
            continue
        if every or (before[u] < before[v] and after[u] < after[v]):
            if kept == len(kept_sources):
                return kept, i
            kept_sources[kept] = u
            kept_targets[kept] = v
            kept += 1
    return kept, len(sources)


@jit
def fill_rows(
    forest: Any, edges: Any, sequence: NDArray[Any], starts: NDArray[Any], ends: NDArray[Any], neighbors: NDArray[Any]
) -> None:
    """Rows in the reverse of the order in which they are followed: first buffered edges, then those of the forest.

    sequence: the vertices as the forest has them.
    """
    before, _, parent = forest
    sources, targets = edges
    vertices = len(before)
    for v in range(vertices):
        sequence[np.int64(before[v])] = v
        if parent[v] != vertices:
            starts[np.int64(parent[v]) + 1] += 1
    for i in range(len(sources)):
        starts[np.int64(sources[i]) + 1] += 1
    for v in range(vertices):
        starts[v + 1] += starts[v]
        ends[v] = starts[v]
    for i in range(len(sources)):
        u = np.int64(sources[i])
        neighbors[ends[u]] = targets[i]
        ends[u] += 1
    for at in range(vertices - 1, -1, -1):
        child = np.int64(sequence[at])
        if parent[child] != vertices:
            u = np.int64(parent[child])
            neighbors[ends[u]] = child
            ends[u] += 1


@jit
def search(
    forest: Any, sequence: NDArray[Any], starts: NDArray[Any], ends: NDArray[Any], neighbors: NDArray[Any]
) -> None:
    """Search depth first from every vertex of the sequence that is not yet reached; `ends` are moved to the starts.

    forest: when each vertex is reached, when it is left, and from where it was reached (the number of vertices: it is a
    root). The way back is along the last of these.
    """
    before, after, parent = forest
    vertices = len(before)
    parent[:] = vertices
    before[:] = vertices
    reached = left = 0
    for at in range(vertices):
        v = np.int64(sequence[at])
        if before[v] != vertices:
            continue
        before[v] = reached
        reached += 1
        while v != vertices:
            if ends[v] == starts[v]:
                after[v] = left
                left += 1
                v = np.int64(parent[v])
                continue
            ends[v] -= 1
            w = np.int64(neighbors[ends[v]])
            if before[w] == vertices:
                before[w] = reached
                reached += 1
                parent[w] = v
                v = w
