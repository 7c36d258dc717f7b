"""Loops over edges that gather: pull along in-edges; blocks of edges as in `push.py`.

The partial results of a row that a block cuts are combined in the order of the blocks, so that even floating sums do
not depend on the number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_name
from penstock.engine.kernels.host.atomics import MERGE, make_absorb, prefetch, prefetch_early
from penstock.engine.kernels.host.device_functions import ONE, degree_of, find_row, is_marked, mark, row_start
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author

AHEAD = np.int64(256)
"""Edges between a message and the one that is asked for: some 0.3 us; 32 are too few, 1,024 evict each other."""
SECOND_LEVEL = get_host_cpu_name().startswith("znver")
"""Whether it is asked for in the second-level cache: twice as fast on AMD (Zen 4), a seventh slower on a Xeon."""


def make_pull(author: Author) -> Any:
    """Kernel: every vertex of the view's rows for which `cond` holds gathers messages from its in-neighbors.

    `index` is that of the in-adjacency, `out_index` gives the sources' degrees. A row that began before its block
    leaves its partial result in partials (vertex, value, found), one a block, for `reduce_partials`. Programs that
    leave a row at the first message have `early_pull.py`; `suffices` leaves one here.
    """
    edge, cond, suffices = author.calls["edge"], author.calls["cond"], author.calls["suffices"]
    merge, absorb = MERGE[author.combine], make_absorb(author.combine)
    has_send, has_suffices, weighted = author.has_send, author.has_suffices, author.weighted

    @inline
    def gather(view, v, first, last, sources, fields, scalars, identity, vertices):  # type: ignore[no-untyped-def]
        out_index, active, whole = sources
        sent, base = vertices.sent, vertices.base
        total = identity
        found = False
        for e in range(first - view.e0, last - view.e0):
            u = np.uint64(view.neighbors[np.uint64(e)])
            if whole or is_marked(active, u - base):
                message = sent[u - base] if has_send else sent[0]
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                value = sent.dtype.type(edge(fields, scalars, message, u, v, w, degree_of(out_index, u), base))
                total = merge(total, value)
                found = True
                if has_suffices and suffices(fields, scalars, total, v, base):
                    break
        return total, found

    @loop_kernel(author.key, grain=1)
    def pull(  # type: ignore[no-untyped-def]
        first_step,
        end_step,
        view,
        index,
        out_index,
        active,
        whole,
        block,
        fields,
        scalars,
        identity,
        vertices,
        partials,
    ):
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        partial_vertices, partial_values, partial_found = partials
        sources = out_index, active, whole
        for number in range(first_step, end_step):
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            partial_found[number] = False
            while start < high and v < view.v1:
                end = row_start(index, v + ONE)
                at = v - vertices.base
                if end > start and cond(fields, scalars, v, np.int64(0), vertices.base):
                    total, found = gather(
                        view, v, max(start, low), min(end, high), sources, fields, scalars, identity, vertices
                    )  # fmt: skip
                    if found and start < low:
                        partial_vertices[number] = v
                        partial_values[number] = total
                        partial_found[number] = True
                    elif found and absorb(vertices.target, at, total) and not whole:
                        mark(vertices.touched, vertices.summary, at)
                start = end
                v += ONE

    return pull


def make_sweep(author: Author) -> Any:
    """Kernel: every vertex of the view's rows for which `cond` holds gathers messages from all its in-neighbors.

    For programs with a `send` whose pulls do not leave early. Arguments as those of `pull`, and early: whether messages
    are asked for in the second-level cache. Ids of neighbors may be places in `sent` instead (`grouped_sources.py`)
    where `edge` reads nothing else of the sender.
    """
    edge, cond, weighted = author.calls["edge"], author.calls["cond"], author.weighted
    merge, absorb = MERGE[author.combine], make_absorb(author.combine)

    @inline
    def gather(view, v, first, last, out_index, early, fields, scalars, identity, vertices):  # type: ignore[no-untyped-def]
        sent, base = vertices.sent, vertices.base
        total = identity
        end = view.e1 - view.e0 - np.int64(1)
        for e in range(first - view.e0, last - view.e0):
            later = np.uint64(view.neighbors[np.uint64(min(e + AHEAD, end))]) - base
            if early:
                prefetch_early(sent, later)
            else:
                prefetch(sent, later)
            u = np.uint64(view.neighbors[np.uint64(e)])
            w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
            value = edge(fields, scalars, sent[u - base], u, v, w, degree_of(out_index, u), base)
            total = merge(total, sent.dtype.type(value))
        return total

    @loop_kernel(author.key, grain=1)
    def sweep(  # type: ignore[no-untyped-def]
        first_step, end_step, view, index, out_index, block, early, fields, scalars, identity, vertices, partials
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
                        view, v, max(start, low), min(end, high), out_index, early, fields, scalars, identity, vertices
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


def make_reduce_partials(author: Author) -> Any:
    """Kernel: combine the partials that `pull` left into `target`, in the order of the blocks."""
    return _make_reduce_partials(author.combine, not author.everywhere)


@cache
def _make_reduce_partials(combine: str, marks: bool) -> Any:
    absorb = make_absorb(combine)

    @kernel(f"reduce_partials {combine} {marks}")
    def reduce_partials(partials, target, touched, summary, base):  # type: ignore[no-untyped-def]
        partial_vertices, partial_values, partial_found = partials
        for number in range(partial_found.shape[0]):
            if partial_found[number]:
                at = np.uint64(partial_vertices[number]) - base
                if absorb(target, at, partial_values[number]) and marks:
                    mark(touched, summary, at)

    return reduce_partials
