"""Loops over edges on a GPU that send: from the listed frontier, over rows, along edges in any order, compacted rows.

`push_list` hands out aligned runs of LANES edges (lines), ascending, so that a row of any length is spread over as
many threads as it has edges and zero-copy reads are whole lines in order. The others go by tiles of TILE edges; a
row that a tile cuts has its parts combined atomically. Merrill's and EMOGI's lessons (PPoPP 2012, VLDB 2020). In a
compacted view (`host/push.py`), two searches of the whole index bound those of a tile's edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    COMBINE,
    ONE,
    all_threads,
    degree_of,
    find_part,
    find_row,
    global_thread,
    is_marked,
    mark,
    row_start,
    tell_sum,
)
from penstock.engine.kernels.cuda.driver import (
    BLOCK,
    LANE_SHIFT,
    LANES,
    PER_THREAD,
    TILE,
    DeviceKernel,
    cuda,
    device,
    kernel,
)
from penstock.engine.program.bindings import Author

RUN = 4
"""Lines that a group of threads takes at a time."""
ZERO = np.int64(0)


@kernel
def tile_rows(index, rows, tiles, found):  # type: ignore[no-untyped-def]
    """Kernel: the row of the first edge of every tile of these, of rows [first, last), which are at hand."""
    first, last = rows
    tile = tiles[0] + global_thread()
    while tile < tiles[1]:
        found[tile] = find_row(index, first, last, tile * np.int64(TILE))
        tile += all_threads()


def make_reach(author: Author) -> Any:
    """Device function: send along one edge; the target's position (int64) if that changed its messages, else -1."""
    edge, cond, weighted = author.calls["edge"], author.calls["cond"], author.weighted
    combine, has_send = COMBINE[author.combine], author.has_send

    @device
    def reach(view, e, u, d, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        target, base = arrays.target, arrays.base
        v = np.uint64(view.neighbors[np.uint64(e - view.e0)])
        if cond(fields, scalars, v, ZERO, base):
            message = arrays.sent[u - base] if has_send else arrays.sent[0]
            w = view.weights[np.uint64(e - view.e0)] if weighted else np.uint8(1)
            value = target.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
            if combine(target, v - base, value):
                return np.int64(v - base)
        return np.int64(-1)

    return reach


def make_relax(author: Author) -> Any:
    """Device function: send along one edge, and mark the target if that changed its messages."""
    reach = make_reach(author)

    @device
    def relax(view, e, u, d, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        at = reach(view, e, u, d, fields, scalars, arrays)
        if at >= 0:
            mark(arrays.touched, np.uint64(at))

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


@device
def list_bounds(vertices, count, view, shared):  # type: ignore[no-untyped-def]
    """shared[0:2] = first and past-the-last entry of the list in the view's rows; all threads of the block call it."""
    if cuda.threadIdx.x == 0:
        shared[0] = first_from(vertices, count, view.v0)
    if cuda.threadIdx.x == 1:
        shared[1] = first_from(vertices, count, view.v1)
    cuda.syncthreads()


def make_push_list(author: Author) -> DeviceKernel:
    """Kernel: push from the vertices in the view's rows of a list: ascending, the running sum of their lines, length.

    tally: whether to count the lines read, and where (int64[1]): see `CudaKernels`.
    """
    relax = make_relax(author)

    @kernel
    def push_list(view, index, listed, fields, scalars, arrays, tally):  # type: ignore[no-untyped-def]
        vertices, work, count = listed
        counting, counter = tally
        bounds = cuda.shared.array(2, np.int64)
        box = cuda.shared.array(1, np.int64)
        list_bounds(vertices, count, view, bounds)
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
                start = row_start(index, u)
                end = row_start(index, u + ONE)
                e = (((start >> LANE_SHIFT) + (k - work[i])) << LANE_SHIFT) + lane
                if counting and lane == 0 and e + np.int64(LANES) > view.e0 and e < view.e1:
                    lines += 1
                if e >= max(start, view.e0) and e < min(end, view.e1):
                    relax(view, e, u, end - start, fields, scalars, arrays)
            line += step
        if counting:
            tell_sum(box, lines, counter)

    return push_list


@device
def tile_bounds(tile, view, starts, shared):  # type: ignore[no-untyped-def]
    """shared[0:2] = first and past-the-last row of the tile's edges; all threads of the block call it."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        shared[0] = max(np.uint64(starts[tile]), view.v0)
        after = tile + np.int64(1)
        last = view.v1
        if after < starts.shape[0]:
            last = min(last, np.uint64(starts[after]) + ONE)
        shared[1] = last
    cuda.syncthreads()


def make_push_rows(author: Author) -> DeviceKernel:
    """Kernel: push along the view's edges from every marked row (from all rows if `whole`)."""
    relax = make_relax(author)

    @kernel
    def push_rows(view, index, starts, active, whole, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        bounds = cuda.shared.array(2, np.uint64)
        tile = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < view.e1:
            tile_bounds(tile, view, starts, bounds)
            for k in range(PER_THREAD):
                e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
                if e >= view.e0 and e < view.e1:
                    u = find_row(index, bounds[0], bounds[1], e)
                    if whole or is_marked(active, u - arrays.base):
                        relax(view, e, u, degree_of(index, u), fields, scalars, arrays)
            tile += np.int64(cuda.gridDim.x)

    return push_rows


def make_push_compacted(author: Author) -> DeviceKernel:
    """Kernel: push along the rows of a compacted view, which start at `offsets`."""
    relax = make_relax(author)

    @kernel
    def push_compacted(view, rows, offsets, index, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        bounds = cuda.shared.array(2, np.int64)
        thread = np.int64(cuda.threadIdx.x)
        tile = np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < view.e1:
            origin = tile * np.int64(TILE)
            cuda.syncthreads()
            if thread < 2:
                edge = min(origin + thread * np.int64(TILE - 1), view.e1 - np.int64(1))
                bounds[thread] = find_part(offsets, ZERO, np.int64(rows.shape[0]) - np.int64(1), edge)
            cuda.syncthreads()
            for k in range(PER_THREAD):
                e = origin + np.int64(k * BLOCK) + thread
                if e < view.e1:
                    u = np.uint64(rows[find_part(offsets, bounds[0], bounds[1], e)])
                    relax(view, e, u, degree_of(index, u), fields, scalars, arrays)
            tile += np.int64(cuda.gridDim.x)

    return push_compacted
