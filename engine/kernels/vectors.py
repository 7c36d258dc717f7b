"""Pull with vectors for messages: every row adds up, number by number, what its in-neighbors send.

Rows are shared out as in `edges.py`; a row that began before its block leaves its part aside, and `settle_vectors` adds
the parts in the order of the blocks, so that sums do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.bitmap import ONE, degree_of, row_start
from penstock.engine.kernels.cached import kernel
from penstock.engine.kernels.edges import find_row
from penstock.engine.kernels.intrinsics import atomic_add
from penstock.engine.program.bindings import Author


def make_pull_vectors(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: add to incoming[v, :] all messages along the edges [e0, e1) of the view, whose rows are [v0, v1).

    head_vertices uint64 (blocks,), head_values (blocks, K), head_found bool (blocks,): parts of rows begun earlier.
    """
    edge = author.calls["edge"]

    @kernel(key)
    def pull_vectors(  # type: ignore[no-untyped-def]
        view, e1, index, v0, v1, out_index, threads, block, fields, scalars, incoming, base, heads
    ):
        bases, offsets, shift = index
        out_bases, out_offsets, out_shift = out_index
        neighbors, weights, e0 = view
        head_vertices, head_values, head_found = heads
        blocks = (e1 - e0 + block - 1) // block
        width = incoming.shape[1]
        counter = np.zeros(1, dtype=np.int64)
        for _ in numba.prange(threads):
            message = np.zeros(width, dtype=incoming.dtype)
            total = np.zeros(width, dtype=incoming.dtype)
            while True:
                number = atomic_add(counter, np.uint64(0), np.int64(1))
                if number >= blocks:
                    break
                low = e0 + number * block
                high = min(low + block, e1)
                v = find_row(bases, offsets, shift, v0, v1, low)
                start = row_start(bases, offsets, shift, v)
                head_found[number] = False
                while start < high and v < v1:
                    end = row_start(bases, offsets, shift, v + ONE)
                    if end > start:
                        total[:] = 0
                        for e in range(max(start, low), min(end, high)):
                            u = np.uint64(neighbors[np.uint64(e - e0)])
                            d = degree_of(out_bases, out_offsets, out_shift, u)
                            w = weights[np.uint64(e - e0)] if weighted else np.uint8(1)
                            edge(fields, scalars, message, u, v, w, d, base)
                            total += message
                        if start < low:
                            head_vertices[number] = v
                            head_values[number, :] = total
                            head_found[number] = True
                        else:
                            incoming[np.int64(v - base), :] += total
                    start = end
                    v += ONE

    return pull_vectors


@kernel("settle_vectors")
def settle_vectors(heads, incoming, base):  # type: ignore[no-untyped-def]
    """Add the parts that `pull_vectors` left, in the order of the blocks."""
    head_vertices, head_values, head_found = heads
    for number in range(head_found.shape[0]):
        if head_found[number]:
            incoming[np.int64(head_vertices[number] - base), :] += head_values[number]
