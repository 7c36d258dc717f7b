"""Many iterations in one launch, for small frontiers of programs whose edges all lie on the device.

A frontier of a few thousand edges costs a GPU some ten microseconds, and select, push, apply, the wait and Python
around them a hundred; graphs of long diameter have thousands of such frontiers. Here one launch stays: its blocks run
at the same time (a cooperative launch), wait for each other between steps (`wait_for_all`), and keep the frontier in a
queue instead of a bitmap, so that nothing is scanned. Queues are in no order, which only zero-copy would mind, and
answers do not depend on it: combiners commute, and a parent is a minimum. The queue of Merrill, Garland and Grimshaw
(PPoPP 2012), the persistent kernel of Gupta, Stuart and Owens (InPar 2012), near and far of Davidson et al. (IPDPS
2014).

Why not a CUDA graph: its kernels are still five launches an iteration (about 2 us each on the device), its loop nodes
are not in CuPy, and without them it cannot stop where a frontier grows or dies. Why not one block alone: its barrier is
cheap, but a frontier of 16 k edges would keep one multiprocessor busy for longer than the barrier of many takes.

    frontier's rows in pieces of GROUP edges
      -> step 1: edges; a vertex that gets a message joins the second queue, once (bitmap `joined`)
      -> step 2: those vertices: vertex() where messages are in accumulators; due vertices make the next pieces, all are
      pending -> none due: the lowest pending priority moves the limit, as in `Loop`, and the bitmap is scanned once

Every vertex to go on with is marked pending before the launch ends or goes on, and unmarked when its pieces are taken,
so that the loop can take over after any iteration. Refuses (`fits`) programs that need all vertices or the host
between two iterations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    ONE,
    global_thread,
    is_marked,
    mark_new,
    row_start,
    unmark,
    wait_for_all,
)
from penstock.engine.kernels.cuda.driver import BLOCK, DeviceKernel, compile_author, cuda, device, kernel_together
from penstock.engine.kernels.cuda.push import make_reach
from penstock.engine.kernels.cuda.vertices import make_renew
from penstock.engine.kernels.cuda.work_queue import (
    GROUP,
    GROUP_SHIFT,
    INFINITE,
    PIECE_FIRST,
    PIECE_LENGTH,
    PIECE_SHIFT,
    ZERO,
    begin_set,
    make_due,
    make_enter,
    make_gather_due,
    make_lowest,
    make_open,
    pieces_of,
    reserve,
    turns,
)
from penstock.engine.program.bindings import Author, scalars_later
from penstock.engine.program.program import Program, arguments, author_function

MOST_ITERATIONS = 1024
MOST_EDGES = 1 << 16
MOST_PIECES = MOST_EDGES * 3 // 2
COUNTS = 16
"""Places of `counts`: in three sets, used in turn, the second queue's length, pieces, vertices, edges."""


def fits(program: Program, author: Author) -> bool:
    """Whether nothing but the frontier and the iteration's number changes from one iteration to the next."""
    priority = author_function(program, "priority")
    steady = priority is None or "iteration" not in arguments(priority)
    return (
        steady
        and not (author.totals or author.everywhere or author.uses_activity or author.combine == "union")
        and "due" not in author.scalars
        and type(program).done is Program.done
    )


def make_walk(author: Author) -> Any:
    """Device function: step 1, from the first `count` pieces along their edges to the second queue."""
    reach = make_reach(author)

    @device
    def walk(view, count, index, queue, set_at, marks, values, scalars):  # type: ignore[no-untyped-def]
        pending, joined = marks
        (owners, firsts), joiners, counts, box = queue
        fields, arrays = values
        base = arrays.base
        lane = np.int64(cuda.threadIdx.x) & (GROUP - np.int64(1))
        at = ZERO
        while turns(at) < count:
            i = turns(at + (np.int64(cuda.threadIdx.x) >> GROUP_SHIFT))
            reached = np.int64(-1)
            if i < count:
                u, piece = np.uint64(owners[i]), firsts[i]
                if lane == ZERO and piece & PIECE_FIRST != ZERO:
                    unmark(pending, u - base)
                if lane < piece & PIECE_LENGTH:
                    d = row_start(index, u + ONE) - row_start(index, u)
                    e = (piece >> PIECE_SHIFT) + lane
                    reached = reach(view, e, u, d, fields, scalars, arrays)
                    if reached >= ZERO and not mark_new(joined, np.uint64(reached)):
                        reached = np.int64(-1)
            one = np.int64(1) if reached >= ZERO else ZERO
            place = reserve(box, counts, set_at, one, ZERO, ZERO)
            if one > ZERO:
                joiners[place] = reached
            at += np.int64(BLOCK) >> GROUP_SHIFT

    return walk


def make_filter(author: Author, apart: bool) -> Any:
    """Device function: step 2, from the second queue to the next pieces; `arrived`: identity, Globals."""
    renew, due, enter, has_priority = make_renew(author), make_due(author), make_enter(author), author.has_priority

    @device
    def filter_reached(index, queue, set_at, marks, limits, values, scalars, later, arrived):  # type: ignore[no-untyped-def]
        pending, joined = marks
        pieces, joiners, counts, box = queue
        fields, arrays = values
        incoming, base = arrays.target, arrays.base
        identity, partial = arrived
        count = counts[set_at]
        at = ZERO
        while turns(at) < count:
            i = turns(at + np.int64(cuda.threadIdx.x))
            v, start, end, places, one = np.uint64(0), ZERO, ZERO, ZERO, ZERO
            if i < count:
                v = np.uint64(joiners[i]) + base
                unmark(joined, v - base)
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                active_next = True
                if apart:
                    active_next = renew(fields, scalars, incoming, identity, False, v, end - start, base, partial, ZERO)
                    if has_priority and is_marked(pending, v - base):
                        active_next = True
                if active_next:
                    mark_new(pending, v - base)
                    if due(fields, later, v, end - start, base, limits):
                        places, one = pieces_of(start, end), np.int64(1)
            place = reserve(box, counts, set_at + np.int64(1), places, one, (end - start) * one)
            if places > ZERO:
                enter(pieces, place, v, (start, end), values, later)
            at += np.int64(BLOCK)

    return filter_reached


def make_fused_iterations(author: Author, apart: bool) -> DeviceKernel:
    """Kernel: iterations until a bound; apart: messages lie apart (synchronous), see `DeviceState`.

    frontier: the list and its length. bounds int64[5]: iterations, edges, alpha, unexplored, before; limits float64[2]:
    limit, bucket (see `FusedLimits`). marks: bitmaps pending, joined (empty). queues: pieces (owners uint64[n],
    firsts int64[n]), joiners int64[m]. control: arrivals int64[1], counts int64[COUNTS], both 0, lowest float64[3],
    infinite. arrived: see `make_filter`. readback: int64[1 + 2 * iterations], how many, then vertices and edges of
    each; float64[2], the limit, and the lowest priority that moved it (-inf if none did).
    """
    ahead, open_list, walk = compile_author(scalars_later(author)), make_open(author), make_walk(author)
    filter_reached, find_lowest, gather_due = make_filter(author, apart), make_lowest(author), make_gather_due(author)
    has_priority = author.has_priority

    @kernel_together
    def fused_iterations(  # type: ignore[no-untyped-def]
        view, index, frontier, bounds, limits, marks, queues, control, values, scalars, arrived, readback
    ):
        most, most_edges, alpha, unexplored, before = bounds
        limit, bucket = limits
        arrivals, counts, lowest = control
        box = cuda.shared.array(4, np.int32)
        lows = cuda.shared.array(BLOCK, np.float64)
        queue = queues[0], queues[1], counts, box
        floor = -INFINITE
        goal = np.int64(cuda.gridDim.x)
        turn, done = ZERO, ZERO
        open_list(frontier, index, queue, values, scalars)
        goal = wait_for_all(arrivals, goal)
        going = True
        while going:
            set_at = (turn % np.int64(3)) * np.int64(4)
            count, vertices, edges = counts[set_at + 1], counts[set_at + 2], counts[set_at + 3]
            grown = alpha > ZERO and vertices > before and edges > unexplored // max(alpha, np.int64(1))
            now = ahead(scalars, done, limit)
            turn += np.int64(1)
            set_at = (turn % np.int64(3)) * np.int64(4)
            if done == most or edges > most_edges or count > queues[0][0].shape[0] or grown:
                going = False
            elif vertices > ZERO:
                if global_thread() == ZERO:
                    readback[0][1 + 2 * done], readback[0][2 + 2 * done] = vertices, edges
                begin_set(counts, lowest, turn)
                walk(view, count, index, queue, set_at, marks, values, now)
                goal = wait_for_all(arrivals, goal)
                done += np.int64(1)
                later = ahead(scalars, done, limit)
                filter_reached(index, queue, set_at, marks, (limit, floor), values, now, later, arrived)
                goal = wait_for_all(arrivals, goal)
                unexplored -= edges
                before = vertices
            elif has_priority and bucket > 0.0:
                begin_set(counts, lowest, turn)
                find_lowest(index, marks[0], lows, lowest, turn % np.int64(3), values, now)
                goal = wait_for_all(arrivals, goal)
                low = lowest[turn % np.int64(3)]
                if low < INFINITE:
                    limit, floor = (math.floor(low / bucket) + 1.0) * bucket, low
                    gather_due(index, marks[0], queue, set_at, (limit, floor), values, now)
                    goal = wait_for_all(arrivals, goal)
                else:
                    going = False
            else:
                going = False
        if global_thread() == ZERO:
            readback[0][0] = done
            readback[1][0], readback[1][1] = limit, floor

    return fused_iterations
