"""Independent verifiers: what BFS, SSSP, PageRank and WCC must answer, without Penstock.

Owns one plain statement of each answer in numpy, heapq and loops, and one `check_` function per
program that compares an answer with it and names the first vertex that differs. Imports nothing of
penstock, so an error there cannot hide here; is itself held against networkx in test_oracles.py.
Refuses speed: graphs of up to a few million arcs, the last few answers kept (leave them as they are).

One verifier per kernel, serial and simple: the idea of the GAP benchmark (Beamer, Asanovic,
Patterson, 2015).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

UNREACHED = -1


@dataclass(frozen=True, eq=False)
class EdgeList:
    """A graph as its author wrote it: `m` edges between vertices 0 … vertices - 1.

    `weights` is None or an array of shape (m,). In an undirected graph every edge leads both ways;
    a self-loop leads once.
    """

    vertices: int
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.generic] | None = None
    directed: bool = True

    @cached_property
    def arcs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.generic] | None]:
        """Every direction an edge leads in: sources, targets, weights, each of shape (arcs,)."""
        sources = np.asarray(self.sources, dtype=np.int64)
        targets = np.asarray(self.targets, dtype=np.int64)
        if self.directed:
            return sources, targets, self.weights
        back = sources != targets
        weights = self.weights
        if weights is not None:
            weights = np.concatenate([weights, weights[back]])
        return (
            np.concatenate([sources, targets[back]]),
            np.concatenate([targets, sources[back]]),
            weights,
        )

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.generic] | None]:
        """CSR of `arcs`: offsets (vertices + 1,), neighbors (arcs,), weights (arcs,) or None.

        Rows are in ascending order of neighbor, then of weight.
        """
        sources, targets, weights = self.arcs
        keys = (targets, sources) if weights is None else (weights, targets, sources)
        order = np.lexsort(keys)
        offsets = np.zeros(self.vertices + 1, dtype=np.int64)
        np.cumsum(np.bincount(sources, minlength=self.vertices), out=offsets[1:])
        return offsets, targets[order], None if weights is None else weights[order]

    def reversed(self) -> EdgeList:
        """The same edges, each leading the other way."""
        return EdgeList(self.vertices, self.targets, self.sources, self.weights, self.directed)


@lru_cache(maxsize=4)
def bfs_levels(edges: EdgeList, source: int) -> NDArray[np.int64]:
    """Hops from `source` to every vertex, UNREACHED where there is no path. Shape (vertices,)."""
    offsets, neighbors, _ = edges.rows
    level = np.full(edges.vertices, UNREACHED, dtype=np.int64)
    level[source] = 0
    frontier = [source]
    depth = 0
    while frontier:
        depth += 1
        found = []
        for vertex in frontier:
            for neighbor in neighbors[offsets[vertex] : offsets[vertex + 1]].tolist():
                if level[neighbor] == UNREACHED:
                    level[neighbor] = depth
                    found.append(neighbor)
        frontier = found
    return level


@lru_cache(maxsize=4)
def bfs_parents(edges: EdgeList, source: int) -> NDArray[np.int64]:
    """The smallest in-neighbor one level up; `source` for itself; UNREACHED where not reached."""
    level = bfs_levels(edges, source)
    sources, targets, _ = edges.arcs
    tree = (level[sources] != UNREACHED) & (level[sources] + 1 == level[targets])
    nobody = edges.vertices
    parent = np.full(edges.vertices, nobody, dtype=np.int64)
    np.minimum.at(parent, targets[tree], sources[tree])
    parent[parent == nobody] = UNREACHED
    parent[source] = source
    return parent


@lru_cache(maxsize=4)
def shortest_distances(edges: EdgeList, source: int) -> list[float | int | None]:
    """Dijkstra's distances from `source`, None where there is no path; weight 1 if unweighted.

    Integer weights give exact Python integers; float weights are added along the path in float64.
    """
    offsets, neighbors, weights = edges.rows
    starts, ends = offsets.tolist(), neighbors.tolist()
    lengths = [1] * len(ends) if weights is None else weights.tolist()
    distance: list[float | int | None] = [None] * edges.vertices
    heap: list[tuple[float | int, int]] = [(0, source)]
    while heap:
        here, vertex = heapq.heappop(heap)
        if distance[vertex] is not None:
            continue
        distance[vertex] = here
        for edge in range(starts[vertex], starts[vertex + 1]):
            if distance[ends[edge]] is None:
                heapq.heappush(heap, (here + lengths[edge], ends[edge]))
    return distance


def pagerank(
    edges: EdgeList,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-12,
    sweeps: int | None = None,
    personalization: NDArray[np.float64] | None = None,
    weighted: bool = False,
) -> NDArray[np.float64]:
    """PageRank by power iteration from the teleport vector, float64, shape (vertices,), sum 1.

    Parallel edges count each, by their weights if `weighted`. A vertex without out-weight spreads its
    rank over `personalization` (scaled to sum 1; uniform if None), as networkx does. Iterates until
    the L1 change is below `tolerance`, or exactly `sweeps` times where that is given.
    """
    count = edges.vertices
    if count == 0:
        return np.zeros(0)
    sources, targets, weights = edges.arcs
    counts = np.ones(len(sources)) if weights is None or not weighted else weights.astype(np.float64)
    degree = np.bincount(sources, weights=counts, minlength=count)
    home = np.ones(count) if personalization is None else np.asarray(personalization, np.float64)
    home = home / home.sum()
    rank = np.full(count, 1.0 / count)
    dangling = degree == 0
    share = np.divide(1.0, degree, out=np.zeros(count), where=~dangling)
    done = 0
    while sweeps is None or done < sweeps:
        arriving = np.bincount(targets, weights=counts * (rank * share)[sources], minlength=count)
        fresh = damping * (arriving + rank[dangling].sum() * home) + (1.0 - damping) * home
        change = float(np.abs(fresh - rank).sum())
        rank = fresh
        done += 1
        if sweeps is None and change < tolerance:
            break
    return rank


@lru_cache(maxsize=4)
def components(edges: EdgeList) -> NDArray[np.int64]:
    """For every vertex the smallest vertex of its weakly connected component. Shape (vertices,)."""
    leader = list(range(edges.vertices))

    def find(vertex: int) -> int:
        while leader[vertex] != vertex:
            leader[vertex] = leader[leader[vertex]]
            vertex = leader[vertex]
        return vertex

    for one, other in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True):
        low, high = sorted((find(one), find(other)))
        leader[high] = low
    return np.array([find(vertex) for vertex in range(edges.vertices)], dtype=np.int64)


def signed(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Integers as int64, the largest value of an unsigned type (not reached) as UNREACHED."""
    values = np.asarray(values)
    if values.dtype.kind == "u":
        missing = values == np.iinfo(values.dtype).max
        return np.where(missing, UNREACHED, values.astype(np.int64))
    return values.astype(np.int64)


def check_bfs(
    edges: EdgeList,
    source: int,
    level: NDArray[np.generic],
    parent: NDArray[np.generic] | None = None,
) -> None:
    """Levels are hop counts; a parent is the smallest in-neighbor of the level before."""
    _same("level", signed(level), bfs_levels(edges, source))
    if parent is not None:
        _same("parent", signed(parent), bfs_parents(edges, source))


def check_sssp(
    edges: EdgeList,
    source: int,
    distance: NDArray[np.generic],
    *,
    tolerance: float = 0.0,
) -> None:
    """Distances equal Dijkstra's: integers exactly, floats within relative `tolerance`."""
    truth = shortest_distances(edges, source)
    distance = np.asarray(distance)
    assert distance.shape == (edges.vertices,), f"distance has shape {distance.shape}"
    absent = np.inf if distance.dtype.kind == "f" else int(np.iinfo(distance.dtype).max)
    for vertex, (got, right) in enumerate(zip(distance.tolist(), truth, strict=True)):
        if right is None:
            assert got == absent, f"distance of {vertex} is {got}, but there is no path"
        else:
            assert abs(got - right) <= tolerance * right, f"distance of {vertex} is {got}, not {right}"


def check_pagerank(
    edges: EdgeList,
    rank: NDArray[np.floating],
    *,
    l1: float = 1e-9,
    damping: float = 0.85,
    sweeps: int | None = None,
    personalization: NDArray[np.float64] | None = None,
    weighted: bool = False,
) -> None:
    """Ranks are within `l1` of the truth, summed over all vertices."""
    how = {"sweeps": sweeps, "personalization": personalization, "weighted": weighted}
    truth = pagerank(edges, damping=damping, **how)  # type: ignore[arg-type]
    rank = np.asarray(rank, dtype=np.float64)
    assert rank.shape == truth.shape, f"rank has shape {rank.shape}, not {truth.shape}"
    error = np.abs(rank - truth)
    assert np.isfinite(error).all(), f"rank of {int(np.argmin(np.isfinite(rank)))} is not finite"
    worst = int(np.argmax(error)) if error.size else 0
    assert error.sum() <= l1, (
        f"ranks are {error.sum():.3g} from the truth in L1, more than {l1:.3g}; "
        f"worst at {worst}: {rank[worst]!r}, not {truth[worst]!r}"
    )


def check_wcc(edges: EdgeList, component: NDArray[np.generic]) -> None:
    """Every vertex is named after the smallest vertex of its component."""
    _same("component", signed(component), components(edges))


def _same(name: str, got: NDArray[np.int64], right: NDArray[np.int64]) -> None:
    assert got.shape == right.shape, f"{name} has shape {got.shape}, not {right.shape}"
    wrong = np.flatnonzero(got != right)
    assert wrong.size == 0, (
        f"{name} is wrong at {wrong.size} of {got.size} vertices; "
        f"first {wrong[0]}: {got[wrong[0]]}, not {right[wrong[0]]}"
    )
