"""Disjoint-set forest kernels: the combiner `union`.

A forest is an array of parents; a root is its own parent and is the smallest id of its tree, for
links always hang the larger root under the smaller. The answer does not depend on order or threads.
Sampling and the skipping of the largest tree are Afforest's (Sutton, Ben-Nun, Barak, IPDPS 2018).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.bitmap import ONE, row_start
from penstock.engine.kernels.cached import inline, kernel
from penstock.engine.kernels.edges import find_row
from penstock.engine.kernels.intrinsics import atomic_add, atomic_min

PIECE = 16384


@inline
def link(forest, a, b):  # type: ignore[no-untyped-def]
    """Join the trees of `a` and `b` (uint64 indices)."""
    low, high = np.uint64(forest[a]), np.uint64(forest[b])
    while low != high:
        if low > high:
            low, high = high, low
        parent = np.uint64(forest[high])
        if parent == low:
            return
        if parent == high:
            before = np.uint64(atomic_min(forest, high, forest.dtype.type(low)))
            if before == high:
                return
            parent = before
        high = np.uint64(forest[parent])
        low = np.uint64(forest[low])


@kernel("link_heads")
def link_heads(view, e1, index, v0, v1, neighbors_each, forest, base):  # type: ignore[no-untyped-def]
    """Link each row of [v0, v1) with its first `neighbors_each` neighbors that the view holds."""
    bases, offsets, shift = index
    neighbors, _, e0 = view
    pieces = (np.int64(v1 - v0) + PIECE - 1) // PIECE
    for piece in numba.prange(pieces):
        first = v0 + np.uint64(piece * PIECE)
        for row in range(first, min(first + np.uint64(PIECE), v1)):
            u = np.uint64(row)
            start = row_start(bases, offsets, shift, u)
            end = min(row_start(bases, offsets, shift, u + ONE), start + neighbors_each, e1)
            for e in range(max(start, e0) - e0, end - e0):
                link(forest, u - base, np.uint64(neighbors[np.uint64(e)]) - base)


@kernel("link_rows")
def link_rows(  # type: ignore[no-untyped-def]
    view, e1, index, v0, v1, done_each, skipped, symmetric, threads, block, forest, base
):
    """Link every edge of the view, but for the first `done_each` of a row and the tree `skipped`.

    An edge inside the tree rooted at `skipped` cannot change anything; where the graph is stored
    symmetric, whole rows of that tree are passed over (the other end sees the edge too).
    """
    bases, offsets, shift = index
    neighbors, _, e0 = view
    blocks = (e1 - e0 + block - 1) // block
    counter = np.zeros(1, dtype=np.int64)
    for _ in numba.prange(threads):
        while True:
            number = atomic_add(counter, np.uint64(0), np.int64(1))
            if number >= blocks:
                break
            low = e0 + number * block
            high = min(low + block, e1)
            u = find_row(bases, offsets, shift, v0, v1, low)
            start = row_start(bases, offsets, shift, u)
            while start < high and u < v1:
                end = row_start(bases, offsets, shift, u + ONE)
                first, last = max(start + done_each, low), min(end, high)
                inside = np.uint64(forest[u - base]) == skipped
                if first < last and not (inside and symmetric):
                    for e in range(first - e0, last - e0):
                        v = np.uint64(neighbors[np.uint64(e)]) - base
                        if not (inside and np.uint64(forest[v]) == skipped):
                            link(forest, u - base, v)
                start = end
                u += ONE


@kernel("compress")
def compress(forest):  # type: ignore[no-untyped-def]
    """Let every vertex point to its root."""
    for v in numba.prange(forest.shape[0]):
        root = np.uint64(forest[v])
        while np.uint64(forest[root]) != root:
            root = np.uint64(forest[root])
        forest[v] = root


@kernel("merge_forests")
def merge_forests(forest, other):  # type: ignore[no-untyped-def]
    """Join in `forest` whatever `other` has joined."""
    for v in numba.prange(forest.shape[0]):
        link(forest, np.uint64(v), np.uint64(other[v]))


def most_frequent(forest: Any, samples: int = 1024) -> tuple[int, float]:
    """The root met most often among evenly spread vertices, and how often; forest compressed; (-1, 0) if empty."""
    if len(forest) == 0:
        return -1, 0.0
    step = max(1, len(forest) // samples)
    roots, counts = np.unique(forest[step // 2 :: step], return_counts=True)
    return int(roots[np.argmax(counts)]), float(counts.max() / counts.sum())
