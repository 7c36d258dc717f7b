"""Loops over edges on a GPU that gather: whole rows, and rows with early exit; by tiles as in `cuda_edges.py`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda import BLOCK, LANE_SHIFT, TILE, Kernel, cuda, device, kernel
from penstock.engine.kernels.cuda_edges import COMBINE, ZERO, tile_bounds
from penstock.engine.kernels.cuda_parts import ONE, is_marked, mark, row_start, tell_sum
from penstock.engine.kernels.cuda_tile import BOTH, MERGE, ROOM, make_add_rows, make_bring, make_fill, spot
from penstock.engine.program.bindings import Author


def make_gather(author: Author, weighted: bool) -> Any:
    """Device function: the message that comes along one in-edge, and whether its source is active."""
    bring = make_bring(author, weighted)

    @device
    def gather(view, e, v, active, whole, out_index, fields, scalars, sent, identity, base):  # type: ignore[no-untyped-def]
        at = np.uint64(e - view[2])
        u = np.uint64(view[0][at])
        if not (whole or is_marked(active, u - base)):
            return identity, False
        return bring(view, at, u, v, out_index, fields, scalars, sent, base), True

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

    A tile's messages are computed edge by edge, neighboring threads on neighboring edges, into shared memory
    (Greathouse and Daga's CSR-Stream, SC 2014), and added up there by edges too (`make_add_rows`). A thread asks for
    all its ids before it looks at the first, then for all their messages (`make_fill`). Every block takes neighboring
    tiles: blocks that run at the same time read what lies together, and there may be more than run.
    """
    wants, fill, add_rows = author.calls["wants"], make_fill(author, weighted, uses_target), make_add_rows(author)
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
        values = cuda.shared.array(ROOM, message_type)
        sums = cuda.shared.array(BOTH, message_type)
        broken = cuda.shared.array(BOTH, np.uint8)
        ends = cuda.shared.array(BLOCK, np.int32)
        ends[cuda.threadIdx.x] = 0
        first_tile = e0 // np.int64(TILE)
        tiles = (e1 - np.int64(1)) // np.int64(TILE) + np.int64(1) - first_tile
        each = (tiles + np.int64(cuda.gridDim.x) - np.int64(1)) // np.int64(cuda.gridDim.x)
        tile = first_tile + np.int64(cuda.blockIdx.x) * each
        last_tile = min(tile + each, first_tile + tiles)
        while tile < last_tile:
            tile_bounds(tile, e0, e1, rows, starts, bounds, ZERO)
            origin = tile * np.int64(TILE)
            low, high = max(origin, e0), min(origin + np.int64(TILE), e1)
            mine = bounds[0], bounds[1]
            fill(
                view, (low, high, origin), mine, index, out_index, active, whole, fields, scalars, sent, identity, base,
                values, ends,
            )  # fmt: skip
            cuda.syncthreads()
            add_rows(values, ends, sums, broken, identity, high - np.int64(1) - origin)
            cuda.syncthreads()
            v = mine[0] + np.uint64(cuda.threadIdx.x)
            while v < mine[1]:
                start, end = row_start(bases, offsets, shift, v), row_start(bases, offsets, shift, v + ONE)
                if max(start, low) < min(end, high):
                    total = values[spot(min(end, high) - np.int64(1) - origin)]
                    if total != identity and wants(fields, scalars, v, ZERO, base):
                        changed = True
                        if start < low or high < end:
                            changed = combine(target, v - base, total)
                        else:
                            old = target[v - base]
                            target[v - base] = merge(old, total)
                            changed = target[v - base] != old
                        if changed and not whole:
                            mark(touched, v - base)
                v += np.uint64(BLOCK)
            tile += np.int64(1)

    return pull
