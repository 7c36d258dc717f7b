"""Loops over whole rows: all messages to a vertex side by side, then `vertex` on each vertex's own; pulls of vectors.

A walk's edges come view by view and land where they belong in a buffer; `positions` holds where each row of the block
begins there. With two walks, a row holds the messages of the first before those of the second.

A pull of vectors adds up, or merges, number by number what the in-neighbors of a row send, in blocks of edges as in
`host/push.py`. A row that began before its block has a partial sum apart, and `reduce_vector_partials` adds these in
the order of the blocks, so that sums do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.device_functions import ONE, degree_of, find_row, row_start
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel
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


def make_collect(author: Author) -> Any:
    """Kernel: put the message of every edge of the view, whose rows are the block's, into the buffer."""
    edge, chosen, weighted = author.calls["edge"], author.calls["chosen"], author.weighted

    @loop_kernel(author.key, grain=1, counted=True)
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


def make_apply_rows(author: Author) -> Any:
    """Kernel: run `vertex` on each row's messages; new values go to `following`, old ones stay for others to read."""
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    chosen = author.calls["chosen"]
    accumulate, totals = author.calls["accumulate"], len(author.totals)

    @loop_kernel(author.key, counted=True)
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


def make_pull_vectors(author: Author) -> Any:
    """Kernel: combine into incoming[v, :] all messages along the edges of the view.

    partials: vertices uint64 (blocks,), values (blocks, 2, K), found bool (blocks,), of rows begun in an earlier block;
    the second of the values is the message at hand.
    """
    edge, merge, weighted = author.calls["edge"], author.calls["merge"], author.weighted

    @loop_kernel(author.key, grain=1, counted=author.may_make_arrays)
    def pull_vectors(  # type: ignore[no-untyped-def]
        first_step, end_step, view, index, out_index, block, fields, scalars, incoming, base, partials
    ):
        view = EdgeView(*view)
        partial_vertices, partial_values, partial_found = partials
        for number in range(first_step, end_step):
            part, message = partial_values[number, 0], partial_values[number, 1]
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            partial_found[number] = False
            while start < high and v < view.v1:
                end = row_start(index, v + ONE)
                if end > start:
                    total = incoming[np.int64(v - base)]
                    if start < low:
                        partial_vertices[number], partial_found[number] = v, True
                        total = part
                    for e in range(max(start, low), min(end, high)):
                        u = np.uint64(view.neighbors[np.uint64(e - view.e0)])
                        d = degree_of(out_index, u)
                        w = view.weights[np.uint64(e - view.e0)] if weighted else np.uint8(1)
                        edge(fields, scalars, message, u, v, w, d, base)
                        for k in range(incoming.shape[1]):
                            total[k] = merge(scalars, total[k], message[k])
                start = end
                v += ONE

    return pull_vectors


def make_reduce_vector_partials(author: Author) -> Any:
    """Kernel: combine the parts that `pull_vectors` left, in the order of the blocks."""
    merge = author.calls["merge"]

    @kernel(author.key)
    def reduce_vector_partials(partials, scalars, incoming, base):  # type: ignore[no-untyped-def]
        partial_vertices, partial_values, partial_found = partials
        for number in range(partial_found.shape[0]):
            if partial_found[number]:
                v = np.int64(partial_vertices[number] - base)
                for k in range(incoming.shape[1]):
                    incoming[v, k] = merge(scalars, incoming[v, k], partial_values[number, 0, k])

    return reduce_vector_partials
