"""Loop over the rows of unsettled vertices, both ways, where vertices settle in the order of their priority.

Where the frontier has more edges than all unsettled vertices together, the rows of these are read in its place: what an
active neighbor sends is taken, and then the vertex itself sends along the row while it is there, so that the row need
not be read again when the vertex is due. Chakaravarthy et al. (IPDPS 2014) pull long edges so; that a row serves both
ways is ours. It needs an undirected graph. Blocks of edges as in `push.py`; a row that a block cuts is only pulled, and
stays pending.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import COMBINE, atomic_and
from penstock.engine.kernels.host.device_functions import (
    LOW,
    ONE,
    SIX,
    degree_of,
    find_row,
    is_marked,
    mark,
    row_start,
)
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.host.push import make_relax
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author


@inline
def unmark(words, v):  # type: ignore[no-untyped-def]
    """Unset the bit of `v` (uint64, already less base), atomically; its summary bit stays."""
    atomic_and(words, v >> SIX, ~(ONE << (v & LOW)))


def make_relax_unsettled(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: relax the view's rows of unsettled vertices, from and to who is pending or active.

    A vertex is made pending no more before its values are read for what it sends: whoever changes them later makes it
    pending again.
    """
    edge, unsettled, relax = author.calls["edge"], author.calls["unsettled"], make_relax(author, weighted)
    combine = COMBINE[author.combine]

    @inline
    def gather(view, v, first, last, index, active, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        target, pending, base = vertices.target, vertices.touched, vertices.base
        for e in range(first - view.e0, last - view.e0):
            u = np.uint64(view.neighbors[np.uint64(e)])
            if is_marked(pending, u - base) or is_marked(active, u - base):
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                message = vertices.sent[0]
                value = target.dtype.type(edge(fields, scalars, message, u, v, w, degree_of(index, u), base))
                if combine(target, v - base, value):
                    mark(pending, vertices.summary, v - base)

    @loop_kernel(key, grain=1)
    def relax_unsettled(first_step, end_step, view, index, active, block, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        pending, base = vertices.touched, vertices.base
        for number in range(first_step, end_step):
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            while start < high and v < view.v1:
                end = row_start(index, v + ONE)
                if end > start and unsettled(fields, scalars, v, np.int64(0), base):
                    gather(view, v, max(start, low), min(end, high), index, active, fields, scalars, vertices)
                    waits = is_marked(pending, v - base) or is_marked(active, v - base)
                    if waits and low <= start and end <= high:
                        unmark(pending, v - base)
                        relax(view, v, start, end, end - start, fields, scalars, vertices)
                start = end
                v += ONE

    return relax_unsettled
