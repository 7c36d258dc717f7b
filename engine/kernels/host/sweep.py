"""The loop over edges of a sweep: every vertex sends, and every row gathers all of its messages.

What the messages of a row cost is memory: each lies in another line. So the line of the message `AHEAD` edges further
on is asked for before the row's own are added up (Mowry, Lam and Gupta, ASPLOS 1992), across rows, for many are short.
Blocks of edges, and partial results of rows that a block cuts, are as in `pull.py`; so are the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import MERGE, make_absorb
from penstock.engine.kernels.host.device_functions import ONE, degree_of, find_row, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.host.prefetch import prefetch
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author

AHEAD = np.int64(256)
"""Edges between a message and the one that is asked for: some 0.3 us; 32 are too few, 1,024 evict each other."""


def make_sweep(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: every vertex of the view's rows for which `cond` holds gathers messages from all its in-neighbors.

    For programs with a `send` whose pulls do not leave early. Arguments as those of `pull`. Ids of neighbors may be
    places in `sent` instead (`grouped_sources.py`) where `edge` reads nothing else of the sender.
    """
    edge, cond = author.calls["edge"], author.calls["cond"]
    merge, absorb = MERGE[author.combine], make_absorb(author.combine)

    @inline
    def gather(view, v, first, last, out_index, fields, scalars, identity, vertices):  # type: ignore[no-untyped-def]
        sent, base = vertices.sent, vertices.base
        total = identity
        end = view.e1 - view.e0 - np.int64(1)
        for e in range(first - view.e0, last - view.e0):
            prefetch(sent, np.uint64(view.neighbors[np.uint64(min(e + AHEAD, end))]) - base)
            u = np.uint64(view.neighbors[np.uint64(e)])
            w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
            value = edge(fields, scalars, sent[u - base], u, v, w, degree_of(out_index, u), base)
            total = merge(total, sent.dtype.type(value))
        return total

    @loop_kernel(key, grain=1)
    def sweep(  # type: ignore[no-untyped-def]
        first_step, end_step, view, index, out_index, block, fields, scalars, identity, vertices, partials
    ):
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        partial_vertices, partial_values, partial_found = partials
        for number in range(first_step, end_step):
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            partial_found[number] = False
            while start < high and v < view.v1:
                end = row_start(index, v + ONE)
                if end > start and cond(fields, scalars, v, np.int64(0), vertices.base):
                    total = gather(
                        view, v, max(start, low), min(end, high), out_index, fields, scalars, identity, vertices
                    )  # fmt: skip
                    if start < low:
                        partial_vertices[number] = v
                        partial_values[number] = total
                        partial_found[number] = True
                    else:
                        absorb(vertices.target, v - vertices.base, total)
                start = end
                v += ONE

    return sweep
