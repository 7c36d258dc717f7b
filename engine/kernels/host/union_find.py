"""Disjoint-set forest kernels: the combiner `union`.

A forest is an array of parents; a root is its own parent and is the smallest id of its tree, for
links always hang the larger root under the smaller. The answer does not depend on order or threads.
Sampling and the skipping of the largest tree are Afforest's (Sutton, Ben-Nun, Barak, IPDPS 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import CACHED, ONE, find_row, is_marked, mark, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.interface import EdgeView
from penstock.storage.base.thread_atomics import atomic_add, atomic_min

PIECE = 16384
HASHED = np.uint64(0x9E3779B97F4A7C15)
EDGES_AHEAD, PARENTS_AHEAD, ROOTS_AHEAD = np.uint64(32), np.uint64(20), np.uint64(10)
"""Rows whose edges, the parents of whose neighbors, and the parents of these are loaded before their turn."""


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


@inline
def first_edge(view, index, u):  # type: ignore[no-untyped-def]
    """Where the first edge of row `u`, or of the view's last row, is in the view, or the edge nearest to it."""
    start = row_start(index, min(u, view.v1 - ONE))
    return min(max(start, view.e0), view.e1 - ONE) - view.e0


@inline
def first_edges(view, index, u):  # type: ignore[no-untyped-def]
    """The same, and the edge behind it."""
    first = np.uint64(first_edge(view, index, u))
    return first, min(first + ONE, np.uint64(view.e1 - view.e0) - ONE)


@loop_kernel("link_first_neighbors")
def link_first_neighbors(first_step, end_step, view, index, neighbors_each, forest, base):  # type: ignore[no-untyped-def]
    """Link each row with its first `neighbors_each` neighbors that the view holds."""
    view = EdgeView(*view)
    far = len(forest) > CACHED
    for piece in range(first_step, end_step):
        first = view.v0 + np.uint64(piece * PIECE)
        for row in range(first, min(first + np.uint64(PIECE), view.v1)):
            u = np.uint64(row)
            if far:
                prefetch(view.neighbors, first_edge(view, index, u + EDGES_AHEAD))
                for e in first_edges(view, index, u + PARENTS_AHEAD):
                    prefetch(forest, np.uint64(view.neighbors[e]) - base)
                for e in first_edges(view, index, u + ROOTS_AHEAD):
                    prefetch(forest, np.uint64(forest[np.uint64(view.neighbors[e]) - base]))
            start = row_start(index, u)
            end = min(row_start(index, u + ONE), start + neighbors_each, view.e1)
            for e in range(max(start, view.e0) - view.e0, end - view.e0):
                link(forest, u - base, np.uint64(view.neighbors[np.uint64(e)]) - base)


@loop_kernel("link_rows", grain=1)
def link_rows(  # type: ignore[no-untyped-def]
    first_step, end_step, view, index, done_each, skipped, symmetric, block, forest, base
):
    """Link every edge of the view, but for the first `done_each` of a row and the tree `skipped`.

    An edge inside the tree rooted at `skipped` cannot change anything; where the graph is stored
    symmetric, whole rows of that tree are passed over (the other end sees the edge too).
    """
    view = EdgeView(*view)
    for number in range(first_step, end_step):
        low = view.e0 + number * block
        high = min(low + block, view.e1)
        u = find_row(index, view.v0, view.v1, low)
        start = row_start(index, u)
        while start < high and u < view.v1:
            end = row_start(index, u + ONE)
            first, last = max(start + done_each, low), min(end, high)
            inside = np.uint64(forest[u - base]) == skipped
            if first < last and not (inside and symmetric):
                for e in range(first - view.e0, last - view.e0):
                    v = np.uint64(view.neighbors[np.uint64(e)]) - base
                    if not (inside and np.uint64(forest[v]) == skipped):
                        link(forest, u - base, v)
            start = end
            u += ONE


@loop_kernel("compress")
def compress(first_step, end_step, first, forest):  # type: ignore[no-untyped-def]
    """Let every vertex from `first` on point to its root, and who is on the way to it to its grandparent.

    Without the latter the trees of vertices before `first` would be climbed step by step each time. A grandparent is
    written as a minimum: another thread may have written the root there since, which is smaller.
    """
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        root = np.uint64(forest[v])
        parent = np.uint64(forest[root])
        while parent != root:
            above = np.uint64(forest[parent])
            if above != parent:
                atomic_min(forest, root, forest.dtype.type(above))
            root = above
            parent = np.uint64(forest[root])
        forest[v] = root


@loop_kernel("list_linked")
def list_linked(first_step, end_step, forest, begin, first, last, found, counts):  # type: ignore[no-untyped-def]
    """List who is no root and lies outside [first, last): of each piece so many, where the piece begins in `found`.

    begin: the vertex with which `found`, and the first piece, begins.
    """
    for piece in range(first_step, end_step):
        at = np.uint64(piece * PIECE)
        start = begin + at
        end = min(start + np.uint64(PIECE), begin + np.uint64(len(found)))
        for low, high in ((start, min(end, first)), (max(start, last), end)):
            for vertex in range(low, max(low, high)):
                found[at] = vertex  # without a branch, which nobody could foresee
                at += np.uint64(forest[np.uint64(vertex)] != vertex)
        counts[piece] = at - np.uint64(piece * PIECE)


@loop_kernel("link_pairs")
def link_pairs(first_step, end_step, forest, pairs):  # type: ignore[no-untyped-def]
    """Link each vertex in the first half of `pairs` with that in the same place of the second."""
    half = np.uint64(len(pairs) // 2)
    for step in range(first_step, end_step):
        at = np.uint64(step)
        link(forest, np.uint64(pairs[at]), np.uint64(pairs[half + at]))


@inline
def is_in(vertex, span):  # type: ignore[no-untyped-def]
    """Whether a vertex is in a span: the first, and the first that is not meant."""
    return span[0] <= vertex and vertex < span[1]


@inline
def join_held(forest, low, high, window, rows, changed):  # type: ignore[no-untyped-def]
    """Join the trees of two vertices as far as they lead through vertices in one of two spans, which are at hand.

    Returns what is still to be joined, of which the larger one is not at hand; one vertex twice if nothing is.
    changed: is set where a vertex of the rows outside the window gets a parent.
    """
    while low != high:
        if low > high:
            low, high = high, low
        inside = is_in(high, window)
        if not (inside or is_in(high, rows)):
            break
        parent = np.uint64(forest[high])
        if parent == high:
            if not inside:
                changed[0] = True
            parent = np.uint64(atomic_min(forest, high, forest.dtype.type(low)))
            if parent == high:
                return low, low
        high = parent
        if is_in(low, window) or is_in(low, rows):
            low = np.uint64(forest[low])
    return low, high


@inline
def list_pair(pairs, low, high):  # type: ignore[no-untyped-def]
    """List a pair, if that which was listed last of those with this hash is another."""
    ends, listed, latest = pairs
    slot = ((low * HASHED ^ high) * HASHED >> np.uint64(32)) & np.uint64(len(latest) - 1)
    known = latest[slot]
    if ends[known, 0] != low or ends[known, 1] != high:
        place = atomic_add(listed, np.uint64(0), 1)
        ends[place, 0], ends[place, 1] = low, high
        latest[slot] = place


@inline
def root_of(forest, v):  # type: ignore[no-untyped-def]
    """The root of the tree of `v` (uint64)."""
    parent = np.uint64(forest[v])
    while parent != v:
        v = parent
        parent = np.uint64(forest[v])
    return v


@inline
def join_marked(forest, held, giant, marks, low, high):  # type: ignore[no-untyped-def]
    """Join two vertices, the larger of which has no tree in memory, if one is in the tree of `giant`; whether it is."""
    words, summary = marks
    near = low < held
    if near and giant < held:
        inside = root_of(forest, low) == root_of(forest, giant)
    else:
        inside = not near and is_marked(words, low)
    if inside:
        mark(words, summary, high)
        return True
    if not is_marked(words, high):
        return False
    if near:
        link(forest, low, giant)
    else:
        mark(words, summary, low)
    return True


@loop_kernel("link_held", grain=1)
def link_held(  # type: ignore[no-untyped-def]
    first_step, end_step, view, index, block, forest, held, giant, marks, pairs, symmetric
):
    """Link the view's edges between vertices before `held`, whose trees are in memory; of others note what they join.

    Vertices from `held` on are marked where they are in the tree of `giant` (a vertex before it; `held` if none is
    large yet). Other pairs with one of them are listed in `pairs`, which has room for one of each edge.
    """
    view = EdgeView(*view)
    last = np.uint64(view.e1 - view.e0) - ONE
    for number in range(first_step, end_step):
        begin = view.e0 + number * block
        end = min(begin + block, view.e1)
        u = find_row(index, view.v0, view.v1, begin)
        start = row_start(index, u)
        while start < end and u < view.v1:
            behind = row_start(index, u + ONE)
            for e in range(max(start, begin) - view.e0, min(behind, end) - view.e0):
                at = np.uint64(e)
                prefetch(forest, min(np.uint64(view.neighbors[min(at + PARENTS_AHEAD, last)]), held))
                v = np.uint64(view.neighbors[at])
                low, high = min(u, v), max(u, v)
                if high < held:
                    link(forest, low, high)
                elif low == high or join_marked(forest, held, giant, marks, low, high):
                    continue
                elif not symmetric or v < u:  # else it is also in the row of the larger end, when more is known
                    list_pair(pairs, low, high)
            start = behind
            u += ONE


@loop_kernel("drop_joined_pairs")
def drop_joined_pairs(first_step, end_step, ends, forest, held, giant, marks):  # type: ignore[no-untyped-def]
    """Let listed pairs be vertex 0 twice that are joined by marks that came since."""
    for at in range(first_step, end_step):
        if join_marked(forest, held, giant, marks, np.uint64(ends[at, 0]), np.uint64(ends[at, 1])):
            ends[at, 0] = ends[at, 1] = 0


@loop_kernel("link_window", grain=1)
def link_window(  # type: ignore[no-untyped-def]
    first_step, end_step, view, index, block, forest, window, pairs, changed
):
    """Link the view's edges to the vertices of a window as far as its trees and those of the rows lead.

    What has to be joined elsewhere is listed in `pairs`, which has room for a pair of each edge.
    """
    view = EdgeView(*view)
    rows = view.v0, view.v1
    for number in range(first_step, end_step):
        begin = view.e0 + number * block
        end = min(begin + block, view.e1)
        u = find_row(index, view.v0, view.v1, begin)
        start = row_start(index, u)
        while start < end and u < view.v1:
            behind = row_start(index, u + ONE)
            for e in range(max(start, begin) - view.e0, min(behind, end) - view.e0):
                v = np.uint64(view.neighbors[np.uint64(e)])
                if not is_in(v, window):
                    continue
                low, high = np.uint64(forest[u]), np.uint64(forest[v])
                if low == high:
                    continue
                low, high = join_held(forest, low, high, window, rows, changed)
                if low != high:
                    list_pair(pairs, low, high)
            start = behind
            u += ONE


@loop_kernel("link_listed_pairs")
def link_listed_pairs(first_step, end_step, ends, forest, window, changed):  # type: ignore[no-untyped-def]
    """Join listed pairs as far as the trees of a window lead, and list what is left: of nothing, vertex 0 twice."""
    none = np.uint64(0), np.uint64(0)
    for at in range(first_step, end_step):
        low, high = join_held(forest, np.uint64(ends[at, 0]), np.uint64(ends[at, 1]), window, none, changed)
        if low == high:
            low, high = none
        ends[at, 0], ends[at, 1] = low, high


@loop_kernel("compress_held")
def compress_held(first_step, end_step, first, forest, window, changed):  # type: ignore[no-untyped-def]
    """Let every vertex from `first` on point to its root, or to what leads out of the window; changed: if one does."""
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        before = top = np.uint64(forest[v])
        while is_in(top, window):
            parent = np.uint64(forest[top])
            if parent == top:
                break
            top = parent
        if top != before:
            forest[v] = top
            if not changed[0]:
                changed[0] = True


def most_frequent(forest: Any, samples: int = 1024) -> tuple[int, float]:
    """The root met most often among evenly spread vertices, and how often; forest compressed; (-1, 0) if empty."""
    step = max(1, len(forest) // samples)
    return _most_of(forest[step // 2 :: step])


def most_linked(forest: Any, first: int, last: int, samples: int = 4096) -> tuple[int, float]:
    """The same among the vertices [first, last) that are no roots."""
    step = max(1, (last - first) // samples)
    vertices = np.arange(first + step // 2, last, step)
    roots = forest[vertices]
    return _most_of(roots[roots != vertices])


def _most_of(roots: Any) -> tuple[int, float]:
    if len(roots) == 0:
        return -1, 0.0
    found, counts = np.unique(roots, return_counts=True)
    return int(found[np.argmax(counts)]), float(counts.max() / counts.sum())
