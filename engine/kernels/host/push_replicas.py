"""Pushes that sum, on graphs whose first vertices are the most pointed to: each part of the edges has its own sums.

Threads that add to one address wait for its line of memory, and in a skewed graph most add to few. What a part of the
edges sends to the first vertices is added up apart; `launch.py` adds the parts up, in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels import hot_vertices
from penstock.engine.kernels.host.atomics import COMBINE, prefetch
from penstock.engine.kernels.host.device_functions import LOW, ONE, SIX, find_row, is_marked, mark, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.host.push import AHEAD
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author

PARTS = 8
"""Parts of the edges a thread, so that the last ones to end do not matter."""


def kept_sums(author: Author) -> int:
    """How many vertices' sums are kept, from the first vertex on."""
    return hot_vertices.KEPT_BYTES // author.message.itemsize


def make_relax(author: Author, weighted: bool) -> Any:
    """Inlined: send along edges [first, last) of row `u` of degree `d`; to the first vertices by way of `sums`."""
    edge, cond, combine = author.calls["edge"], author.calls["cond"], COMBINE[author.combine]
    has_send = author.has_send

    @inline
    def relax(view, u, first, last, d, fields, scalars, vertices, sums):  # type: ignore[no-untyped-def]
        target, base, kept = vertices.target, vertices.base, np.uint64(sums.shape[0])
        message = vertices.sent[u - base] if has_send else vertices.sent[0]
        ahead = last - view.e0 - AHEAD
        for e in range(first - view.e0, last - view.e0):
            if e < ahead:
                prefetch(target, np.uint64(view.neighbors[np.uint64(e + AHEAD)]) - base)
            v = np.uint64(view.neighbors[np.uint64(e)])
            if cond(fields, scalars, v, np.int64(0), base):
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                value = target.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
                if v - base < kept:
                    sums[v - base] += value
                    mark(vertices.touched, vertices.summary, v - base)
                elif combine(target, v - base, value):
                    mark(vertices.touched, vertices.summary, v - base)

    return relax


def make_push_rows_replicas(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: what `push_rows` does, for a state that begins with vertex 0; sums: of each block, one row."""
    relax = make_relax(author, weighted)

    @loop_kernel(key, grain=1)
    def push_rows(  # type: ignore[no-untyped-def]
        first_step, end_step, view, index, active, whole, block, fields, scalars, vertices, sums
    ):
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        base = vertices.base
        for number in range(first_step, end_step):
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            while start < high and v < view.v1:
                after = row_start(index, v + ONE)
                at = v - base
                if not whole and active[at >> SIX] >> (at & LOW) == 0:
                    v = ((at | LOW) + base) + ONE  # no other of the word is marked
                    start = row_start(index, min(v, view.v1))
                    continue
                if after > start and (whole or is_marked(active, at)):
                    begins, ends = max(start, low), min(after, high)
                    relax(view, v, begins, ends, after - start, fields, scalars, vertices, sums[number])
                start = after
                v += ONE

    return push_rows
