"""Disjoint-set forest kernels on a GPU: the same links as `host/union_find.py`, one thread an edge or a vertex.

Who climbs a tree lets every vertex on the way point to its grandparent: on a grid all rows grow at once, and
their trees would else be as deep as they are long. ECL-CC's intermediate pointer jumping (Jaiganesh and Burtscher,
HPDC 2018).
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    BIT,
    NONE,
    ONE,
    all_threads,
    degree_of,
    find_row,
    global_thread,
    mark,
    row_start,
)
from penstock.engine.kernels.cuda.driver import BLOCK, LANE_SHIFT, LANES, PER_THREAD, TILE, cuda, device, kernel
from penstock.engine.kernels.cuda.push import RUN, find_listed, list_bounds, tile_bounds


@device
def link(forest, a, b):  # type: ignore[no-untyped-def]
    """Join the trees of `a` and `b` (uint64 indices).

    A store may be overtaken by another's, and be undone: both are ancestors, and only what is no root is written, so
    no link is lost.
    """
    low, high = np.uint64(forest[a]), np.uint64(forest[b])
    while low != high:
        if low > high:
            low, high = high, low
        parent = np.uint64(forest[high])
        if parent == low:
            return
        if parent == high:
            before = np.uint64(cuda.atomic.min(forest, high, forest.dtype.type(low)))
            if before == high:
                return
            parent = before
        above = np.uint64(forest[parent])
        if above != parent:
            forest[high] = above
        high, low = above, np.uint64(forest[low])


@kernel
def link_first_neighbors(view, index, each, forest, base):  # type: ignore[no-untyped-def]
    """Link each row of [v0, v1) with its first `each` neighbors that the view holds."""
    u = view.v0 + np.uint64(global_thread())
    while u < view.v1:
        start = row_start(index, u)
        end = min(min(row_start(index, u + ONE), start + each), view.e1)
        for e in range(max(start, view.e0) - view.e0, end - view.e0):
            link(forest, u - base, np.uint64(view.neighbors[np.uint64(e)]) - base)
        u += np.uint64(all_threads())


@kernel
def link_rows(view, index, starts, done_each, skipped, symmetric, forest, base):  # type: ignore[no-untyped-def]
    """Link every edge of the view, but for the first `done_each` of a row and the tree `skipped`, as on the host."""
    bounds = cuda.shared.array(2, np.uint64)
    tile = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
    while tile * np.int64(TILE) < view.e1:
        tile_bounds(tile, view, starts, bounds)
        for k in range(PER_THREAD):
            e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
            if e >= view.e0 and e < view.e1:
                u = find_row(index, bounds[0], bounds[1], e)
                inside = np.uint64(forest[u - base]) == skipped
                if e >= row_start(index, u) + done_each and not (inside and symmetric):
                    v = np.uint64(view.neighbors[np.uint64(e - view.e0)]) - base
                    if not (inside and np.uint64(forest[v]) == skipped):
                        link(forest, u - base, v)
        tile += np.int64(cuda.gridDim.x)


@kernel
def mark_outside(index, forest, largest, first, last, words, base):  # type: ignore[no-untyped-def]
    """Set the bit of every vertex of [first, last) that has edges and whose root is not `largest`."""
    v = first + np.uint64(global_thread())
    while v < last:
        if np.uint64(forest[v]) != largest and degree_of(index, v + base) > 0:
            mark(words, v)
        v += np.uint64(all_threads())


@kernel
def link_listed(view, index, listed, forest, base):  # type: ignore[no-untyped-def]
    """Link the edges of the listed vertices in the view's rows, line by line as `push_list` does."""
    vertices, work, count = listed
    bounds = cuda.shared.array(2, np.int64)
    list_bounds(vertices, count, view, bounds)
    first, last = bounds[0], bounds[1]
    if first == last:
        return
    lane = global_thread() & np.int64(LANES - 1)
    line = work[first] + (global_thread() >> LANE_SHIFT) * np.int64(RUN)
    while line < work[last]:
        i = find_listed(work, first, last, line)
        for k in range(line, min(line + np.int64(RUN), work[last])):
            while work[i + 1] <= k:
                i += 1
            u = np.uint64(vertices[i])
            start = row_start(index, u)
            end = row_start(index, u + ONE)
            e = (((start >> LANE_SHIFT) + (k - work[i])) << LANE_SHIFT) + lane
            if e >= max(start, view.e0) and e < min(end, view.e1):
                link(forest, u - base, np.uint64(view.neighbors[np.uint64(e - view.e0)]) - base)
        line += (all_threads() >> LANE_SHIFT) * np.int64(RUN)


@kernel
def compress(first, last, forest):  # type: ignore[no-untyped-def]
    """Let every vertex of [first, last) point to its root."""
    v = first + np.uint64(global_thread())
    while v < last:
        root = np.uint64(forest[v])
        while np.uint64(forest[root]) != root:
            root = np.uint64(forest[root])
        forest[v] = root
        v += np.uint64(all_threads())


@kernel
def mark_linked(forest, first, last, words):  # type: ignore[no-untyped-def]
    """The bits of `words` are the vertices outside [first, last) that are no roots: a word a thread."""
    word = global_thread()
    while word < np.int64(words.shape[0]):
        found = NONE
        start = word * np.int64(32)
        for v in range(start, min(start + np.int64(32), np.int64(forest.shape[0]))):
            if np.int64(forest[v]) != v and not (v >= first and v < last):
                found = np.uint32(found | np.uint32(BIT << np.uint32(v - start)))
        words[word] = found
        word += all_threads()


@kernel
def link_pairs(forest, pairs):  # type: ignore[no-untyped-def]
    """Link each vertex in the first half of `pairs` with that in the same place of the second."""
    half = np.uint64(pairs.shape[0] // 2)
    at = np.uint64(global_thread())
    while at < half:
        link(forest, np.uint64(pairs[at]), np.uint64(pairs[half + at]))
        at += np.uint64(all_threads())
