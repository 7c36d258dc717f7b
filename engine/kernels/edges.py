"""Loops over edges: push along the out-edges of the frontier, pull along in-edges.

Work is cut into blocks of equal numbers of *edges*, never of vertices, and threads take blocks from
a shared counter; so one vertex with ten million edges is shared by all threads. A row cut by a
block (or by a partition) has its partial results combined, in a fixed order for pulls, so that even
floating sums do not depend on the number of threads.

A view gives edges [e0, e1); row v owns [start(v), start(v+1)). Arrays of vertices start at vertex
`base`. Messages go into `target` (the accumulators, or the field itself when the program is
self-combining and runs asynchronously); whoever may have changed is marked in `touched`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.bitmap import is_marked, mark, row_start
from penstock.engine.kernels.cached import inline, kernel
from penstock.engine.kernels.combiners import COMBINE, MERGE, make_absorb
from penstock.engine.kernels.intrinsics import atomic_add
from penstock.engine.program.bindings import Author

ONE = np.uint64(1)


@inline
def find_row(bases, offsets, shift, first, last, edge):  # type: ignore[no-untyped-def]
    """The row in [first, last) that owns `edge`: the last one that starts at or before it."""
    low, high = first, last - ONE
    while low < high:
        middle = (low + high + ONE) >> ONE
        if row_start(bases, offsets, shift, middle) <= edge:
            low = middle
        else:
            high = middle - ONE
    return low


def make_relax(author: Author, weighted: bool) -> Any:
    """Inlined: send along edges [first, last) of row `u`; the loop inside every push."""
    edge, wants = author.calls["edge"], author.calls["wants"]
    combine = COMBINE[author.combine]
    has_send = author.has_send

    @inline
    def relax(  # type: ignore[no-untyped-def]
        view, u, first, last, d, fields, scalars, sent, target, touched, summary, base
    ):
        neighbors, weights, e0 = view
        message = sent[u - base] if has_send else sent[0]
        for e in range(first - e0, last - e0):
            v = np.uint64(neighbors[np.uint64(e)])
            if wants(fields, scalars, v, np.int64(0), base):
                w = weights[np.uint64(e)] if weighted else np.uint8(1)
                value = target.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
                if combine(target, v - base, value):
                    mark(touched, summary, v - base)

    return relax


def make_push_list(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: push from listed vertices (ascending), `work` being the running sum of their edges."""
    relax = make_relax(author, weighted)

    @kernel(key)
    def push_list(  # type: ignore[no-untyped-def]
        view,
        e1,
        index,
        vertices,
        work,
        first,
        last,
        threads,
        block,
        fields,
        scalars,
        sent,
        target,
        touched,
        summary,
        base,
    ):
        bases, offsets, shift = index
        e0 = view[2]
        begin = work[first]
        blocks = (work[last] - begin + block - 1) // block
        counter = np.zeros(1, dtype=np.int64)
        for _ in numba.prange(threads):
            while True:
                number = atomic_add(counter, np.uint64(0), np.int64(1))
                if number >= blocks:
                    break
                low = begin + number * block
                high = min(low + block, work[last])
                i = np.searchsorted(work[first : last + 1], low, side="right") + first - 1
                while i < last and work[i] < high:
                    u = np.uint64(vertices[i])
                    start = row_start(bases, offsets, shift, u)
                    degree = work[i + 1] - work[i]
                    begins = max(start + max(low - work[i], 0), e0)
                    ends = min(start + min(high - work[i], degree), e1)
                    relax(
                        view,
                        u,
                        begins,
                        ends,
                        degree,
                        fields,
                        scalars,
                        sent,
                        target,
                        touched,
                        summary,
                        base,
                    )
                    i += 1

    return push_list


def make_push_rows(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: push from every marked vertex of the view's rows [v0, v1) (all of them if `whole`)."""
    relax = make_relax(author, weighted)

    @kernel(key)
    def push_rows(  # type: ignore[no-untyped-def]
        view,
        e1,
        index,
        v0,
        v1,
        active,
        whole,
        threads,
        block,
        fields,
        scalars,
        sent,
        target,
        touched,
        summary,
        base,
    ):
        bases, offsets, shift = index
        e0 = view[2]
        blocks = (e1 - e0 + block - 1) // block
        counter = np.zeros(1, dtype=np.int64)
        for _ in numba.prange(threads):
            while True:
                number = atomic_add(counter, np.uint64(0), np.int64(1))
                if number >= blocks:
                    break
                low = e0 + number * block
                high = min(low + block, e1)
                u = find_row(bases, offsets, shift, v0, v1, low)
                start = row_start(bases, offsets, shift, u)
                while start < high and u < v1:
                    end = row_start(bases, offsets, shift, u + ONE)
                    if whole or is_marked(active, u - base):
                        relax(
                            view,
                            u,
                            max(start, low),
                            min(end, high),
                            end - start,
                            fields,
                            scalars,
                            sent,
                            target,
                            touched,
                            summary,
                            base,
                        )
                    start = end
                    u += ONE

    return push_rows


def make_pull(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: every vertex of [v0, v1) that wants messages gathers them from its in-neighbors.

    `index` is that of the in-adjacency, `out_index` gives the sources' degrees. A row that began
    before its block leaves its part in heads (vertex, value, found), one a block, for `settle`. passed: how many of
    a row's edges were looked at before, and a bitmap of who found a message among them (early exit only).
    """
    edge, wants = author.calls["edge"], author.calls["wants"]
    merge, absorb = MERGE[author.combine], make_absorb(author.combine)
    has_send, early_exit = author.has_send, author.early_exit

    @inline
    def gather(  # type: ignore[no-untyped-def]
        view, v, first, last, active, whole, out_index, fields, scalars, sent, identity, base
    ):
        neighbors, weights, e0 = view
        bases, offsets, shift = out_index
        total = identity
        found = False
        for e in range(first - e0, last - e0):
            u = np.uint64(neighbors[np.uint64(e)])
            if whole or is_marked(active, u - base):
                message = sent[u - base] if has_send else sent[0]
                d = row_start(bases, offsets, shift, u + ONE) - row_start(bases, offsets, shift, u)
                w = weights[np.uint64(e)] if weighted else np.uint8(1)
                value = sent.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
                total = merge(total, value)
                found = True
                if early_exit:
                    break
        return total, found

    @kernel(key)
    def pull(  # type: ignore[no-untyped-def]
        view,
        e1,
        index,
        v0,
        v1,
        passed,
        out_index,
        active,
        whole,
        threads,
        block,
        fields,
        scalars,
        sent,
        identity,
        target,
        touched,
        summary,
        base,
        head_vertices,
        head_values,
        head_found,
    ):
        bases, offsets, shift = index
        skip, found_before = passed
        e0 = view[2]
        blocks = (e1 - e0 + block - 1) // block
        counter = np.zeros(1, dtype=np.int64)
        for _ in numba.prange(threads):
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
                    first = max(start + skip, low)
                    over = skip > 0 and is_marked(found_before, v - base)
                    if end > first and not over and wants(fields, scalars, v, np.int64(0), base):
                        total, found = gather(
                            view,
                            v,
                            first,
                            min(end, high),
                            active,
                            whole,
                            out_index,
                            fields,
                            scalars,
                            sent,
                            identity,
                            base,
                        )
                        if found and start < low:
                            head_vertices[number] = v
                            head_values[number] = total
                            head_found[number] = True
                        elif found and absorb(target, v - base, total) and not whole:
                            mark(touched, summary, v - base)
                    start = end
                    v += ONE

    return pull


def make_settle(author: Author, key: str) -> Any:
    """Kernel: combine the heads that `pull` left into `target`, in the order of the blocks."""
    absorb = make_absorb(author.combine)

    @kernel(key)
    def settle(  # type: ignore[no-untyped-def]
        head_vertices, head_values, head_found, target, touched, summary, base
    ):
        for number in range(head_found.shape[0]):
            if head_found[number]:
                at = np.uint64(head_vertices[number]) - base
                if absorb(target, at, head_values[number]):
                    mark(touched, summary, at)

    return settle
