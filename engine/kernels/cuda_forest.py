"""Disjoint-set forest kernels on a GPU: the same links as the host's `forest.py`, one thread an edge or a vertex.

Who climbs a tree lets every vertex on the way point to its grandparent: on a grid all rows grow at once, and
their trees would else be as deep as they are long. ECL-CC's intermediate pointer jumping (Jaiganesh and Burtscher,
HPDC 2018).
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda import BLOCK, LANE_SHIFT, LANES, PER_THREAD, TILE, cuda, device, kernel
from penstock.engine.kernels.cuda_edges import RUN, ZERO, find_listed, first_from, tile_bounds
from penstock.engine.kernels.cuda_parts import ONE, all_threads, degree_of, find_row, global_thread, mark, row_start


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
def link_heads(view, e1, rows, index, each, forest, base):  # type: ignore[no-untyped-def]
    """Link each row of [v0, v1) with its first `each` neighbors that the view holds."""
    bases, offsets, shift = index
    neighbors, _, e0 = view
    u = rows[0] + np.uint64(global_thread())
    while u < rows[1]:
        start = row_start(bases, offsets, shift, u)
        end = min(min(row_start(bases, offsets, shift, u + ONE), start + each), e1)
        for e in range(max(start, e0) - e0, end - e0):
            link(forest, u - base, np.uint64(neighbors[np.uint64(e)]) - base)
        u += np.uint64(all_threads())


@kernel
def link_rows(view, e1, rows, index, starts, done_each, skipped, symmetric, forest, base):  # type: ignore[no-untyped-def]
    """Link every edge of the view, but for the first `done_each` of a row and the tree `skipped`, as on the host."""
    bases, offsets, shift = index
    neighbors, _, e0 = view
    bounds = cuda.shared.array(2, np.uint64)
    tile = e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
    while tile * np.int64(TILE) < e1:
        tile_bounds(tile, e0, e1, rows, starts, bounds, ZERO)
        for k in range(PER_THREAD):
            e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
            if e >= e0 and e < e1:
                u = find_row(bases, offsets, shift, bounds[0], bounds[1], e)
                inside = np.uint64(forest[u - base]) == skipped
                if e >= row_start(bases, offsets, shift, u) + done_each and not (inside and symmetric):
                    v = np.uint64(neighbors[np.uint64(e - e0)]) - base
                    if not (inside and np.uint64(forest[v]) == skipped):
                        link(forest, u - base, v)
        tile += np.int64(cuda.gridDim.x)


@kernel
def mark_outside(index, forest, giant, words, base):  # type: ignore[no-untyped-def]
    """Set the bit of every vertex that has edges and whose root is not `giant`."""
    bases, offsets, shift = index
    v = np.uint64(global_thread())
    while v < np.uint64(forest.shape[0]):
        if np.uint64(forest[v]) != giant and degree_of(bases, offsets, shift, v + base) > 0:
            mark(words, v)
        v += np.uint64(all_threads())


@kernel
def link_listed(  # type: ignore[no-untyped-def]
    view, e1, rows, index, skew, vertices, work, count, forest, base
):
    """Link the edges of the listed vertices whose rows lie in [v0, v1), line by line as `push_list` does."""
    bases, offsets, shift = index
    neighbors, _, e0 = view
    bounds = cuda.shared.array(2, np.int64)
    if cuda.threadIdx.x < 2:
        bounds[cuda.threadIdx.x] = first_from(vertices, count, rows[cuda.threadIdx.x])
    cuda.syncthreads()
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
            start = row_start(bases, offsets, shift, u)
            end = row_start(bases, offsets, shift, u + ONE)
            e = ((((start + skew) >> LANE_SHIFT) + (k - work[i])) << LANE_SHIFT) - skew + lane
            if e >= max(start, e0) and e < min(end, e1):
                link(forest, u - base, np.uint64(neighbors[np.uint64(e - e0)]) - base)
        line += (all_threads() >> LANE_SHIFT) * np.int64(RUN)


@kernel
def compress(forest):  # type: ignore[no-untyped-def]
    """Let every vertex point to its root."""
    v = np.uint64(global_thread())
    while v < np.uint64(forest.shape[0]):
        root = np.uint64(forest[v])
        while np.uint64(forest[root]) != root:
            root = np.uint64(forest[root])
        forest[v] = root
        v += np.uint64(all_threads())


@kernel
def merge_forests(forest, other):  # type: ignore[no-untyped-def]
    """Join in `forest` whatever `other` has joined."""
    v = np.uint64(global_thread())
    while v < np.uint64(forest.shape[0]):
        link(forest, v, np.uint64(other[v]))
        v += np.uint64(all_threads())
