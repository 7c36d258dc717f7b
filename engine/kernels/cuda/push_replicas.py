"""Pushes that sum, on graphs whose first vertices are the most pointed to: each block keeps these vertices' sums.

Atomics on one address take turns, and those of a skewed graph go to few. A block adds what goes to the first vertices
in shared memory, and to the target once at its end, so that a hot vertex is written once a block instead of once an
edge. There is one replica a block: `decisions/replicas.md` says why.
"""

from __future__ import annotations

import numba
import numpy as np
from penstock.engine.kernels.cuda.device_functions import NONE, degree_of, find_row, is_marked
from penstock.engine.kernels.cuda.driver import (
    BLOCK,
    PER_THREAD,
    SIMULATED,
    TILE,
    DeviceKernel,
    blocks_sharing,
    cuda,
    device,
    kernel,
)
from penstock.engine.kernels.cuda.push import make_relax, tile_bounds
from penstock.engine.kernels.hot_vertices import EDGES_EACH
from penstock.engine.kernels.interface import VertexArrays
from penstock.engine.program.bindings import Author

SHARED_BYTES = 256 if SIMULATED else 16 << 10
"""What a block keeps of sums; of those that were tried the least time (`decisions/replicas.md`)."""
AT_ONCE = 6
"""Blocks of a multiprocessor."""


def kept_sums(author: Author) -> int:
    """How many vertices' sums a block keeps, from the first vertex on; a multiple of 32."""
    return SHARED_BYTES // author.message.itemsize


def blocks_of(author: Author) -> int:
    """Blocks of a launch: as many as run at once."""
    return blocks_sharing(SHARED_BYTES + kept_sums(author) // 8, AT_ONCE)


def least_edges(author: Author) -> int:
    """Along so many edges it is worth adding up the sums of all blocks."""
    return (1 if SIMULATED else EDGES_EACH) * kept_sums(author) * blocks_of(author)


@device
def clear(values, words):  # type: ignore[no-untyped-def]
    """Set a block's sums and its marks to 0; all its threads call it."""
    for at in range(cuda.threadIdx.x, values.shape[0], BLOCK):
        values[at] = values.dtype.type(0)
    for at in range(cuda.threadIdx.x, words.shape[0], BLOCK):
        words[at] = NONE
    cuda.syncthreads()


@device
def add_up(values, words, arrays):  # type: ignore[no-untyped-def]
    """Add a block's marked sums to the target, and its marks to those of the target; all its threads call it."""
    cuda.syncthreads()
    for at in range(cuda.threadIdx.x, values.shape[0], BLOCK):
        if is_marked(words, np.uint64(at)):
            cuda.atomic.add(arrays.target, at, values[at])
    for at in range(cuda.threadIdx.x, words.shape[0], BLOCK):
        if words[at] != NONE:
            cuda.atomic.or_(arrays.touched, at, words[at])


def make_push_rows_replicas(author: Author) -> DeviceKernel:
    """Kernel: what `push_rows` does, for a state that begins with vertex 0, with the first vertices' sums kept."""
    relax, kept = make_relax(author), kept_sums(author)
    first, kind, words = np.uint64(kept), numba.from_dtype(author.message), kept // 32

    def push_rows(view, index, starts, active, whole, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        sums = cuda.shared.array(kept, kind)
        marks = cuda.shared.array(words, np.uint32)
        bounds = cuda.shared.array(2, np.uint64)
        clear(sums, marks)
        here = VertexArrays(arrays.sent, sums, marks, marks, arrays.base)
        tile = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < view.e1:
            tile_bounds(tile, view, starts, bounds)
            for k in range(PER_THREAD):
                e = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
                if e >= view.e0 and e < view.e1:
                    u = find_row(index, bounds[0], bounds[1], e)
                    if whole or is_marked(active, u - arrays.base):
                        d = degree_of(index, u)
                        if np.uint64(view.neighbors[np.uint64(e - view.e0)]) - arrays.base < first:
                            relax(view, e, u, d, fields, scalars, here)
                        else:
                            relax(view, e, u, d, fields, scalars, arrays)
            tile += np.int64(cuda.gridDim.x)
        add_up(sums, marks, arrays)

    return kernel(push_rows, AT_ONCE)
