"""Loops over edges on a GPU that gather: whole rows, and rows with early exit; by tiles as in `push.py`.

Threads share a tile's edges: for reading, neighboring threads take neighboring edges, and ask for all of theirs before
they look at one; for adding up, each takes a few edges side by side, whatever rows they belong to.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    COMBINE,
    MERGE,
    ONE,
    degree_of,
    find_row,
    is_marked,
    mark,
    row_start,
    tell_sum,
)
from penstock.engine.kernels.cuda.driver import BLOCK, LANE_SHIFT, PER_THREAD, TILE, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.cuda.push import ZERO, tile_bounds
from penstock.engine.program.bindings import Author

PART_SHIFT = np.int64(PER_THREAD.bit_length() - 1)
PART_LAST = np.int64(PER_THREAD - 1)
ROOM = TILE + BLOCK
"""Messages that a tile has room for, with a gap after each thread's."""
BOTH = 2 * BLOCK
"""Of a scan: what a step reads, and what it writes."""


def make_bring(author: Author) -> Any:
    """Device function: the message that source `u` sends along the in-edge at place `at` of the view."""
    edge, has_send, weighted = author.calls["edge"], author.has_send, author.weighted

    @device
    def bring(view, at, u, v, out_index, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        sent, base = arrays.sent, arrays.base
        message = sent[u - base] if has_send else sent[0]
        d = degree_of(out_index, u)
        w = view.weights[at] if weighted else np.uint8(1)
        return sent.dtype.type(edge(fields, scalars, message, u, v, w, d, base))

    return bring


@device
def spot(at):  # type: ignore[no-untyped-def]
    """Where the tile's edge number `at` has its message: with gaps, for threads that each walk their own."""
    return np.uint64(at + (at >> PART_SHIFT))


@device
def mark_ends(index, rows, tile, ends):  # type: ignore[no-untyped-def]
    """Set a bit for every edge of the tile with which a row ends.

    tile: the first of its edges that the view has, the one after the last, and the first that it could have.
    """
    low, high, origin = tile
    v = rows[0] + np.uint64(cuda.threadIdx.x)
    while v < rows[1]:
        start, end = row_start(index, v), row_start(index, v + ONE)
        if start < end and low < end and end <= high:
            at = end - np.int64(1) - origin
            cuda.atomic.or_(ends, at >> PART_SHIFT, np.int32(1) << np.int32(at & PART_LAST))
        v += np.uint64(BLOCK)


def make_fill(author: Author, uses_target: bool) -> Any:
    """Device function: values = the messages along the tile's edges, at the places of `spot`.

    Where the view has no such edge or its source is not active: the identity. tile: as in `mark_ends`, which runs while
    messages come. In steps: a thread's ids, marks of their sources, messages; what a step asks for it asks for at once.
    An edge outside is read as the nearest one inside, so that no branch stands between two loads.
    """
    bring, message_type = make_bring(author), numba.from_dtype(author.message)

    @device
    def fill(  # type: ignore[no-untyped-def]
        view, tile, rows, index, sources, fields, scalars, identity, arrays, values, ends
    ):
        out_index, active, whole = sources
        low, high, origin = tile
        sent_by = cuda.local.array(PER_THREAD, np.uint64)
        brought = cuda.local.array(PER_THREAD, message_type)
        chosen = cuda.local.array(PER_THREAD, np.bool_)
        mine = origin + np.int64(cuda.threadIdx.x)
        for k in range(PER_THREAD):
            e = min(max(mine + np.int64(k * BLOCK), low), high - np.int64(1))
            sent_by[k] = view.neighbors[np.uint64(e - view.e0)]
        for k in range(PER_THREAD):
            chosen[k] = whole or is_marked(active, sent_by[k] - arrays.base)
        for k in range(PER_THREAD):
            e = min(max(mine + np.int64(k * BLOCK), low), high - np.int64(1))
            v = rows[0]
            if uses_target:
                v = find_row(index, rows[0], rows[1], e)
            brought[k] = identity
            if whole or chosen[k]:
                brought[k] = bring(view, np.uint64(e - view.e0), sent_by[k], v, out_index, fields, scalars, arrays)
        mark_ends(index, rows, tile, ends)
        for k in range(PER_THREAD):
            e = mine + np.int64(k * BLOCK)
            inside = e >= low and e < high
            values[spot(e - origin)] = brought[k] if inside else identity

    return fill


def make_add_rows(author: Author) -> Any:
    """Device function: values = at the last edge of every row of the tile, and of the tile, what the row comes to.

    Every thread walks PER_THREAD edges; what a row has of several is added by a segmented scan over the threads
    (Blelloch 1990), so that long rows beside short ones take no longer. ends int32[BLOCK]: bits of `mark_ends`, unset
    here. sums (2 * BLOCK,), broken uint8[2 * BLOCK]: shared. last: the tile's last edge, from its first possible one.
    """
    merge = MERGE[author.combine]

    @device
    def add_rows(values, ends, sums, broken, identity, last):  # type: ignore[no-untyped-def]
        thread = np.int64(cuda.threadIdx.x)
        bits = ends[thread]
        ends[thread] = np.int32(0)
        mine = spot(thread << PART_SHIFT)
        total, first, begun = identity, identity, mine
        seen = False
        for k in range(PER_THREAD):
            total = merge(total, values[mine + np.uint64(k)])
            if bits & np.int32(1 << k) != np.int32(0):
                if seen:
                    values[mine + np.uint64(k)] = total
                else:
                    first, begun, seen = total, mine + np.uint64(k), True
                total = identity
        over, side, step = seen, ZERO, np.int64(1)
        sums[thread], broken[thread] = total, np.uint8(over)
        while step < np.int64(BLOCK):
            cuda.syncthreads()
            if thread >= step:
                before, cut = sums[side + thread - step], broken[side + thread - step] != np.uint8(0)
                total = total if over else merge(before, total)
                over = over or cut
            side = np.int64(BLOCK) - side
            sums[side + thread], broken[side + thread] = total, np.uint8(over)
            step *= np.int64(2)
        cuda.syncthreads()
        if seen:
            values[begun] = merge(sums[side + thread - np.int64(1)], first) if thread > ZERO else first
        if thread == last >> PART_SHIFT and bits >> np.int32(last & PART_LAST) & np.int32(1) == np.int32(0):
            values[spot(last)] = total

    return add_rows


def make_gather(author: Author) -> Any:
    """Device function: the message that comes along one in-edge, and whether its source is active."""
    bring = make_bring(author)

    @device
    def gather(view, e, v, sources, fields, scalars, identity, arrays):  # type: ignore[no-untyped-def]
        out_index, active, whole = sources
        at = np.uint64(e - view.e0)
        u = np.uint64(view.neighbors[at])
        if not (whole or is_marked(active, u - arrays.base)):
            return identity, False
        return bring(view, at, u, v, out_index, fields, scalars, arrays), True

    return gather


def make_pull_first(author: Author, linked: bool = True) -> DeviceKernel:
    """Kernel: every row of the view whose vertex accepts messages takes the first that an active in-neighbor sends.

    linked: False for a kernel that leaves out the next two, which slow it by half where all edges are on the device.
    skipped: how many of a row's edges were looked at before, and a bitmap of who found a message among them.
    tally: as in `make_push_list`, every row's lines by themselves.
    """
    cond, gather, combine = author.calls["cond"], make_gather(author), COMBINE[author.combine]

    @kernel
    def pull_first(  # type: ignore[no-untyped-def]
        view, skipped, index, starts, sources, fields, scalars, identity, arrays, tally
    ):
        skip, matched = skipped
        target, base = arrays.target, arrays.base
        counting, counter = tally
        bounds = cuda.shared.array(2, np.uint64)
        box = cuda.shared.array(1, np.int64)
        lines = ZERO
        tile = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < view.e1:
            tile_bounds(tile, view, starts, bounds)
            low = max(tile * np.int64(TILE), view.e0)
            high = min((tile + np.int64(1)) * np.int64(TILE), view.e1)
            v = bounds[0] + np.uint64(cuda.threadIdx.x)
            while v < bounds[1]:
                e = row_start(index, v)
                over = False
                if linked:
                    e += skip
                    over = skip > ZERO and is_marked(matched, v - base)
                e = max(e, low)
                end = min(row_start(index, v + ONE), high)
                if e < end and not over and cond(fields, scalars, v, ZERO, base):
                    found = False
                    before = (e >> LANE_SHIFT) - np.int64(1)
                    while e < end and not found:
                        value, found = gather(view, e, v, sources, fields, scalars, identity, arrays)
                        if found and combine(target, v - base, value):
                            mark(arrays.touched, v - base)
                        e += np.int64(1)
                    if linked:
                        lines += ((e - np.int64(1)) >> LANE_SHIFT) - before
                v += np.uint64(BLOCK)
            tile += np.int64(cuda.gridDim.x)
        if linked and counting:
            tell_sum(box, lines, counter)

    return pull_first


def make_pull(author: Author, uses_target: bool) -> DeviceKernel:
    """Kernel: every row of the view whose vertex accepts messages combines all that its active in-neighbors send.

    A tile's messages are computed edge by edge, neighboring threads on neighboring edges, into shared memory
    (Greathouse and Daga's CSR-Stream, SC 2014), and added up there by edges too (`make_add_rows`). A thread asks for
    all its ids before it looks at the first, then for all their messages (`make_fill`). Every block takes neighboring
    tiles: blocks that run at the same time read neighboring memory, and there may be more than run.
    """
    cond, fill, add_rows = author.calls["cond"], make_fill(author, uses_target), make_add_rows(author)
    combine, merge = COMBINE[author.combine], MERGE[author.combine]
    message_type = numba.from_dtype(author.message)

    @kernel
    def pull(view, index, starts, sources, fields, scalars, identity, arrays):  # type: ignore[no-untyped-def]
        target, base, whole = arrays.target, arrays.base, sources[2]
        bounds = cuda.shared.array(2, np.uint64)
        values = cuda.shared.array(ROOM, message_type)
        sums = cuda.shared.array(BOTH, message_type)
        broken = cuda.shared.array(BOTH, np.uint8)
        ends = cuda.shared.array(BLOCK, np.int32)
        ends[cuda.threadIdx.x] = 0
        first_tile = view.e0 // np.int64(TILE)
        tiles = (view.e1 - np.int64(1)) // np.int64(TILE) + np.int64(1) - first_tile
        each = (tiles + np.int64(cuda.gridDim.x) - np.int64(1)) // np.int64(cuda.gridDim.x)
        tile = first_tile + np.int64(cuda.blockIdx.x) * each
        last_tile = min(tile + each, first_tile + tiles)
        while tile < last_tile:
            tile_bounds(tile, view, starts, bounds)
            origin = tile * np.int64(TILE)
            low, high = max(origin, view.e0), min(origin + np.int64(TILE), view.e1)
            mine = bounds[0], bounds[1]
            fill(
                view, (low, high, origin), mine, index, sources, fields, scalars, identity, arrays, values, ends
            )  # fmt: skip
            cuda.syncthreads()
            add_rows(values, ends, sums, broken, identity, high - np.int64(1) - origin)
            cuda.syncthreads()
            v = mine[0] + np.uint64(cuda.threadIdx.x)
            while v < mine[1]:
                start, end = row_start(index, v), row_start(index, v + ONE)
                if max(start, low) < min(end, high):
                    total = values[spot(min(end, high) - np.int64(1) - origin)]
                    if total != identity and cond(fields, scalars, v, ZERO, base):
                        changed = True
                        if start < low or high < end:
                            changed = combine(target, v - base, total)
                        else:
                            old = target[v - base]
                            target[v - base] = merge(old, total)
                            changed = target[v - base] != old
                        if changed and not whole:
                            mark(arrays.touched, v - base)
                v += np.uint64(BLOCK)
            tile += np.int64(1)

    return pull
