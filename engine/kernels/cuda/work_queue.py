"""The queue of fused iterations (`fused.py`): a frontier's rows in pieces of GROUP edges, in no order.

Owns how a row becomes pieces, how the threads of all blocks get places in a queue, and the three ways into it: from the
host's list, from vertices that messages reached, and from the bitmap when the limit has moved.

    queue = (owners, firsts), joiners, counts, box      pieces; the second queue; their lengths; int32[4], shared
    values = fields, arrays                             the vertices' state (arrays: VertexArrays)
    limits = limit, floor                               see `make_due`
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    BIT,
    FIVE,
    NONE,
    ONE,
    all_threads,
    global_thread,
    lowest_bit,
    row_start,
)
from penstock.engine.kernels.cuda.driver import BLOCK, SIMULATED, cuda, device
from penstock.engine.program.bindings import Author

GROUP = np.int64(4 if SIMULATED else 8)
"""Edges of a piece, which as many threads take."""
GROUP_SHIFT = np.int64(int(GROUP).bit_length() - 1)
LARGE = np.int64(1 << 20)
"""More than fused iterations take of pieces or edges, and 256 times as much is still an int32."""
ZERO = np.int64(0)
INFINITE = np.float64(np.inf)
PIECE_SHIFT = np.int64(5)
PIECE_LENGTH = np.int64(15)
PIECE_FIRST = np.int64(16)
"""A piece is its first edge << 5, plus 16 if it is the first of its row, plus how many edges it has."""


@device
def pieces_of(start, end):  # type: ignore[no-untyped-def]
    """How many pieces a row [start, end) makes; an empty one makes one, to be taken like the others."""
    return max(np.int64(1), (end - start + GROUP - np.int64(1)) >> GROUP_SHIFT)


@device
def put_pieces(pieces, place, u, start, end):  # type: ignore[no-untyped-def]
    """List row [start, end) of `u` from `place` on, as far as there is room."""
    owners, firsts = pieces
    count = min(pieces_of(start, end), owners.shape[0] - place)
    word = (start << PIECE_SHIFT) | PIECE_FIRST
    for part in range(count):
        length = min(end - start - part * GROUP, GROUP)
        owners[place + part] = u
        firsts[place + part] = word | length
        word = (start + (part + np.int64(1)) * GROUP) << PIECE_SHIFT


@device
def reserve(box, counts, at, places, vertices, edges):  # type: ignore[no-untyped-def]
    """This thread's first of `places` in a queue of all blocks; adds up counts[at:at + 3]. All threads call it.

    A block adds up first, since additions to one number of all blocks take turns; and in 32 bits, for which shared
    memory has an addition. A row counts as LARGE at most: then there are too many anyway, and the sum is not read.
    """
    thread = cuda.threadIdx.x
    cuda.syncthreads()
    if thread < 4:
        box[thread] = np.int32(0)
    cuda.syncthreads()
    place = np.int32(0)
    if places > ZERO:
        place = cuda.atomic.add(box, 0, np.int32(min(places, LARGE)))
    if vertices > ZERO:
        cuda.atomic.add(box, 1, np.int32(vertices))
    if edges > ZERO:
        cuda.atomic.add(box, 2, np.int32(min(edges, LARGE)))
    cuda.syncthreads()
    if thread < 3 and box[thread] > 0:
        before = cuda.atomic.add(counts, at + np.int64(thread), np.int64(box[thread]))
        if thread == 0:
            box[3] = np.int32(min(before, LARGE))
    cuda.syncthreads()
    return np.int64(place) + np.int64(box[3])


@device
def turns(at):  # type: ignore[no-untyped-def]
    """Number of the work item of local number `at`: neighboring items go to different blocks, so that few crowd."""
    return at * np.int64(cuda.gridDim.x) + np.int64(cuda.blockIdx.x)


@device
def begin_set(counts, lowest, turn):  # type: ignore[no-untyped-def]
    """Clear the set of the turn after `turn`, which has not been read since the turn before."""
    if global_thread() < np.int64(4):
        counts[((turn + np.int64(1)) % np.int64(3)) * np.int64(4) + global_thread()] = ZERO
    if global_thread() == ZERO:
        lowest[(turn + np.int64(1)) % np.int64(3)] = INFINITE


def make_due(author: Author) -> Any:
    """Device function: whether a vertex's priority is due: below the limit, or the lowest, which moved it (floor)."""
    priority, has_priority = author.calls["priority"], author.has_priority

    @device
    def due(fields, scalars, v, d, base, limits):  # type: ignore[no-untyped-def]
        if not has_priority:
            return True
        value = np.float64(priority(fields, scalars, v, d, base))
        return not (value >= limits[0] and value > limits[1])

    return due


def make_enter(author: Author) -> Any:
    """Device function: note what a vertex of the next frontier sends, and list its pieces."""
    send, has_send = author.calls["send"], author.has_send

    @device
    def enter(pieces, place, v, row, values, scalars):  # type: ignore[no-untyped-def]
        fields, arrays = values
        if has_send:
            arrays.sent[v - arrays.base] = send(fields, scalars, v, row[1] - row[0], arrays.base)
        put_pieces(pieces, place, v, row[0], row[1])

    return enter


def make_open(author: Author) -> Any:
    """Device function: the pieces of the frontier that the host has listed (vertices, how many)."""
    enter = make_enter(author)

    @device
    def open_list(frontier, index, queue, values, scalars):  # type: ignore[no-untyped-def]
        listed, number = frontier
        pieces, _, counts, box = queue
        at = ZERO
        while turns(at) < number:
            i = turns(at + np.int64(cuda.threadIdx.x))
            v, start, end, places, one = np.uint64(0), ZERO, ZERO, ZERO, ZERO
            if i < number:
                v = np.uint64(listed[i])
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                places, one = pieces_of(start, end), np.int64(1)
            place = reserve(box, counts, np.int64(1), places, one, end - start)
            if places > ZERO:
                enter(pieces, place, v, (start, end), values, scalars)
            at += np.int64(BLOCK)

    return open_list


def make_lowest(author: Author) -> Any:
    """Device function: lowest[turn] = the lowest priority of a pending vertex, of those this block looks at."""
    priority = author.calls["priority"]

    @device
    def find_lowest(index, pending, lows, lowest, turn, values, scalars):  # type: ignore[no-untyped-def]
        fields, base = values[0], values[1].base
        thread = cuda.threadIdx.x
        low = INFINITE
        word = global_thread()
        while word < pending.shape[0]:
            left = pending[word]
            while left != NONE:
                v = ((np.uint64(word) << FIVE) | lowest_bit(left)) + base
                left = np.uint32(left & np.uint32(left - BIT))
                d = row_start(index, v + ONE) - row_start(index, v)
                low = min(low, np.float64(priority(fields, scalars, v, d, base)))
            word += all_threads()
        lows[thread] = low
        half = BLOCK // 2
        while half > 0:
            cuda.syncthreads()
            if thread < half:
                lows[thread] = min(lows[thread], lows[thread + half])
            half //= 2
        if thread == 0 and lows[0] < INFINITE:
            cuda.atomic.min(lowest, turn, lows[0])

    return find_lowest


def make_gather_due(author: Author) -> Any:
    """Device function: the pieces of all pending vertices that are due; a thread takes a word of the bitmap."""
    due, enter = make_due(author), make_enter(author)

    @device
    def gather_due(index, pending, queue, set_at, limits, values, scalars):  # type: ignore[no-untyped-def]
        pieces, _, counts, box = queue
        fields, base = values[0], values[1].base
        at = np.int64(cuda.blockIdx.x) * np.int64(BLOCK)
        while at < pending.shape[0]:
            word = np.uint64(at + np.int64(cuda.threadIdx.x))
            left = pending[word] if word < np.uint64(pending.shape[0]) else NONE
            chosen, places, number, edges = NONE, ZERO, ZERO, ZERO
            while left != NONE:
                v = ((word << FIVE) | lowest_bit(left)) + base
                rest = np.uint32(left & np.uint32(left - BIT))
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                if due(fields, scalars, v, end - start, base, limits):
                    chosen = np.uint32(chosen | (left ^ rest))
                    places += pieces_of(start, end)
                    number += np.int64(1)
                    edges += end - start
                left = rest
            place = reserve(box, counts, set_at + np.int64(1), places, number, edges)
            while chosen != NONE:
                v = ((word << FIVE) | lowest_bit(chosen)) + base
                chosen = np.uint32(chosen & np.uint32(chosen - BIT))
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                enter(pieces, place, v, (start, end), values, scalars)
                place += pieces_of(start, end)
            at += all_threads()

    return gather_due
