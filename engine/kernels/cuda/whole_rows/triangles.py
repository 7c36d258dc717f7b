"""Triangles on a GPU: rows as sets of neighbors, turned so that each triangle is met once, and intersected.

As `host/whole_rows/triangles.py`, but a turned row is two ascending parts, the neighbors of the first walk and those
that only the second has: so they are kept as they are in the buffer, by counting what is before them, and nothing is
merged. A group of threads takes an edge, walks the shorter of its ends' rows and searches the longer one by halves
(Fox, Green, Gabert, An, Bader, HPEC 2018, compare the ways). Parallel edges count once, self-loops not at all.

    kept = first (uint64), starts, middles, targets, arcs     see `kept.DeviceOrientedRows`
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import ONE, all_threads, global_thread
from penstock.engine.kernels.cuda.driver import BLOCK, PER_THREAD, SIMULATED, TILE, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.cuda.frontier import block_sum
from penstock.engine.kernels.cuda.whole_rows.rows import middle_of, position, row_at, tile_rows_of
from penstock.engine.program.bindings import Author

GROUP = np.int64(4 if SIMULATED else 8)
"""Threads that intersect the rows of an edge's ends."""
GROUP_SHIFT = np.int64(int(GROUP).bit_length() - 1)
RUN = np.int64(2 if SIMULATED else 16)
"""Edges that a group takes at a time."""
ZERO = np.int64(0)
STEP = np.int64(1)
FLAG = np.int32(1)


@device
def seek(values, low, high, value):  # type: ignore[no-untyped-def]
    """Where `value` is in ascending values[low:high]; -1 if it is not there."""
    end = high
    while low < high:
        middle = (low + high) >> STEP
        if values[middle] < value:
            low = middle + STEP
        else:
            high = middle
    if low < end and values[low] == value:
        return low
    return np.int64(-1)


@device
def is_new(layout, buffer, v, place):  # type: ignore[no-untyped-def]
    """Whether the neighbor at `place` of row `v` is another vertex, and none of those before it in the row."""
    w, middle = buffer[place], middle_of(layout, v)
    if np.uint64(w) == v:
        return False
    if place < middle:
        return place == position(layout, v) or buffer[place - STEP] != w
    if place > middle and buffer[place - STEP] == w:
        return False
    return seek(buffer, position(layout, v), middle, w) < ZERO


@device
def is_kept(neighbors, v, w, base):  # type: ignore[no-untyped-def]
    """Whether the edge between v and w belongs to v's row."""
    mine, other = neighbors[v - base], neighbors[w - base]
    return mine < other or (mine == other and v < w)


@kernel
def count_neighbors(layout, buffer, count, neighbors, base):  # type: ignore[no-untyped-def]
    """Kernel: neighbors[v] += distinct neighbors of every row of the block, which holds `count` of all."""
    rows = cuda.shared.array(2, np.uint64)
    tile = np.int64(cuda.blockIdx.x)
    while tile * np.int64(TILE) < count:
        tile_rows_of(layout, tile, count, rows)
        for k in range(PER_THREAD):
            place = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
            if place < count:
                v = row_at(layout, rows[0], rows[1], place)
                if is_new(layout, buffer, v, place):
                    cuda.atomic.add(neighbors, v - base, STEP)
        tile += np.int64(cuda.gridDim.x)


@kernel
def rank_kept(layout, buffer, count, neighbors, base, ranks, totals):  # type: ignore[no-untyped-def]
    """Kernel: which of the block's `count` neighbors belong to their rows.

    ranks int32 (count + 1,): twice the number of those before it in its tile, plus 1 if it is one itself. totals int64:
    how many every tile has, the tile of place `count` included.
    """
    rows = cuda.shared.array(2, np.uint64)
    counted = cuda.shared.array(BLOCK, np.int64)
    thread = np.int64(cuda.threadIdx.x)
    tile = np.int64(cuda.blockIdx.x)
    while tile * np.int64(TILE) <= count:
        tile_rows_of(layout, tile, count, rows)
        found = np.int32(0)
        mine = ZERO
        for k in range(PER_THREAD):
            place = tile * np.int64(TILE) + thread * np.int64(PER_THREAD) + np.int64(k)
            if place < count:
                v = row_at(layout, rows[0], rows[1], place)
                w = np.uint64(buffer[place])
                if is_kept(neighbors, v, w, base) and is_new(layout, buffer, v, place):
                    found = np.int32(found | (FLAG << np.int32(k)))
                    mine += STEP
        counted[thread] = mine
        block_sum(counted, thread)
        rank = counted[thread] - mine
        for k in range(PER_THREAD):
            place = tile * np.int64(TILE) + thread * np.int64(PER_THREAD) + np.int64(k)
            if place <= count:
                flag = (found >> np.int32(k)) & FLAG
                ranks[place] = np.int32(rank * np.int64(2)) | flag
                rank += np.int64(flag)
        if thread == BLOCK - 1:
            totals[tile] = counted[thread]
        tile += np.int64(cuda.gridDim.x)


@kernel
def sum_ranks(totals, tiles, filled):  # type: ignore[no-untyped-def]
    """Kernel of one block: totals[:tiles] become where each tile's begin, after filled[0], which grows by them."""
    counted = cuda.shared.array(BLOCK, np.int64)
    thread = np.int64(cuda.threadIdx.x)
    before = filled[0]
    each = (tiles + np.int64(BLOCK - 1)) // np.int64(BLOCK)
    first, last = min(thread * each, tiles), min((thread + STEP) * each, tiles)
    mine = ZERO
    for tile in range(first, last):
        mine += totals[tile]
    counted[thread] = mine
    block_sum(counted, thread)
    at = before + counted[thread] - mine
    for tile in range(first, last):
        here = totals[tile]
        totals[tile] = at
        at += here
    if thread == BLOCK - 1:
        filled[0] = before + counted[thread]


@device
def rank_of(ranks, totals, place):  # type: ignore[no-untyped-def]
    """Where the first kept neighbor at `place` or after it goes."""
    return totals[place // np.int64(TILE)] + np.int64(ranks[place] >> FLAG)


@kernel
def keep_rows(layout, buffer, count, ranks, totals, row, kept):  # type: ignore[no-untyped-def]
    """Kernel: write the block's kept neighbors and how many edges join them; its rows are the strip's from `row` on."""
    _, starts, middles, targets, arcs = kept
    rows = cuda.shared.array(2, np.uint64)
    tile = np.int64(cuda.blockIdx.x)
    while tile * np.int64(TILE) < count:
        tile_rows_of(layout, tile, count, rows)
        for k in range(PER_THREAD):
            place = tile * np.int64(TILE) + np.int64(k * BLOCK) + np.int64(cuda.threadIdx.x)
            if place < count and ranks[place] & FLAG != np.int32(0):
                v = row_at(layout, rows[0], rows[1], place)
                w, middle = buffer[place], middle_of(layout, v)
                ways = np.uint8(1)
                if place < middle and seek(buffer, middle, position(layout, v + ONE), w) >= ZERO:
                    ways = np.uint8(2)
                at = rank_of(ranks, totals, place)
                targets[at] = w
                arcs[at] = ways
        tile += np.int64(cuda.gridDim.x)
    v = layout[3] + np.uint64(global_thread())
    while v < layout[4]:
        at = row + np.int64(v - layout[3])
        starts[at] = rank_of(ranks, totals, position(layout, v))
        middles[at] = rank_of(ranks, totals, middle_of(layout, v))
        if v + ONE == layout[4]:
            starts[at + STEP] = rank_of(ranks, totals, count)
        v += np.uint64(all_threads())


@device
def seek_kept(kept, at, value):  # type: ignore[no-untyped-def]
    """Where `value` is in the strip's row `at`; -1 if it is not there."""
    _, starts, middles, targets, _ = kept
    found = seek(targets, starts[at], middles[at], value)
    if found < ZERO:
        found = seek(targets, middles[at], starts[at + STEP], value)
    return found


@device
def strip_row(starts, edge):  # type: ignore[no-untyped-def]
    """The strip's row that owns a kept edge: the last that starts at or before it."""
    low, high = ZERO, np.int64(starts.shape[0]) - np.int64(2)
    while low < high:
        middle = (low + high + STEP) >> STEP
        if starts[middle] <= edge:
            low = middle
        else:
            high = middle - STEP
    return low


def make_intersect(author: Author) -> DeviceKernel:
    """Kernel: for every triangle v, w, x (v a row of `ones`, w a row of `others`) give each corner its message.

    each: what one stored edge counts as.
    """
    corner = author.calls["corner"]

    @device
    def give(incoming, v, value):  # type: ignore[no-untyped-def]
        cuda.atomic.add(incoming, v, incoming.dtype.type(value))

    @kernel
    def intersect(ones, others, each, scalars, incoming, base):  # type: ignore[no-untyped-def]
        first, starts, _, targets, arcs = ones
        low, other_starts, _, other_targets, other_arcs = others
        high = low + np.uint64(other_starts.shape[0] - 1)
        count = starts[starts.shape[0] - 1]
        lane = global_thread() & (GROUP - STEP)
        p = (global_thread() >> GROUP_SHIFT) * RUN
        while p < count:
            at = strip_row(starts, p)
            for edge in range(p, min(p + RUN, count)):
                while starts[at + STEP] <= edge:
                    at += STEP
                w = np.uint64(targets[edge])
                if w >= low and w < high:
                    v, there = first + np.uint64(at), np.int64(w - low)
                    i, end = starts[at], starts[at + STEP]
                    j, other_end = other_starts[there], other_starts[there + STEP]
                    shorter = end - i <= other_end - j
                    for_v, for_w = incoming.dtype.type(0), incoming.dtype.type(0)
                    walk = (i if shorter else j) + lane
                    last = end if shorter else other_end
                    while walk < last:
                        if shorter:
                            i, j = walk, seek_kept(others, there, targets[walk])
                        else:
                            i, j = seek_kept(ones, at, other_targets[walk]), walk
                        if i >= ZERO and j >= ZERO:
                            x = np.uint64(targets[i])
                            for_v += incoming.dtype.type(corner(scalars, np.int64(other_arcs[j]) * each))
                            for_w += incoming.dtype.type(corner(scalars, np.int64(arcs[i]) * each))
                            give(incoming, x - base, corner(scalars, np.int64(arcs[edge]) * each))
                        walk += GROUP
                    if for_v != 0:
                        give(incoming, v - base, for_v)
                    if for_w != 0:
                        give(incoming, w - base, for_w)
            p += (all_threads() >> GROUP_SHIFT) * RUN

    return intersect


@kernel
def count_sides(ones, others, sides, other_sides):  # type: ignore[no-untyped-def]
    """Kernel: add 1 to each edge of every triangle, met as in `make_intersect`; sides: of kept edges, int32."""
    _, starts, _, targets, _ = ones
    low, other_starts, _, other_targets, _ = others
    high = low + np.uint64(other_starts.shape[0] - 1)
    count = starts[starts.shape[0] - 1]
    lane = global_thread() & (GROUP - STEP)
    p = (global_thread() >> GROUP_SHIFT) * RUN
    while p < count:
        at = strip_row(starts, p)
        for edge in range(p, min(p + RUN, count)):
            while starts[at + STEP] <= edge:
                at += STEP
            w = np.uint64(targets[edge])
            if w >= low and w < high:
                there = np.int64(w - low)
                i, end = starts[at], starts[at + STEP]
                j, other_end = other_starts[there], other_starts[there + STEP]
                shorter = end - i <= other_end - j
                walk, last = (i if shorter else j) + lane, end if shorter else other_end
                hits = np.int32(0)
                while walk < last:
                    if shorter:
                        i, j = walk, seek_kept(others, there, targets[walk])
                    else:
                        i, j = seek_kept(ones, at, other_targets[walk]), walk
                    if i >= ZERO and j >= ZERO:
                        hits += FLAG
                        cuda.atomic.add(sides, i, FLAG)
                        cuda.atomic.add(other_sides, j, FLAG)
                    walk += GROUP
                if hits > np.int32(0):
                    cuda.atomic.add(sides, edge, hits)
        p += (all_threads() >> GROUP_SHIFT) * RUN
