"""Triangles: rows as sets of neighbors, turned so that each triangle is met once, and intersected.

An edge is kept in the row of its end of fewer neighbors (of the smaller id where they tie), so no row is longer than
sqrt(2 m) and a triangle is in exactly one pair of rows (Chiba and Nishizeki, SIAM J. Comput. 1985; Latapy, TCS 2008).
`arcs` counts how many edges join a kept pair, 1 or 2. Rows in the buffer: the ascending neighbors of one walk, then
(from `middles` on) those of the other; parallel edges count once, self-loops not at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import atomic_add
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.program.bindings import Author


@inline
def next_neighbor(buffer, one, middle, two, end, v):  # type: ignore[no-untyped-def]
    """Merge [one, middle) and [two, end), ascending, less `v`: (neighbor, edges to it, one, two); 0 edges: no more."""
    while one < middle or two < end:
        here, ways = np.uint64(0), np.int64(0)
        if one < middle and (two >= end or buffer[one] <= buffer[two]):
            here = np.uint64(buffer[one])
        else:
            here = np.uint64(buffer[two])
        if one < middle and buffer[one] == here:
            ways += 1
            while one < middle and buffer[one] == here:
                one += 1
        if two < end and buffer[two] == here:
            ways += 1
            while two < end and buffer[two] == here:
                two += 1
        if here != v:
            return here, ways, one, two
    return np.uint64(0), np.int64(0), one, two


@inline
def is_kept(neighbors, v, w):  # type: ignore[no-untyped-def]
    """Whether the edge between v and w belongs to v's row."""
    mine, other = neighbors[v], neighbors[w]
    return mine < other or (mine == other and v < w)


@loop_kernel("count_neighbors")
def count_neighbors(first_step, end_step, first, positions, middles, buffer, neighbors):  # type: ignore[no-untyped-def]
    """neighbors[v] = distinct neighbors of every row of the block."""
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        one, two = positions[at], middles[at]
        count = np.int64(-1)
        ways = np.int64(1)
        while ways > 0:
            count += 1
            _, ways, one, two = next_neighbor(buffer, one, middles[at], two, positions[at + 1], v)
        neighbors[v] = count


@loop_kernel("count_kept")
def count_kept(first_step, end_step, first, positions, middles, buffer, neighbors, kept):  # type: ignore[no-untyped-def]
    """kept[row] = neighbors whose edges belong to the row."""
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        one, two = positions[at], middles[at]
        count = np.int64(0)
        ways = np.int64(1)
        while ways > 0:
            w, ways, one, two = next_neighbor(buffer, one, middles[at], two, positions[at + 1], v)
            if ways > 0 and is_kept(neighbors, v, w):
                count += 1
        kept[at] = count


@loop_kernel("keep_rows")
def keep_rows(  # type: ignore[no-untyped-def]
    first_step, end_step, first, positions, middles, buffer, neighbors, starts, targets, arcs
):
    """Write each row's kept neighbors, ascending, and how many edges join them, from starts[row] on."""
    for at in range(first_step, end_step):
        v = first + np.uint64(at)
        one, two = positions[at], middles[at]
        place = starts[at]
        ways = np.int64(1)
        while ways > 0:
            w, ways, one, two = next_neighbor(buffer, one, middles[at], two, positions[at + 1], v)
            if ways > 0 and is_kept(neighbors, v, w):
                targets[place] = w
                arcs[place] = ways
                place += 1


def make_intersect(author: Author, key: str) -> Any:
    """Kernel: for every triangle v, w, x (v a row of `ones`, w a row of `others`) give each corner its message.

    ones, others: (first vertex, starts int64 (rows + 1,), targets, arcs). each: what one stored edge counts as.
    """
    corner = author.calls["corner"]

    @loop_kernel(key, grain=64, counted=True)
    def intersect(first_step, end_step, ones, others, each, scalars, incoming, base):  # type: ignore[no-untyped-def]
        first, starts, targets, arcs = ones
        low, other_starts, other_targets, other_arcs = others
        high = low + np.uint64(other_starts.shape[0] - 1)
        for at in range(first_step, end_step):
            v = first + np.uint64(at)
            for p in range(starts[at], starts[at + 1]):
                w = np.uint64(targets[p])
                if w < low or w >= high:
                    continue
                i, j = starts[at], other_starts[np.int64(w - low)]
                end = other_starts[np.int64(w - low) + 1]
                while i < starts[at + 1] and j < end:
                    one, other = targets[i], other_targets[j]
                    if one == other:
                        x = np.uint64(one)
                        kind = incoming.dtype
                        for_v = corner(scalars, np.int64(other_arcs[j]) * each)
                        for_w = corner(scalars, np.int64(arcs[i]) * each)
                        for_x = corner(scalars, np.int64(arcs[p]) * each)
                        atomic_add(incoming, v - base, kind.type(for_v))
                        atomic_add(incoming, w - base, kind.type(for_w))
                        atomic_add(incoming, x - base, kind.type(for_x))
                    if one <= other:
                        i += 1
                    if other <= one:
                        j += 1

    return intersect
