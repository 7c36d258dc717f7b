"""Loops over vertices on a GPU: select and enumerate, which make a frontier of what is pending.

Bitmaps are 32-bit words here (the same memory as the host's 64-bit ones); a thread takes one word and walks its
bits. The list of the frontier is ascending: blocks count their words, one
block sums the counts up, and each block then writes its vertices where they belong. The list's running sum counts
*lines*: aligned runs of LANES edges that a row touches, which is what `push_list` hands out.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    BIT,
    FIVE,
    LOW,
    NONE,
    ONE,
    all_threads,
    are_dense,
    global_thread,
    lowest_bit,
    mark,
    row_start,
)
from penstock.engine.kernels.cuda.driver import BLOCK, LANE_SHIFT, DeviceKernel, cuda, device, kernel
from penstock.engine.program.bindings import Author

INFINITE = np.float64(np.inf)
ZERO = np.int64(0)
SPOTS = np.uint64(32 * BLOCK)
"""Vertices whose words a block takes, one a thread."""


@device
def lines_of(start, end):  # type: ignore[no-untyped-def]
    """Aligned runs of LANES edges that a row [start, end) touches."""
    if end <= start:
        return ZERO
    return ((end - np.int64(1)) >> LANE_SHIFT) - (start >> LANE_SHIFT) + np.int64(1)


@device
def block_sum(values, thread):  # type: ignore[no-untyped-def]
    """Turn shared values[BLOCK] into their inclusive running sum; all threads of the block call it."""
    step = 1
    while step < BLOCK:
        cuda.syncthreads()
        other = values[thread - step] if thread >= step else values[0] * 0
        cuda.syncthreads()
        values[thread] += other
        step *= 2
    cuda.syncthreads()


def make_select(author: Author) -> DeviceKernel:
    """Kernel: move what is pending and below `limit` into `active`; per block: vertices, lines, edges, rest."""
    priority, has_priority = author.calls["priority"], author.has_priority

    @kernel
    def select(  # type: ignore[no-untyped-def]
        pending, active, index, fields, scalars, limit, base, counts, rests
    ):
        counted = cuda.shared.array(BLOCK, np.int64)
        lined = cuda.shared.array(BLOCK, np.int64)
        edged = cuda.shared.array(BLOCK, np.int64)
        lowest = cuda.shared.array(BLOCK, np.float64)
        thread = cuda.threadIdx.x
        marked = cuda.shared.array(BLOCK, np.uint32)
        taken = cuda.shared.array(BLOCK, np.uint32)
        vertices, lines, edges, low = ZERO, ZERO, ZERO, INFINITE
        first = np.uint64(cuda.blockIdx.x) * np.uint64(BLOCK)
        word = first + np.uint64(thread)
        left = pending[word] if word < np.uint64(pending.shape[0]) else NONE
        marked[thread], taken[thread] = left, left
        dense = are_dense(left)
        spot = np.uint64(thread) if dense else np.uint64(thread) << FIVE
        while spot < SPOTS if dense else left != NONE:
            if not dense:
                spot = (np.uint64(thread) << FIVE) | lowest_bit(left)
                left = np.uint32(left & np.uint32(left - BIT))
            bit = np.uint32(BIT << np.uint32(spot & LOW))
            if marked[spot >> FIVE] & bit != NONE:
                v = (first << FIVE) + spot + base
                start, end = row_start(index, v), row_start(index, v + ONE)
                p = np.float64(priority(fields, scalars, v, end - start, base)) if has_priority else -INFINITE
                if has_priority and p >= limit:
                    cuda.atomic.and_(taken, spot >> FIVE, np.uint32(~bit))
                    low = min(low, p)
                else:
                    vertices += np.int64(1)
                    edges += end - start
                    lines += lines_of(start, end)
            spot += np.uint64(BLOCK)
        cuda.syncthreads()
        if word < np.uint64(pending.shape[0]):
            if marked[thread] != NONE:
                pending[word] = np.uint32(marked[thread] & ~taken[thread])
            if taken[thread] != NONE or active[word] != NONE:
                active[word] = taken[thread]
        counted[thread], lined[thread], edged[thread], lowest[thread] = vertices, lines, edges, low
        half = BLOCK // 2
        while half > 0:
            cuda.syncthreads()
            if thread < half:
                counted[thread] += counted[thread + half]
                lined[thread] += lined[thread + half]
                edged[thread] += edged[thread + half]
                lowest[thread] = min(lowest[thread], lowest[thread + half])
            half //= 2
        if thread == 0:
            counts[0, cuda.blockIdx.x] = counted[0]
            counts[1, cuda.blockIdx.x] = lined[0]
            counts[2, cuda.blockIdx.x] = edged[0]
            rests[cuda.blockIdx.x] = lowest[0]

    return select


@kernel
def sum_up(counts, rests, totals, readback, rest, counted_lines, waiting, readback_lines):  # type: ignore[no-untyped-def]
    """Kernel of one block: counts become where each block starts; totals, readback int64[3], rest float64[1]: sums.

    The first `waiting` of counted_lines move to readback_lines (int64, both).
    """
    counted = cuda.shared.array(BLOCK, np.int64)
    lined = cuda.shared.array(BLOCK, np.int64)
    edged = cuda.shared.array(BLOCK, np.int64)
    lowest = cuda.shared.array(BLOCK, np.float64)
    thread = cuda.threadIdx.x
    pieces = counts.shape[1]
    each = (pieces + BLOCK - 1) // BLOCK
    first, last = min(thread * each, pieces), min((thread + 1) * each, pieces)
    vertices, lines, edges, low = ZERO, ZERO, ZERO, INFINITE
    for piece in range(first, last):
        vertices += counts[0, piece]
        lines += counts[1, piece]
        edges += counts[2, piece]
        low = min(low, rests[piece])
    counted[thread], lined[thread], edged[thread], lowest[thread] = vertices, lines, edges, low
    block_sum(counted, thread)
    block_sum(lined, thread)
    block_sum(edged, thread)
    at, line = counted[thread] - vertices, lined[thread] - lines
    for piece in range(first, last):
        vertices, lines = counts[0, piece], counts[1, piece]
        counts[0, piece], counts[1, piece] = at, line
        at += vertices
        line += lines
    spot = np.int64(thread)
    while spot < waiting:
        readback_lines[spot] = counted_lines[spot]
        counted_lines[spot] = ZERO
        spot += np.int64(BLOCK)
    if thread == BLOCK - 1:
        totals[0], totals[1], totals[2] = counted[thread], lined[thread], edged[thread]
        readback[0], readback[1], readback[2] = counted[thread], lined[thread], edged[thread]
        low = INFINITE
        for other in range(BLOCK):
            low = min(low, lowest[other])
        rest[0] = low


@kernel
def enumerate_marked(active, index, base, counts, totals, vertices, work):  # type: ignore[no-untyped-def]
    """Kernel: list the marked vertices, ascending, with the running sum of their lines; nothing if too many."""
    if totals[0] > vertices.shape[0]:
        return
    counted = cuda.shared.array(BLOCK, np.int64)
    lined = cuda.shared.array(BLOCK, np.int64)
    thread = cuda.threadIdx.x
    word = np.uint64(global_thread())
    bits = active[word] if word < np.uint64(active.shape[0]) else NONE
    count, lines = ZERO, ZERO
    left = bits
    while left != NONE:
        v = ((word << FIVE) | lowest_bit(left)) + base
        left = np.uint32(left & np.uint32(left - BIT))
        count += np.int64(1)
        lines += lines_of(row_start(index, v), row_start(index, v + ONE))
    counted[thread], lined[thread] = count, lines
    block_sum(counted, thread)
    block_sum(lined, thread)
    at = counts[0, cuda.blockIdx.x] + counted[thread] - count
    line = counts[1, cuda.blockIdx.x] + lined[thread] - lines
    left = bits
    while left != NONE:
        v = ((word << FIVE) | lowest_bit(left)) + base
        left = np.uint32(left & np.uint32(left - BIT))
        vertices[at] = v
        work[at] = line
        at += np.int64(1)
        line += lines_of(row_start(index, v), row_start(index, v + ONE))
    if global_thread() == 0:
        work[totals[0]] = totals[1]


@kernel
def mark_all(positions, words):  # type: ignore[no-untyped-def]
    """Kernel: set the bits at `positions` (uint64)."""
    at = global_thread()
    while at < positions.shape[0]:
        mark(words, positions[at])
        at += all_threads()


@kernel
def unmark_sent(pending, active, whole, index, view, base):  # type: ignore[no-untyped-def]
    """Kernel: active vertices (all if `whole`) whose rows the view has whole are not pending: it sends for them."""
    word = ((view.v0 - base) >> FIVE) + np.uint64(global_thread())
    while word <= (view.v1 - ONE - base) >> FIVE:
        sent = NONE
        left = pending[word] if whole else np.uint32(pending[word] & active[word])
        while left != NONE:
            v = ((word << FIVE) | lowest_bit(left)) + base
            rest = np.uint32(left & np.uint32(left - BIT))
            if v >= view.v0 and v < view.v1 and row_start(index, v) >= view.e0 and row_start(index, v + ONE) <= view.e1:
                sent = np.uint32(sent | (left ^ rest))
            left = rest
        if sent != NONE:
            pending[word] = np.uint32(pending[word] & ~sent)
        word += np.uint64(all_threads())
