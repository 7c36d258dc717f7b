"""Loops over edges on a GPU that gather: whole rows, and rows with early exit; by tiles as in `cuda_edges.py`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.author import Author
from penstock.engine.kernels.cuda import BLOCK, LANE_SHIFT, PER_THREAD, TILE, Kernel, cuda, device, kernel
from penstock.engine.kernels.cuda_edges import COMBINE, ZERO, tile_bounds
from penstock.engine.kernels.cuda_parts import ONE, degree_of, find_row, is_marked, mark, row_start, tell_sum


@device
def merge_min(a, b):  # type: ignore[no-untyped-def]
    """The smaller."""
    return b if b < a else a


@device
def merge_max(a, b):  # type: ignore[no-untyped-def]
    """The larger."""
    return b if b > a else a


@device
def merge_sum(a, b):  # type: ignore[no-untyped-def]
    """The sum."""
    return a + b


@device
def merge_or(a, b):  # type: ignore[no-untyped-def]
    """The union of bits."""
    return a | b


MERGE = {"min": merge_min, "max": merge_max, "sum": merge_sum, "or": merge_or}


def make_gather(author: Author, weighted: bool) -> Any:
    """Device function: the message that comes along one in-edge, and whether its source is active."""
    edge, has_send = author.calls["edge"], author.has_send

    @device
    def gather(view, e, v, active, whole, out_index, fields, scalars, sent, identity, base):  # type: ignore[no-untyped-def]
        neighbors, weights, e0 = view
        bases, offsets, shift = out_index
        u = np.uint64(neighbors[np.uint64(e - e0)])
        if not (whole or is_marked(active, u - base)):
            return identity, False
        message = sent[u - base] if has_send else sent[0]
        d = degree_of(bases, offsets, shift, u)
        w = weights[np.uint64(e - e0)] if weighted else np.uint8(1)
        return sent.dtype.type(edge(fields, scalars, message, u, v, w, d, base)), True

    return gather


def make_pull_first(author: Author, weighted: bool, linked: bool = True) -> Kernel:
    """Kernel: every row of the view that wants messages takes the first that an active in-neighbor sends.

    linked: False for a kernel that leaves out the next two, which slow it by half where all edges are on the device.
    passed: how many of a row's edges were looked at before, and a bitmap of who found a message among them.
    tally: as in `make_push_list`, every row's lines by themselves.
    """
    wants, gather, combine = author.calls["wants"], make_gather(author, weighted), COMBINE[author.combine]

    @kernel
    def pull_first(  # type: ignore[no-untyped-def]
        view,
        e1,
        rows,
        passed,
        index,
        starts,
        out_index,
        active,
        whole,
        fields,
        scalars,
        sent,
        identity,
        target,
        touched,
        base,
        tally,
    ):
        bases, offsets, shift = index
        skip, found_before = passed
        e0 = view[2]
        counting, counter = tally
        bounds = cuda.shared.array(2, np.uint64)
        box = cuda.shared.array(1, np.int64)
        lines = ZERO
        tile = e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < e1:
            tile_bounds(tile, e0, e1, rows, starts, bounds, ZERO)
            low = max(tile * np.int64(TILE), e0)
            high = min((tile + np.int64(1)) * np.int64(TILE), e1)
            v = bounds[0] + np.uint64(cuda.threadIdx.x)
            while v < bounds[1]:
                e = row_start(bases, offsets, shift, v)
                over = False
                if linked:
                    e += skip
                    over = skip > ZERO and is_marked(found_before, v - base)
                e = max(e, low)
                end = min(row_start(bases, offsets, shift, v + ONE), high)
                if e < end and not over and wants(fields, scalars, v, ZERO, base):
                    found = False
                    before = (e >> LANE_SHIFT) - np.int64(1)
                    while e < end and not found:
                        value, found = gather(
                            view, e, v, active, whole, out_index, fields, scalars, sent, identity, base
                        )
                        if found and combine(target, v - base, value):
                            mark(touched, v - base)
                        e += np.int64(1)
                    if linked:
                        lines += ((e - np.int64(1)) >> LANE_SHIFT) - before
                v += np.uint64(BLOCK)
            tile += np.int64(cuda.gridDim.x)
        if linked and counting:
            tell_sum(box, lines, counter)

    return pull_first


def make_pull(author: Author, weighted: bool, uses_target: bool) -> Kernel:
    """Kernel: every row of the view that wants messages combines all that its active in-neighbors send.

    A tile's messages are computed edge by edge, neighboring threads on neighboring edges, into shared memory; then
    as many threads as there are for a row add its part up (Greathouse and Daga's CSR-Stream, SC 2014).
    """
    wants, gather = author.calls["wants"], make_gather(author, weighted)
    combine, merge = COMBINE[author.combine], MERGE[author.combine]
    message_type = numba.from_dtype(author.message)

    @kernel
    def pull(  # type: ignore[no-untyped-def]
        view,
        e1,
        rows,
        index,
        starts,
        out_index,
        active,
        whole,
        fields,
        scalars,
        sent,
        identity,
        target,
        touched,
        base,
    ):
        bases, offsets, shift = index
        e0 = view[2]
        bounds = cuda.shared.array(2, np.uint64)
        values = cuda.shared.array(TILE, message_type)
        sums = cuda.shared.array(BLOCK, message_type)
        thread = np.int64(cuda.threadIdx.x)
        tile = e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < e1:
            tile_bounds(tile, e0, e1, rows, starts, bounds, ZERO)
            origin = tile * np.int64(TILE)
            for k in range(PER_THREAD):
                at = np.int64(k * BLOCK) + thread
                e = origin + at
                value = identity
                if e >= e0 and e < e1:
                    v = bounds[0]
                    if uses_target:
                        v = find_row(bases, offsets, shift, bounds[0], bounds[1], e)
                    value, _ = gather(view, e, v, active, whole, out_index, fields, scalars, sent, identity, base)
                values[at] = value
            cuda.syncthreads()
            count = np.int64(bounds[1] - bounds[0])
            width = np.int64(1)
            while width * 2 * count <= BLOCK:
                width *= 2
            part = thread & (width - np.int64(1))
            row = thread // width
            while row - thread // width < count:
                total = identity
                v = bounds[0] + np.uint64(row)
                low, high, cut = ZERO, ZERO, False
                if row < count:
                    start = row_start(bases, offsets, shift, v)
                    end = row_start(bases, offsets, shift, v + ONE)
                    low, high = max(start, max(origin, e0)), min(end, min(origin + np.int64(TILE), e1))
                    cut = low > start or high < end
                    e = low + part
                    while e < high:
                        total = merge(total, values[e - origin])
                        e += width
                half = width // 2
                if half > 0:
                    sums[thread] = total
                    while half > 0:
                        cuda.syncthreads()
                        if part < half:
                            sums[thread] = merge(sums[thread], sums[thread + half])
                        half //= 2
                    cuda.syncthreads()
                    total = sums[thread]
                if part == 0 and low < high and total != identity and wants(fields, scalars, v, ZERO, base):
                    changed = True
                    if cut:
                        changed = combine(target, v - base, total)
                    else:
                        old = target[v - base]
                        target[v - base] = merge(old, total)
                        changed = target[v - base] != old
                    if changed and not whole:
                        mark(touched, v - base)
                row += np.int64(BLOCK) // width
            tile += np.int64(cuda.gridDim.x)

    return pull
