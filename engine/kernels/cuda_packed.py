"""Push along a packed view on a GPU; see `packed.py`. Blocks of threads take tiles of TILE edges, neighboring threads
neighboring edges; two searches of the whole index bound those of a tile's edges."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda import BLOCK, PER_THREAD, TILE, Kernel, cuda, device, kernel
from penstock.engine.kernels.cuda_edges import ZERO, make_relax
from penstock.engine.kernels.cuda_parts import degree_of, is_marked
from penstock.engine.program.bindings import Author


@device
def find_part(offsets, first, last, edge):  # type: ignore[no-untyped-def]
    """The row part in [first, last] that owns the packed `edge`: the last that starts at or before it."""
    low, high = first, last
    while low < high:
        middle = (low + high + np.int64(1)) >> np.int64(1)
        if np.int64(offsets[middle]) <= edge:
            low = middle
        else:
            high = middle - np.int64(1)
    return low


def make_push_packed(author: Author, weighted: bool) -> Kernel:
    """Kernel: push along the marked rows (all if `whole`) of a packed view of `e1` edges and `count` rows."""
    relax = make_relax(author, weighted)

    @kernel
    def push_packed(  # type: ignore[no-untyped-def]
        view, e1, rows, offsets, count, index, active, whole, fields, scalars, sent, target, touched, base
    ):
        bases, row_offsets, shift = index
        bounds = cuda.shared.array(2, np.int64)
        thread = np.int64(cuda.threadIdx.x)
        tile = np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < e1:
            origin = tile * np.int64(TILE)
            cuda.syncthreads()
            if thread < 2:
                edge = min(origin + thread * np.int64(TILE - 1), e1 - np.int64(1))
                bounds[thread] = find_part(offsets, ZERO, count - np.int64(1), edge)
            cuda.syncthreads()
            for k in range(PER_THREAD):
                e = origin + np.int64(k * BLOCK) + thread
                if e < e1:
                    u = np.uint64(rows[find_part(offsets, bounds[0], bounds[1], e)])
                    if whole or is_marked(active, u - base):
                        d = degree_of(bases, row_offsets, shift, u)
                        relax(view, e, u, d, fields, scalars, sent, target, touched, base)
            tile += np.int64(cuda.gridDim.x)

    return push_packed
