"""Rows that follow the partition that brought them (`execution/cel.py`): rounds over one view, in one launch.

    pending, due vertices with whole rows in the view -> pieces of these rows -> along their edges -> the next round

Pieces and the wait of all blocks between two steps are those of fused iterations (`work_queue.py`). The queue is in the
room that the frontier's list leaves; what finds no room stays pending.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    BIT,
    FIVE,
    NONE,
    ONE,
    global_thread,
    lowest_bit,
    row_start,
    wait_for_all,
)
from penstock.engine.kernels.cuda.driver import BLOCK, DeviceKernel, cuda, kernel_together
from penstock.engine.kernels.cuda.push import make_relax
from penstock.engine.kernels.cuda.work_queue import (
    GROUP,
    GROUP_SHIFT,
    LARGE,
    PIECE_LENGTH,
    PIECE_SHIFT,
    ZERO,
    pieces_of,
    put_pieces,
    reserve,
    turns,
)
from penstock.engine.program.bindings import Author


def make_follow(author: Author) -> DeviceKernel:
    """Kernel: push up to `rounds` times from what has become pending of the view's rows, until nothing is.

    pieces: owners, firsts. arrivals int64[2], counts int64[14]: as those of fused iterations, then vertices and edges
    that are sent; 0, and 0 again behind it. sent int64[2], of the host: these two are added.
    """
    relax, priority, has_priority = make_relax(author), author.calls["priority"], author.has_priority

    @kernel_together
    def follow(  # type: ignore[no-untyped-def]
        view, index, pending, pieces, arrivals, counts, rounds, limit, fields, scalars, arrays, sent
    ):
        owners, firsts = pieces
        box = cuda.shared.array(4, np.int32)
        told = cuda.shared.array(2, np.int64)
        base, goal = arrays.base, np.int64(cuda.gridDim.x)
        room, vertices, edges = min(np.int64(owners.shape[0]), LARGE), ZERO, ZERO
        end_word = np.int64((view.v1 - ONE - base) >> FIVE) + np.int64(1)
        lane = np.int64(cuda.threadIdx.x) & (GROUP - np.int64(1))
        going, turn = True, ZERO
        while going:
            set_at = (turn % np.int64(3)) * np.int64(4)
            if global_thread() < np.int64(4):
                counts[((turn + np.int64(1)) % np.int64(3)) * np.int64(4) + global_thread()] = ZERO
            at = np.int64((view.v0 - base) >> FIVE) + np.int64(cuda.blockIdx.x) * np.int64(BLOCK)
            while at < end_word:
                word = np.uint64(at + np.int64(cuda.threadIdx.x))
                left = pending[word] if word < np.uint64(end_word) else NONE
                chosen, places = NONE, ZERO
                while left != NONE:
                    v = ((word << FIVE) | lowest_bit(left)) + base
                    rest = np.uint32(left & np.uint32(left - BIT))
                    start, end = row_start(index, v), row_start(index, v + ONE)
                    due = v >= view.v0 and v < view.v1 and start >= view.e0 and end <= view.e1
                    if due and has_priority:
                        due = np.float64(priority(fields, scalars, v, end - start, base)) < limit
                    if due:
                        chosen = np.uint32(chosen | (left ^ rest))
                        places += pieces_of(start, end)
                    left = rest
                place = reserve(box, counts, set_at, places, ZERO, ZERO)
                taken = NONE
                while chosen != NONE:
                    v = ((word << FIVE) | lowest_bit(chosen)) + base
                    rest = np.uint32(chosen & np.uint32(chosen - BIT))
                    start, end = row_start(index, v), row_start(index, v + ONE)
                    after = place + pieces_of(start, end)
                    if after <= room:
                        put_pieces(pieces, place, v, start, end)
                        vertices += np.int64(1)
                        edges += end - start
                        taken = np.uint32(taken | (chosen ^ rest))
                    for empty in range(place, room if after > room else place):
                        firsts[empty] = ZERO
                    place = after
                    chosen = rest
                if taken != NONE:
                    pending[word] = np.uint32(pending[word] & ~taken)
                at += np.int64(cuda.gridDim.x) * np.int64(BLOCK)
            goal = wait_for_all(arrivals, goal)
            count = min(counts[set_at], room)
            at = ZERO
            while turns(at) < count:
                i = turns(at + (np.int64(cuda.threadIdx.x) >> GROUP_SHIFT))
                if i < count and lane < firsts[i] & PIECE_LENGTH:
                    u, e = np.uint64(owners[i]), (firsts[i] >> PIECE_SHIFT) + lane
                    d = row_start(index, u + ONE) - row_start(index, u)
                    relax(view, e, u, d, fields, scalars, arrays)
                at += np.int64(BLOCK) >> GROUP_SHIFT
            turn += np.int64(1)
            going = count > ZERO and turn < rounds
            goal = wait_for_all(arrivals, goal)
        if cuda.threadIdx.x < 2:
            told[cuda.threadIdx.x] = ZERO
        cuda.syncthreads()
        if vertices > ZERO:
            cuda.atomic.add(told, 0, vertices)
            cuda.atomic.add(told, 1, edges)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            if told[0] > ZERO:
                cuda.atomic.add(counts, 12, told[0])
                cuda.atomic.add(counts, 13, told[1])
            cuda.threadfence()
            if cuda.atomic.add(arrivals, 1, np.int64(1)) == np.int64(cuda.gridDim.x - 1):
                sent[0] += cuda.atomic.add(counts, 12, ZERO)
                sent[1] += cuda.atomic.add(counts, 13, ZERO)
                arrivals[0] = arrivals[1] = ZERO  # all blocks have left the last wait
                for place in range(counts.shape[0]):
                    counts[place] = ZERO

    return follow
