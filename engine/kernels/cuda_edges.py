"""Loops over edges on a GPU: push from the listed frontier, push over rows, pull whole rows, pull with early exit.

`push_list` hands out aligned runs of LANES edges (lines), ascending, so that a row of any length is spread over as
many threads as it has edges and zero-copy reads are whole lines in order. The others go by tiles of TILE edges; a
row that a tile cuts has its parts combined atomically. Merrill's and EMOGI's lessons (PPoPP 2012, VLDB 2020).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.author import Author
from penstock.engine.kernels.cuda import (
    BLOCK,
    LANE_SHIFT,
    LANES,
    ONE,
    PER_THREAD,
    TILE,
    Kernel,
    all_threads,
    cuda,
    degree_of,
    device,
    find_row,
    global_thread,
    is_marked,
    kernel,
    mark,
    row_start,
)

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


@kernel
def tile_rows(index, rows, count, found):  # type: ignore[no-untyped-def]
    """Kernel: the row of the first edge of every tile."""
    bases, offsets, shift = index
    tile = global_thread()
    while tile < count:
        found[tile] = find_row(bases, offsets, shift, np.uint64(0), rows, tile * np.int64(TILE))
        tile += all_threads()


def make_relax(author: Author, weighted: bool) -> Any:
    """Device function: send along one edge."""
    edge, wants = author.calls["edge"], author.calls["wants"]
    combine, has_send = COMBINE[author.combine], author.has_send

    @device
    def relax(view, e, u, d, fields, scalars, sent, target, touched, base):  # type: ignore[no-untyped-def]
        neighbors, weights, e0 = view
        v = np.uint64(neighbors[np.uint64(e - e0)])
        if wants(fields, scalars, v, ZERO, base):
            message = sent[u - base] if has_send else sent[0]
            w = weights[np.uint64(e - e0)] if weighted else np.uint8(1)
            value = target.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
            if combine(target, v - base, value):
                mark(touched, v - base)

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
    """Kernel: push from the listed vertices whose rows lie in [v0, v1); if `counting`, counter[0] gains the lines."""
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
        counting,
        counter,
    ):
        bases, offsets, shift = index
        e0 = view[2]
        bounds = cuda.shared.array(2, np.int64)
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
        if lines > 0:
            cuda.atomic.add(counter, 0, lines)

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


def make_push_edges(author: Author, weighted: bool) -> Kernel:
    """Kernel: push along edges in any order with explicit sources (layout `list`)."""
    relax = make_relax(author, weighted)

    @kernel
    def push_edges(  # type: ignore[no-untyped-def]
        view, sources, e1, index, active, whole, fields, scalars, sent, target, touched, base
    ):
        bases, offsets, shift = index
        e = view[2] + global_thread()
        while e < e1:
            u = np.uint64(sources[np.uint64(e - view[2])])
            if whole or is_marked(active, u - base):
                relax(view, e, u, degree_of(bases, offsets, shift, u), fields, scalars, sent, target, touched, base)
            e += all_threads()

    return push_edges


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


def make_pull_first(author: Author, weighted: bool) -> Kernel:
    """Kernel: every row of the view that wants messages takes the first that an active in-neighbor sends."""
    wants, gather, combine = author.calls["wants"], make_gather(author, weighted), COMBINE[author.combine]

    @kernel
    def pull_first(  # type: ignore[no-untyped-def]
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
        tile = e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < e1:
            tile_bounds(tile, e0, e1, rows, starts, bounds, ZERO)
            low = max(tile * np.int64(TILE), e0)
            high = min((tile + np.int64(1)) * np.int64(TILE), e1)
            v = bounds[0] + np.uint64(cuda.threadIdx.x)
            while v < bounds[1]:
                e = max(row_start(bases, offsets, shift, v), low)
                end = min(row_start(bases, offsets, shift, v + ONE), high)
                if e < end and wants(fields, scalars, v, ZERO, base):
                    found = False
                    while e < end and not found:
                        value, found = gather(
                            view, e, v, active, whole, out_index, fields, scalars, sent, identity, base
                        )
                        if found and combine(target, v - base, value):
                            mark(touched, v - base)
                        e += np.int64(1)
                v += np.uint64(BLOCK)
            tile += np.int64(cuda.gridDim.x)

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
