"""Owns graphs made from a seed: R-MAT, uniform, grid and a web-like copying model, as sources.

Every edge is a pure function of (seed, edge number), after Salmon et al.'s counter-based random
numbers: threads and batch sizes cannot change a graph, and any part of it can be made alone. R-MAT is
Chakrabarti, Zhan and Faloutsos', with the Graph500's parameters and its scrambled vertex numbers, four
levels drawn at once from Walker's alias table. The web model is Kumar et al.'s copying model with its
copies resolved by recomputation, as Sanders and Schulz do. Refuses to remove duplicates or
self-loops: conversion does that, when asked.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError
from penstock.storage.base.parallel_map import pooled_map
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest import synthetic_kernels as kernels

BATCH_EDGES = 1 << 18
"""Edges made at a time by each thread: 2 MiB of 32-bit pairs."""

Ends = tuple[NDArray[Any], NDArray[Any]]
Fill = Callable[[int, Ends], None]
"""fill(first edge number, (sources, targets)) writes consecutive edges into two arrays."""

_WORD = (1 << 64) - 1


class SyntheticSource:
    """Edges of a generated graph in bounded batches; the same edges for any number of threads.

    Attributes:
        name: what made it, with its parameters.
        known_vertices: vertices, numbered from 0; isolated ones exist.
        edges: edges it will give.
        undirected: True if every edge stands for both directions.
        threads: how many make edges at once; every core unless set otherwise.
        weight_range: smallest and largest weight (both possible), or None.
        total_bytes, bytes_done: size as pairs of ids plus weights, and how much was given so far.
    """

    def __init__(
        self,
        name: str,
        size: tuple[int, int],
        fill: Fill,
        *,
        seed: int,
        weights: tuple[int, int] | None = None,
        undirected: bool = False,
    ) -> None:
        self.name = name
        self.known_vertices, self.edges = size
        self.undirected = undirected
        self.weight_range = weights
        self._fill = fill
        self._weight_key = np.uint64(_key(seed, 99))
        self.vertex_dtype = np.dtype(np.uint32 if self.known_vertices <= 1 << 32 else np.uint64)
        self.weight_dtype = None if weights is None else np.min_scalar_type(weights[1])
        edge_bytes = 2 * self.vertex_dtype.itemsize
        self._edge_bytes = edge_bytes + (self.weight_dtype.itemsize if self.weight_dtype else 0)
        self.total_bytes = self.edges * self._edge_bytes
        self.bytes_done = 0
        self.threads = cores()

    def batches(self) -> Generator[EdgeBatch]:
        """Yield all edges in order of their numbers, about threads + 2 batches in memory."""
        self.bytes_done = 0
        firsts = range(0, self.edges, BATCH_EDGES)
        with closing(pooled_map(self.batch, firsts, self.threads, "generate")) as batches:
            for batch in batches:
                self.bytes_done += len(batch) * self._edge_bytes
                yield batch

    def batch(self, first: int, count: int = BATCH_EDGES) -> EdgeBatch:
        """Make edges first .. first + count - 1 (fewer at the end)."""
        count = max(0, min(count, self.edges - first))
        sources = np.empty(count, self.vertex_dtype)
        targets = np.empty(count, self.vertex_dtype)
        self._fill(first, (sources, targets))
        weights = None
        if self.weight_range is not None:
            low, high = self.weight_range
            weights = np.empty(count, self.weight_dtype)
            span = np.uint64(high - low + 1)
            kernels.fill_weights(np.uint64(first), weights, np.uint64(low), span, self._weight_key)
        return EdgeBatch(sources, targets, weights)


def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 1,
    *,
    weights: tuple[int, int] | None = None,
    quadrants: tuple[float, float, float] = (0.57, 0.19, 0.19),
    scramble: bool = True,
) -> SyntheticSource:
    """R-MAT: 2^scale vertices, edge_factor * 2^scale directed edges, duplicates and loops kept.

    ``quadrants`` are Graph500's a, b, c (d is the rest). ``scramble`` renumbers the vertices by a
    seeded bijection, as Graph500 asks, so that degree says nothing about the number.

    Raises:
        InputError: scale outside 0..40, a negative size, probabilities that are none.
    """
    _require(0 <= scale <= 40, "scale", scale, "0 to 40")
    _require(edge_factor >= 0, "edge factor", edge_factor, "0 or more")
    a, b, c = quadrants
    _require(min(a, b, c, 1 - a - b - c) >= -1e-12, "quadrants", quadrants, "a + b + c <= 1")
    table = _alias_table(a, b, c)
    keys = np.array([_key(seed, stream) for stream in range(5)], np.uint64)

    def fill(first: int, ends: Ends) -> None:
        kernels.fill_rmat(np.uint64(first), ends, scale, table, keys, scramble)

    name = f"rmat scale={scale} edge_factor={edge_factor} seed={seed}" + _note(weights, scramble)
    return SyntheticSource(name, (1 << scale, edge_factor << scale), fill, seed=seed, weights=_range(weights))


def uniform(vertices: int, edges: int, seed: int = 1, *, weights: tuple[int, int] | None = None) -> SyntheticSource:
    """Edges whose two ends are drawn evenly and independently (Erdos-Renyi with repetition)."""
    _require(0 <= vertices <= 1 << 40, "vertices", vertices, "0 to 2^40")
    _require(edges >= 0, "edges", edges, "0 or more")
    _require(vertices > 0 or edges == 0, "vertices", vertices, "at least 1 to have edges")
    key = np.uint64(_key(seed, 10))

    def fill(first: int, ends: Ends) -> None:
        kernels.fill_uniform(np.uint64(first), ends, np.uint64(vertices), key)

    name = f"uniform vertices={vertices} edges={edges} seed={seed}" + _note(weights)
    return SyntheticSource(name, (vertices, edges), fill, seed=seed, weights=_range(weights))


def grid(rows: int, columns: int, seed: int = 1, *, weights: tuple[int, int] | None = (1, 255)) -> SyntheticSource:
    """Road-like: vertex r * columns + c is joined to its right and lower neighbor; undirected.

    Low degree, long diameter and, by default, weights 1..255.
    """
    _require(rows >= 0, "rows", rows, "0 or more")
    _require(columns >= 0, "columns", columns, "0 or more")
    _require(rows * columns <= 1 << 40, "rows * columns", rows * columns, "up to 2^40")
    across = rows * max(0, columns - 1)
    edges = across + max(0, rows - 1) * columns

    def fill(first: int, ends: Ends) -> None:
        kernels.fill_grid(first, ends, columns, across)

    name = f"grid rows={rows} columns={columns} seed={seed}" + _note(weights)
    return SyntheticSource(name, (rows * columns, edges), fill, seed=seed, weights=_range(weights), undirected=True)


def web(
    vertices: int, edge_factor: int = 16, seed: int = 1, *, weights: tuple[int, int] | None = None
) -> SyntheticSource:
    """Web-like: pages copy links of nearby earlier pages; else they link near, seldom far.

    Skewed in- and out-degrees, pages without links, similar lists on neighboring pages (so it
    compresses well), mean out-degree ``edge_factor``.
    """
    _require(0 <= vertices <= 1 << 40, "vertices", vertices, "0 to 2^40")
    _require(edge_factor >= 0, "edge factor", edge_factor, "0 or more")
    key = np.uint64(_key(seed, 20))
    profile = _degree_profile(edge_factor)

    def fill(first: int, ends: Ends) -> None:
        kernels.fill_web(first, ends, vertices, edge_factor, profile, key)

    name = f"web vertices={vertices} edge_factor={edge_factor} seed={seed}" + _note(weights)
    size = (vertices, vertices * edge_factor)
    return SyntheticSource(name, size, fill, seed=seed, weights=_range(weights))


def _require(allowed: bool, what: str, value: object, way_out: str) -> None:
    if not allowed:
        raise InputError(f"{what} {value} cannot be generated; give {way_out}")


def _range(weights: tuple[int, int] | None) -> tuple[int, int] | None:
    if weights is not None:
        low, high = weights
        _require(0 <= low <= high < 1 << 32, "weights", f"{low}..{high}", "for instance 1..63")
    return weights


def _note(weights: tuple[int, int] | None, scramble: bool = True) -> str:
    weighed = "" if weights is None else f" weights={weights[0]}..{weights[1]}"
    return weighed + ("" if scramble else " scramble=no")


def _key(seed: int, stream: int) -> int:
    """One 64-bit word for each (seed, stream), by splitmix64's finish applied twice."""
    word = (seed & _WORD) ^ (seed >> 64 & _WORD)
    for step in (stream + 1, 0x5851F42D4C957F2D):
        word = (word + step * 0x9E3779B97F4A7C15) & _WORD
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
        word ^= word >> 31
    return word


def _alias_table(a: float, b: float, c: float) -> NDArray[np.uint32]:
    """Walker's alias table of four R-MAT levels at once, uint32[256].

    Entry i: threshold (24 bits) << 8 | alias. Outcome: source bits << 4 | target bits.
    """
    quadrants = np.array([[a, b], [c, 1 - a - b - c]])
    chance = np.ones((1, 1))
    for _ in range(4):
        chance = np.kron(chance, quadrants)
    share = np.maximum(chance.ravel(), 0) * 256
    small = [i for i in range(256) if share[i] < 1]
    large = [i for i in range(256) if share[i] >= 1]
    alias = np.arange(256, dtype=np.uint32)
    threshold = np.full(256, (1 << 24) - 1, np.uint32)
    while small and large:
        low, high = small.pop(), large[-1]
        threshold[low] = min(int(share[low] * (1 << 24)), (1 << 24) - 1)
        alias[low] = high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            small.append(large.pop())
    return threshold << np.uint32(8) | alias


def _degree_profile(edge_factor: int) -> NDArray[np.int64]:
    """Prefix sums int64[65] of the out-degrees in a block of 64 pages: skewed, some of them zero."""
    wish = np.arange(1, kernels.PAGES + 1, dtype=np.float64) ** -0.75
    wish[-kernels.PAGES // 8 :] = 0
    ends = np.round(np.cumsum(wish) / wish.sum() * kernels.PAGES * edge_factor)
    return np.concatenate([[0], ends]).astype(np.int64)
