"""Vectors for messages on a GPU: every row adds up, or merges, number by number what its in-neighbors send.

By tiles as in `pull.py`: as many threads as there are for a row share its part of the tile, each with a vector and
a sum of its own; the sums meet in shared memory, PIECE numbers at a time. A row that a tile cuts adds up atomically.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda.device_functions import ONE, all_threads, degree_of, global_thread, row_start
from penstock.engine.kernels.cuda.driver import BLOCK, TILE, DeviceKernel, compile_author, cuda, device, kernel
from penstock.engine.kernels.cuda.push import ZERO, tile_bounds
from penstock.engine.program.bindings import Author, define, store_by_numbers
from penstock.engine.program.program import Program

PIECE = 8
"""Numbers of the vectors that are summed over threads together: shared memory has room for so many of each."""
ROOM = PIECE * BLOCK


def _make_sum_groups(merge: Any) -> Any:
    """Device function: the sums of groups of threads, by `merge`."""

    @device
    def sum_groups(sums, total, first, last, each, scalars):  # type: ignore[no-untyped-def]
        """total[first:last] of the first of every `each` neighboring threads = the sum over them; all threads call it.

        each: a power of two. sums (ROOM,): shared.
        """
        thread = np.int64(cuda.threadIdx.x)
        for k in range(first, last):
            sums[(k - first) * BLOCK + thread] = total[k]
        half = each // 2
        while half > 0:
            cuda.syncthreads()
            if thread & (each - 1) < half:
                for k in range(first, last):
                    at = (k - first) * BLOCK + thread
                    sums[at] = merge(scalars, sums[at], sums[at + half])
            half //= 2
        cuda.syncthreads()
        for k in range(first, last):
            total[k] = sums[(k - first) * BLOCK + thread]

    return sum_groups


def _make_combine(author: Author) -> Any:
    """Device function: combine a number into incoming[at, k], which other threads may change meanwhile."""
    merge = author.calls["merge"]

    @device
    def add(incoming, at, k, value, scalars):  # type: ignore[no-untyped-def]
        cuda.atomic.add(incoming, (at, k), value)

    @device
    def exchange(incoming, at, k, value, scalars):  # type: ignore[no-untyped-def]
        old = incoming[at, k]
        new = merge(scalars, old, value)
        while new != old:
            seen = cuda.atomic.cas(incoming, (at, k), old, new)
            if seen == old:
                break
            old = seen
            new = merge(scalars, old, value)

    return exchange if author.combine == "merge" else add


def make_pull_vectors(author: Author, width: int) -> DeviceKernel:
    """Kernel: combine into incoming[v, :] the vectors of `width` numbers along the edges of the view."""
    edge, merge, weighted = author.calls["edge"], author.calls["merge"], author.weighted
    sum_groups, combine = _make_sum_groups(merge), _make_combine(author)
    message_type: Any = numba.from_dtype(author.message)

    @kernel
    def pull_vectors(  # type: ignore[no-untyped-def]
        view, index, starts, out_index, fields, scalars, incoming, base
    ):
        bounds = cuda.shared.array(2, np.uint64)
        sums = cuda.shared.array(ROOM, message_type)
        message = cuda.local.array(width, message_type)
        total = cuda.local.array(width, message_type)
        for k in range(width):
            message[k] = 0
        thread = np.int64(cuda.threadIdx.x)
        tile = view.e0 // np.int64(TILE) + np.int64(cuda.blockIdx.x)
        while tile * np.int64(TILE) < view.e1:
            tile_bounds(tile, view, starts, bounds)
            origin = tile * np.int64(TILE)
            count = np.int64(bounds[1] - bounds[0])
            each = np.int64(1)
            while each * 2 * count <= BLOCK:
                each *= 2
            part = thread & (each - np.int64(1))
            row = thread // each
            while row - thread // each < count:
                v = bounds[0] + np.uint64(row)
                low, high, cut = ZERO, ZERO, False
                if row < count:
                    start = row_start(index, v)
                    end = row_start(index, v + ONE)
                    low, high = max(start, max(origin, view.e0)), min(end, min(origin + np.int64(TILE), view.e1))
                    cut = low > start or high < end
                for k in range(width):
                    total[k] = 0
                e = low + part
                while e < high:
                    u = np.uint64(view.neighbors[np.uint64(e - view.e0)])
                    d = degree_of(out_index, u)
                    w = view.weights[np.uint64(e - view.e0)] if weighted else np.uint8(1)
                    edge(fields, scalars, message, u, v, w, d, base)
                    for k in range(width):
                        total[k] = merge(scalars, total[k], message[k])
                    e += each
                for piece in range(0, width, PIECE):
                    last = min(piece + PIECE, width)
                    if each > 1:
                        sum_groups(sums, total, piece, last, each, scalars)
                    if part == 0 and low < high:
                        for k in range(piece, last):
                            if cut:
                                combine(incoming, np.int64(v - base), np.int64(k), total[k], scalars)
                            else:
                                incoming[v - base, k] = merge(scalars, incoming[v - base, k], total[k])
                row += np.int64(BLOCK) // each
            tile += np.int64(cuda.gridDim.x)

    return pull_vectors


def make_apply_vectors(author: Author, width: int) -> DeviceKernel:
    """Kernel: run `vertex` on every vertex and its vector of messages, which is cleared after that.

    partial float64[threads, globals]: every thread's share of the Globals.
    """
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    accumulate, totals = author.calls["accumulate"], len(author.totals)

    @kernel
    def apply_vectors(index, fields, scalars, incoming, base, partial):  # type: ignore[no-untyped-def]
        share = global_thread()
        at = np.uint64(share)
        while at < np.uint64(incoming.shape[0]):
            v = at + base
            d = degree_of(index, v)
            old = load(fields, v, base)
            store(fields, v, base, vertex(fields, scalars, incoming[at], True, v, d, base))
            if totals > 0:
                accumulate(partial, share, fields, old, scalars, v, d, base)
            for k in range(width):
                incoming[at, k] = 0
            at += np.uint64(all_threads())

    return apply_vectors


def make_store(program: Program) -> Any:
    """Device function: the author's `store`, vector fields number by number: numba-cuda assigns no arrays."""
    return compile_author(define("store", store_by_numbers(program), {}))
