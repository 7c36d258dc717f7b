"""Loop over the rows of unsettled vertices on a GPU, both ways: `host/push.py` says what for.

By tiles as in `push.py`. The threads of a block hold a tile's edges in registers between two passes: first vertices
take what their rows bring, then those that are pending or active send along the same edges. One thread decides for each
row that lies in the tile as a whole, so that its edges agree; a row that a tile cuts is only pulled, and stays pending.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    COMBINE,
    ONE,
    degree_of,
    find_row,
    is_marked,
    mark_new,
    row_start,
    unmark,
)
from penstock.engine.kernels.cuda.driver import BLOCK, PER_THREAD, TILE, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.cuda.push import ZERO, tile_bounds
from penstock.engine.program.bindings import Author

NO, WANTED, SENDS = np.uint8(0), np.uint8(1), np.uint8(2)
"""Of a row that lies in the tile as a whole: whether its vertex is unsettled, and then whether it sends."""
PULLED, BOTH = np.uint8(1), np.uint8(2)
"""Of an edge: whether it is pulled along only, or may be sent along too."""


def make_send_along(author: Author) -> Any:
    """Device function: combine what `u` of degree d sends to `v`, and make `v` pending if that changes it.

    The value is there before the mark: who finds the mark, and takes it away, reads the value.
    """
    edge, combine = author.calls["edge"], COMBINE[author.combine]

    @device
    def send_along(u, v, w, d, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        target, base = arrays.target, arrays.base
        value = target.dtype.type(edge(fields, scalars, arrays.sent[0], u, v, w, d, base))
        if combine(target, v - base, value):
            cuda.threadfence()
            mark_new(arrays.touched, v - base)

    return send_along


def make_decide(author: Author) -> Any:
    """Device function: chosen[e] = whether the row that begins with edge e of the tile is wanted; whole rows only.

    some[0]: whether any row is, or a part of one.
    """
    unsettled = author.calls["unsettled"]

    @device
    def decide(index, rows, tile, chosen, some, fields, scalars, base):  # type: ignore[no-untyped-def]
        low, high, origin = tile
        v = rows[0] + np.uint64(cuda.threadIdx.x)
        while v < rows[1]:
            start, end = row_start(index, v), row_start(index, v + ONE)
            if max(start, low) < min(end, high):
                wanted = unsettled(fields, scalars, v, ZERO, base)
                if wanted:
                    some[0] = WANTED
                if low <= start and end <= high:
                    chosen[start - origin] = WANTED if wanted else NO
            v += np.uint64(BLOCK)

    return decide


@device
def take_senders(index, rows, tile, chosen, active, arrays):  # type: ignore[no-untyped-def]
    """Let the vertices of wanted rows that are pending or active send, and be pending no more."""
    low, high, origin = tile
    v = rows[0] + np.uint64(cuda.threadIdx.x)
    while v < rows[1]:
        start, end = row_start(index, v), row_start(index, v + ONE)
        if start < end and low <= start and end <= high and chosen[start - origin] == WANTED:
            at = v - arrays.base
            if is_marked(arrays.touched, at) or is_marked(active, at):
                unmark(arrays.touched, at)
                chosen[start - origin] = SENDS
        v += np.uint64(BLOCK)


def make_relax_unsettled(author: Author) -> DeviceKernel:
    """Kernel: relax the view's rows of unsettled vertices, from and to who is pending or active.

    Fences keep the order: a thread that reads a value after its vertex's mark was taken away reads what was there when
    the mark was set, and not what its multiprocessor's first-level cache has kept.
    """
    send_along, decide = make_send_along(author), make_decide(author)
    unsettled, weighted = author.calls["unsettled"], author.weighted

    @kernel
    def relax_unsettled(view, index, starts, active, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        base, pending = arrays.base, arrays.touched
        bounds = cuda.shared.array(2, np.uint64)
        chosen = cuda.shared.array(TILE, np.uint8)
        some = cuda.shared.array(1, np.uint8)
        owners, ends = cuda.local.array(PER_THREAD, np.uint64), cuda.local.array(PER_THREAD, np.uint64)
        loads, ways = cuda.local.array(PER_THREAD, view.weights.dtype), cuda.local.array(PER_THREAD, np.uint8)
        number = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while number * np.int64(TILE) < view.e1:
            tile_bounds(number, view, starts, bounds)
            rows, origin = (bounds[0], bounds[1]), number * np.int64(TILE)
            tile = max(origin, view.e0), min(origin + np.int64(TILE), view.e1), origin
            some[0] = NO
            cuda.syncthreads()
            decide(index, rows, tile, chosen, some, fields, scalars, base)
            cuda.syncthreads()
            number += np.int64(cuda.gridDim.x)
            if some[0] == NO:
                continue
            for k in range(PER_THREAD):
                e = origin + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
                ways[k] = NO
                if e >= tile[0] and e < tile[1]:
                    v = find_row(index, rows[0], rows[1], e)
                    start, end = row_start(index, v), row_start(index, v + ONE)
                    if tile[0] <= start and end <= tile[1]:
                        if chosen[start - origin] == WANTED:
                            ways[k] = BOTH
                    elif unsettled(fields, scalars, v, ZERO, base):
                        ways[k] = PULLED
                    if ways[k] != NO:
                        at = np.uint64(e - view.e0)
                        u = np.uint64(view.neighbors[at])
                        owners[k], ends[k] = v, u
                        loads[k] = view.weights[at] if weighted else 1
                        if is_marked(pending, u - base) or is_marked(active, u - base):
                            send_along(u, v, loads[k], degree_of(index, u), fields, scalars, arrays)
            cuda.threadfence()
            cuda.syncthreads()
            take_senders(index, rows, tile, chosen, active, arrays)
            cuda.threadfence()
            cuda.syncthreads()
            for k in range(PER_THREAD):
                if ways[k] == BOTH:
                    u, start = owners[k], row_start(index, owners[k])
                    if chosen[start - origin] == SENDS:
                        d = row_start(index, u + ONE) - start
                        send_along(u, ends[k], loads[k], d, fields, scalars, arrays)

    return relax_unsettled
