"""Blocks of whole rows on a GPU: where a row's messages lie in the buffer, and which row a place belongs to.

    layout = index, other, twice, first, last, origin

of rows [first, last) (uint64): the row index of the first walk and, where there are two (`twice`), that of the second;
origin (int64): the edges before the block, in all walks together. A row's messages lie side by side, those of the first
walk before those of the second; nothing is kept of that, two reads of an index tell it. See
`engine/state/row_blocks.py`.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda import TILE, cuda, device
from penstock.engine.kernels.cuda_parts import ONE, degree_of, row_start


@device
def position(layout, v):  # type: ignore[no-untyped-def]
    """Where the messages of row `v` of [first, last] begin; for `last`: how many the block has. int64."""
    bases, offsets, shift = layout[0]
    place = row_start(bases, offsets, shift, v) - layout[5]
    if layout[2]:
        bases, offsets, shift = layout[1]
        place += row_start(bases, offsets, shift, v)
    return place


@device
def middle_of(layout, v):  # type: ignore[no-untyped-def]
    """Where the messages of the second walk begin in row `v`; with one walk, where the row ends."""
    bases, offsets, shift = layout[0]
    return position(layout, v) + degree_of(bases, offsets, shift, v)


@device
def place_of(layout, index, v, edge, second):  # type: ignore[no-untyped-def]
    """The place of an edge's message in row `v`; index: of the walk that brings it; second: whether it is that."""
    bases, offsets, shift = index
    if second:
        return position(layout, v + ONE) + (edge - row_start(bases, offsets, shift, v + ONE))
    return position(layout, v) + (edge - row_start(bases, offsets, shift, v))


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


@device
def row_at(layout, first, last, place):  # type: ignore[no-untyped-def]
    """The row of [first, last) whose message lies at `place`: the last that begins at or before it."""
    low, high = first, last - ONE
    while low < high:
        middle = (low + high + ONE) >> ONE
        if position(layout, middle) <= place:
            low = middle
        else:
            high = middle - ONE
    return low


@device
def tile_rows_of(layout, tile, count, bounds):  # type: ignore[no-untyped-def]
    """bounds uint64[2], shared: first and past-the-last row of a tile of places; all threads of the block call it."""
    cuda.syncthreads()
    if cuda.threadIdx.x < 2:
        place = tile * np.int64(TILE) + np.int64(cuda.threadIdx.x) * np.int64(TILE - 1)
        row = row_at(layout, layout[3], layout[4], min(place, count - np.int64(1)))
        bounds[cuda.threadIdx.x] = row + np.uint64(cuda.threadIdx.x)
    cuda.syncthreads()
