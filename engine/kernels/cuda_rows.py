"""Loops over whole rows on a GPU: all messages to a vertex side by side, then `vertex` on each vertex's own.

As `rows.py`: edges come view by view, by tiles, and land where they belong in a buffer (`cuda_blocks.py`). Then a
thread takes a row; where the author sorts it, that has been done before, by all threads (`cuda_bitonic.py`).
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda import BLOCK, PER_THREAD, TILE, Kernel, cuda, kernel
from penstock.engine.kernels.cuda_blocks import place_of, position
from penstock.engine.kernels.cuda_edges import ZERO, tile_bounds
from penstock.engine.kernels.cuda_parts import ONE, all_threads, degree_of, find_row, global_thread
from penstock.engine.program.bindings import Author


def make_collect(author: Author, weighted: bool) -> Kernel:
    """Kernel: put the message of every edge [e0, e1) of the view, all in the block's rows, into the buffer.

    index, starts: of the walk that brings the edges; second: whether that is the second.
    """
    edge = author.calls["edge"]

    @kernel
    def collect(  # type: ignore[no-untyped-def]
        view, bounds, index, starts, layout, second, out_index, fields, scalars, base, buffer
    ):
        neighbors, weights, origin = view
        e0, e1 = bounds
        bases, offsets, shift = index
        out_bases, out_offsets, out_shift = out_index
        rows = cuda.shared.array(2, np.uint64)
        tile = e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < e1:
            tile_bounds(tile, e0, e1, (layout[3], layout[4]), starts, rows, ZERO)
            for k in range(PER_THREAD):
                e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
                if e >= e0 and e < e1:
                    v = find_row(bases, offsets, shift, rows[0], rows[1], e)
                    u = np.uint64(neighbors[np.uint64(e - origin)])
                    d = degree_of(out_bases, out_offsets, out_shift, u)
                    w = weights[np.uint64(e - origin)] if weighted else np.uint8(1)
                    value = edge(fields, scalars, buffer[0], u, v, w, d, base)
                    buffer[place_of(layout, index, v, e, second)] = buffer.dtype.type(value)
            tile += np.int64(cuda.gridDim.x)

    return collect


@kernel
def copy_rows(view, bounds, index, starts, layout, second, buffer):  # type: ignore[no-untyped-def]
    """Kernel: put the neighbors of the edges [e0, e1) of the view, all in the block's rows, into the buffer."""
    neighbors, _, origin = view
    e0, e1 = bounds
    bases, offsets, shift = index
    rows = cuda.shared.array(2, np.uint64)
    tile = e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
    while tile * np.int64(TILE) < e1:
        tile_bounds(tile, e0, e1, (layout[3], layout[4]), starts, rows, ZERO)
        for k in range(PER_THREAD):
            e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
            if e >= e0 and e < e1:
                v = find_row(bases, offsets, shift, rows[0], rows[1], e)
                buffer[place_of(layout, index, v, e, second)] = neighbors[np.uint64(e - origin)]
        tile += np.int64(cuda.gridDim.x)


def make_apply_rows(author: Author) -> Kernel:
    """Kernel: run `vertex` on each row's messages; new values go to `following`, old ones stay for others to read.

    index: of the edges sent along. partial float64[threads, globals]: every thread's share of the Globals so far.
    """
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    accumulate, totals = author.calls["accumulate"], len(author.totals)

    @kernel
    def apply_rows(layout, index, fields, following, scalars, base, buffer, partial):  # type: ignore[no-untyped-def]
        bases, offsets, shift = index
        share = global_thread()
        v = layout[3] + np.uint64(share)
        while v < layout[4]:
            d = degree_of(bases, offsets, shift, v)
            incoming = buffer[position(layout, v) : position(layout, v + ONE)]
            old = load(fields, v, base)
            store(following, v, base, vertex(fields, scalars, incoming, True, v, d, base))
            if totals > 0:
                accumulate(partial, share, following, old, scalars, v, d, base)
            v += np.uint64(all_threads())

    return apply_rows
