"""Loops over whole rows: all messages to a vertex side by side, then `vertex` on each vertex's own.

A walk's edges come view by view and land where they belong in a buffer; `positions` holds where each row of the block
begins there. With two walks, a row holds the messages of the first before those of the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.device_functions import ONE, degree_of, find_row, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.interface import EdgeView
from penstock.engine.program.bindings import Author

SPAN = np.uint64(4096)


@inline
def place_of(positions, index, first, v, second):  # type: ignore[no-untyped-def]
    """What to add to an edge's number to get its place in the buffer; `second`: it is of the second of two walks."""
    at = np.int64(v - first)
    if second:
        return positions[at + 1] - row_start(index, v + ONE)
    return positions[at] - row_start(index, v)


def make_collect(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: put the message of every edge of the view, whose rows are the block's, into the buffer."""
    edge, chosen = author.calls["edge"], author.calls["chosen"]

    @loop_kernel(key, grain=1, counted=True)
    def collect(  # type: ignore[no-untyped-def]
        first_step, end_step, view, index, out_index, fields, scalars, base, positions, second, block, buffer
    ):
        view = EdgeView(*view)
        for number in range(first_step, end_step):
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            while start < high and v < view.v1:
                end = row_start(index, v + ONE)
                move = place_of(positions, index, view.v0, v, second)
                for e in range(max(start, low), min(end, high) if chosen(fields, v, base) else low):
                    u = np.uint64(view.neighbors[np.uint64(e - view.e0)])
                    d = degree_of(out_index, u)
                    w = view.weights[np.uint64(e - view.e0)] if weighted else np.uint8(1)
                    value = edge(fields, scalars, buffer[0], u, v, w, d, base)
                    buffer[np.uint64(e + move)] = buffer.dtype.type(value)
                start = end
                v += ONE

    return collect


def make_apply_rows(author: Author, key: str) -> Any:
    """Kernel: run `vertex` on each row's messages; new values go to `following`, old ones stay for others to read."""
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    chosen = author.calls["chosen"]
    accumulate, totals = author.calls["accumulate"], len(author.totals)

    @loop_kernel(key, counted=True)
    def apply_rows(  # type: ignore[no-untyped-def]
        first_step, end_step, rows, index, fields, following, scalars, base, positions, buffer, partial
    ):
        first, last = rows
        lowest = (first - base) // SPAN
        for span in range(first_step, end_step):
            over = lowest + np.uint64(span)
            for row in range(max(first, base + over * SPAN), min(last, base + (over + ONE) * SPAN)):
                v = np.uint64(row)
                if not chosen(fields, v, base):
                    continue
                at = np.int64(v - first)
                d = degree_of(index, v)
                incoming = buffer[positions[at] : positions[at + 1]]
                old = load(fields, v, base)
                store(following, v, base, vertex(fields, scalars, incoming, True, v, d, base))
                if totals > 0:
                    accumulate(partial, np.int64(over), following, old, scalars, v, d, base)

    return apply_rows


@loop_kernel("copy_rows", grain=1)
def copy_rows(first_step, end_step, view, index, positions, second, block, buffer):  # type: ignore[no-untyped-def]
    """Put the neighbors of the edges of the view, whose rows are the block's, into the buffer."""
    view = EdgeView(*view)
    for number in range(first_step, end_step):
        low = view.e0 + number * block
        high = min(low + block, view.e1)
        v = find_row(index, view.v0, view.v1, low)
        start = row_start(index, v)
        while start < high and v < view.v1:
            end = row_start(index, v + ONE)
            move = place_of(positions, index, view.v0, v, second)
            for e in range(max(start, low), min(end, high)):
                buffer[np.uint64(e + move)] = view.neighbors[np.uint64(e - view.e0)]
            start = end
            v += ONE
