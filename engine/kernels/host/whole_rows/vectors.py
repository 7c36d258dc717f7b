"""Pull with vectors for messages: every row adds up, or merges, number by number what its in-neighbors send.

Blocks of edges as in `host/push.py`; a row that began before its block has a partial sum apart, and
`reduce_vector_partials` adds these in the order of the blocks, so that sums do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.device_functions import ONE, degree_of, find_row, row_start
from penstock.engine.kernels.host.jit import kernel, loop_kernel
from penstock.engine.kernels.interface import EdgeView
from penstock.engine.program.bindings import Author


def make_pull_vectors(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: combine into incoming[v, :] all messages along the edges of the view.

    partials: vertices uint64 (blocks,), values (blocks, 2, K), found bool (blocks,), of rows begun in an earlier block;
    the second of the values is the message at hand.
    """
    edge, merge = author.calls["edge"], author.calls["merge"]

    @loop_kernel(key, grain=1, counted=author.may_make_arrays)
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


def make_reduce_vector_partials(author: Author, key: str) -> Any:
    """Kernel: combine the parts that `pull_vectors` left, in the order of the blocks."""
    merge = author.calls["merge"]

    @kernel(key)
    def reduce_vector_partials(partials, scalars, incoming, base):  # type: ignore[no-untyped-def]
        partial_vertices, partial_values, partial_found = partials
        for number in range(partial_found.shape[0]):
            if partial_found[number]:
                v = np.int64(partial_vertices[number] - base)
                for k in range(incoming.shape[1]):
                    incoming[v, k] = merge(scalars, incoming[v, k], partial_values[number, 0, k])

    return reduce_vector_partials
