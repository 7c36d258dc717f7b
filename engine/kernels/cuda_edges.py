"""Loops over edges on a GPU that send: from the listed frontier, over rows, along edges in any order.

`push_list` hands out aligned runs of LANES edges (lines), ascending, so that a row of any length is spread over as
many threads as it has edges and zero-copy reads are whole lines in order. The others go by tiles of TILE edges; a
row that a tile cuts has its parts combined atomically. Merrill's and EMOGI's lessons (PPoPP 2012, VLDB 2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda import BLOCK, LANE_SHIFT, LANES, PER_THREAD, TILE, Kernel, cuda, device, kernel
from penstock.engine.kernels.cuda_parts import (
    ONE,
    all_threads,
    degree_of,
    find_row,
    global_thread,
    is_marked,
    mark,
    row_start,
    tell_sum,
)
from penstock.engine.program.bindings import Author

RUN = 4
"""Lines that a group of threads takes at a time."""
ZERO = np.int64(0)


@device
def combine_min(target, at, value):  # type: ignore[no-untyped-def]
    """Lower target[at] to value; whether it changed."""
    return value < target[at] and value < cuda.atomic.min(target, at, value)


@device
def combine_max(target, at, value):  # type: ignore[no-untyped-def]
    """Raise target[at] to value; whether it changed."""
    return value > target[at] and value > cuda.atomic.max(target, at, value)


@device
def combine_sum(target, at, value):  # type: ignore[no-untyped-def]
    """Add value to target[at]."""
    cuda.atomic.add(target, at, value)
    return True


@device
def combine_or(target, at, value):  # type: ignore[no-untyped-def]
    """Set value's bits in target[at]; whether it changed."""
    return (value & ~target[at]) != 0 and (value & ~cuda.atomic.or_(target, at, value)) != 0


COMBINE = {"min": combine_min, "max": combine_max, "sum": combine_sum, "or": combine_or}


@kernel
def tile_rows(index, rows, count, found):  # type: ignore[no-untyped-def]
    """Kernel: the row of the first edge of every tile."""
    bases, offsets, shift = index
    tile = global_thread()
    while tile < count:
        found[tile] = find_row(bases, offsets, shift, np.uint64(0), rows, tile * np.int64(TILE))
        tile += all_threads()


def make_reach(author: Author, weighted: bool) -> Any:
    """Device function: send along one edge; the target's position (int64) if that changed its messages, else -1."""
    edge, wants = author.calls["edge"], author.calls["wants"]
    combine, has_send = COMBINE[author.combine], author.has_send

    @device
    def reach(view, e, u, d, fields, scalars, sent, target, base):  # type: ignore[no-untyped-def]
        neighbors, weights, e0 = view
        v = np.uint64(neighbors[np.uint64(e - e0)])
        if wants(fields, scalars, v, ZERO, base):
            message = sent[u - base] if has_send else sent[0]
            w = weights[np.uint64(e - e0)] if weighted else np.uint8(1)
            value = target.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
            if combine(target, v - base, value):
                return np.int64(v - base)
        return np.int64(-1)

    return reach


def make_relax(author: Author, weighted: bool) -> Any:
    """Device function: send along one edge, and mark the target if that changed its messages."""
    reach = make_reach(author, weighted)

    @device
    def relax(view, e, u, d, fields, scalars, sent, target, touched, base):  # type: ignore[no-untyped-def]
        at = reach(view, e, u, d, fields, scalars, sent, target, base)
        if at >= 0:
            mark(touched, np.uint64(at))

    return relax


@device
def find_listed(work, first, last, line):  # type: ignore[no-untyped-def]
    """The entry in [first, last) that owns `line`: the last whose running sum is at or before it."""
    low, high = first, last - np.int64(1)
    while low < high:
        middle = (low + high + np.int64(1)) >> np.int64(1)
        if work[middle] <= line:
            low = middle
        else:
            high = middle - np.int64(1)
    return low


@device
def first_from(vertices, count, v):  # type: ignore[no-untyped-def]
    """How many of the ascending list's first `count` vertices are below v."""
    low, high = ZERO, count
    while low < high:
        middle = (low + high) >> np.int64(1)
        if np.uint64(vertices[middle]) < v:
            low = middle + np.int64(1)
        else:
            high = middle
    return low


def make_push_list(author: Author, weighted: bool) -> Kernel:
    """Kernel: push from the listed vertices whose rows lie in [v0, v1).

    tally: whether to count the lines read, and where (int64[1]): see `CudaKernels`.
    """
    relax = make_relax(author, weighted)

    @kernel
    def push_list(  # type: ignore[no-untyped-def]
        view,
        e1,
        rows,
        index,
        skew,
        vertices,
        work,
        count,
        fields,
        scalars,
        sent,
        target,
        touched,
        base,
        tally,
    ):
        bases, offsets, shift = index
        e0 = view[2]
        counting, counter = tally
        bounds = cuda.shared.array(2, np.int64)
        box = cuda.shared.array(1, np.int64)
        if cuda.threadIdx.x < 2:
            bounds[cuda.threadIdx.x] = first_from(vertices, count, rows[cuda.threadIdx.x])
        cuda.syncthreads()
        first, last = bounds[0], bounds[1]
        if first == last:
            return
        lane = global_thread() & np.int64(LANES - 1)
        line = work[first] + (global_thread() >> LANE_SHIFT) * np.int64(RUN)
        step = (all_threads() >> LANE_SHIFT) * np.int64(RUN)
        lines = ZERO
        while line < work[last]:
            stop = min(line + np.int64(RUN), work[last])
            i = find_listed(work, first, last, line)
            for k in range(line, stop):
                while work[i + 1] <= k:
                    i += 1
                u = np.uint64(vertices[i])
                start = row_start(bases, offsets, shift, u)
                end = row_start(bases, offsets, shift, u + ONE)
                e = ((((start + skew) >> LANE_SHIFT) + (k - work[i])) << LANE_SHIFT) - skew + lane
                if counting and lane == 0 and e + np.int64(LANES) > e0 and e < e1:
                    lines += 1
                if e >= max(start, e0) and e < min(end, e1):
                    relax(view, e, u, end - start, fields, scalars, sent, target, touched, base)
            line += step
        if counting:
            tell_sum(box, lines, counter)

    return push_list


@device
def tile_bounds(tile, e0, e1, rows, starts, shared, low):  # type: ignore[no-untyped-def]
    """First and last row that the tile's edges of [e0, e1) lie in; all threads of the block call it."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        shared[0] = max(np.uint64(starts[tile]), rows[0])
        after = tile + np.int64(1)
        last = rows[1]
        if after < starts.shape[0]:
            last = min(last, np.uint64(starts[after]) + ONE)
        shared[1] = last
    cuda.syncthreads()


def make_push_rows(author: Author, weighted: bool) -> Kernel:
    """Kernel: push along the view's edges from every marked row (from all rows if `whole`)."""
    relax = make_relax(author, weighted)

    @kernel
    def push_rows(  # type: ignore[no-untyped-def]
        view, e1, rows, index, starts, active, whole, fields, scalars, sent, target, touched, base
    ):
        bases, offsets, shift = index
        e0 = view[2]
        bounds = cuda.shared.array(2, np.uint64)
        tile = e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < e1:
            tile_bounds(tile, e0, e1, rows, starts, bounds, ZERO)
            for k in range(PER_THREAD):
                e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
                if e >= e0 and e < e1:
                    u = find_row(bases, offsets, shift, bounds[0], bounds[1], e)
                    if whole or is_marked(active, u - base):
                        d = degree_of(bases, offsets, shift, u)
                        relax(view, e, u, d, fields, scalars, sent, target, touched, base)
            tile += np.int64(cuda.gridDim.x)

    return push_rows
