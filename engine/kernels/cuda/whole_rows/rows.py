"""Loops over whole rows on a GPU: all messages to a vertex side by side, then `vertex` on each vertex's own.

As `host/whole_rows/rows.py`: edges come view by view, by tiles, and go to their places in a buffer. Then a thread takes
a row; where the author sorts it, that has been done before, by all threads (`sort.py`). Where a row's messages are in
the buffer, and which row a place belongs to:

    layout = index, other, twice, first, last, origin

of rows [first, last) (uint64): the row index of the first walk and, where there are two (`twice`), that of the second;
origin (int64): the edges before the block, in all walks together. A row's messages are side by side, those of the first
walk before those of the second; nothing is stored of that, two reads of an index tell it. See
`engine/state/row_blocks.py`.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    ONE,
    all_threads,
    degree_of,
    find_row,
    global_thread,
    row_start,
)
from penstock.engine.kernels.cuda.driver import BLOCK, PER_THREAD, TILE, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.cuda.push import tile_bounds
from penstock.engine.kernels.shared_functions import make_find_row
from penstock.engine.program.bindings import Author


@device
def position(layout, v):  # type: ignore[no-untyped-def]
    """Where the messages of row `v` of [first, last] begin; for `last`: how many the block has. int64."""
    place = row_start(layout[0], v) - layout[5]
    if layout[2]:
        place += row_start(layout[1], v)
    return place


@device
def middle_of(layout, v):  # type: ignore[no-untyped-def]
    """Where the messages of the second walk begin in row `v`; with one walk, where the row ends."""
    return position(layout, v) + degree_of(layout[0], v)


@device
def place_of(layout, index, v, edge, second):  # type: ignore[no-untyped-def]
    """The place of an edge's message in row `v`; index: of the walk that brings it; second: whether it is that."""
    if second:
        return position(layout, v + ONE) + (edge - row_start(index, v + ONE))
    return position(layout, v) + (edge - row_start(index, v))


@device
def row_from(layout, place):  # type: ignore[no-untyped-def]
    """The first row that begins at or after `place`; `last` if none does."""
    low, high = layout[3], layout[4]
    while low < high:
        middle = (low + high) >> ONE
        if position(layout, middle) >= place:
            high = middle
        else:
            low = middle + ONE
    return low


row_at = device(make_find_row(position))
"""The row of [first, last) whose message is at a place: the last that begins at or before it."""


@device
def tile_rows_of(layout, tile, count, bounds):  # type: ignore[no-untyped-def]
    """bounds uint64[2], shared: first and past-the-last row of a tile of places; all threads of the block call it."""
    cuda.syncthreads()
    if cuda.threadIdx.x < 2:
        place = tile * np.int64(TILE) + np.int64(cuda.threadIdx.x) * np.int64(TILE - 1)
        row = row_at(layout, layout[3], layout[4], min(place, count - np.int64(1)))
        bounds[cuda.threadIdx.x] = row + np.uint64(cuda.threadIdx.x)
    cuda.syncthreads()


def make_collect(author: Author) -> DeviceKernel:
    """Kernel: put the message of every edge of the view, whose rows are the block's, into the buffer.

    index, starts: of the walk that brings the edges; second: whether that is the second.
    """
    edge, chosen, weighted = author.calls["edge"], author.calls["chosen"], author.weighted

    @kernel
    def collect(  # type: ignore[no-untyped-def]
        view, index, starts, layout, second, out_index, fields, scalars, base, buffer
    ):
        rows = cuda.shared.array(2, np.uint64)
        tile = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < view.e1:
            tile_bounds(tile, view, starts, rows)
            for k in range(PER_THREAD):
                e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
                if e >= view.e0 and e < view.e1:
                    v = find_row(index, rows[0], rows[1], e)
                    if not chosen(fields, v, base):
                        continue
                    u = np.uint64(view.neighbors[np.uint64(e - view.e0)])
                    d = degree_of(out_index, u)
                    w = view.weights[np.uint64(e - view.e0)] if weighted else np.uint8(1)
                    value = edge(fields, scalars, buffer[0], u, v, w, d, base)
                    buffer[place_of(layout, index, v, e, second)] = buffer.dtype.type(value)
            tile += np.int64(cuda.gridDim.x)

    return collect


@kernel
def copy_rows(view, index, starts, layout, second, buffer):  # type: ignore[no-untyped-def]
    """Kernel: put the neighbors of the edges of the view, whose rows are the block's, into the buffer."""
    rows = cuda.shared.array(2, np.uint64)
    tile = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
    while tile * np.int64(TILE) < view.e1:
        tile_bounds(tile, view, starts, rows)
        for k in range(PER_THREAD):
            e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
            if e >= view.e0 and e < view.e1:
                v = find_row(index, rows[0], rows[1], e)
                buffer[place_of(layout, index, v, e, second)] = view.neighbors[np.uint64(e - view.e0)]
        tile += np.int64(cuda.gridDim.x)


def make_apply_rows(author: Author) -> DeviceKernel:
    """Kernel: run `vertex` on each row's messages; new values go to `following`, old ones stay for others to read.

    index: of the edges sent along. partial float64[threads, globals]: every thread's share of the Globals so far.
    """
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    accumulate, totals = author.calls["accumulate"], len(author.totals)
    chosen = author.calls["chosen"]

    @kernel
    def apply_rows(layout, index, fields, following, scalars, base, buffer, partial):  # type: ignore[no-untyped-def]
        share = global_thread()
        v = layout[3] + np.uint64(share)
        while v < layout[4]:
            if chosen(fields, v, base):
                d = degree_of(index, v)
                incoming = buffer[position(layout, v) : position(layout, v + ONE)]
                old = load(fields, v, base)
                store(following, v, base, vertex(fields, scalars, incoming, True, v, d, base))
                if totals > 0:
                    accumulate(partial, share, following, old, scalars, v, d, base)
            v += np.uint64(all_threads())

    return apply_rows
