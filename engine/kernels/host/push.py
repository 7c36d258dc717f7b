"""Loops over edges that send: from the listed frontier, over rows, along compacted rows, and both ways.

Work is cut into blocks of equal numbers of *edges*, never of vertices, and threads take blocks from
a shared counter; so one vertex with ten million edges is shared by all threads. A row cut by a
block (or by a partition) has its partial results combined.

Row v owns edges [start(v), start(v+1)). Messages go into `target` (the accumulators, or the field itself when the
program is self-combining and runs asynchronously). Entries take an EdgeView and VertexArrays as plain tuples and name
their parts first: a NamedTuple costs Numba's dispatch 6 us a call.

A compacted view holds gathered rows one after another, with an index of their own
(`transfer/staging/gather.py`). Every row in it is active, and no bitmap is read. A row's degree comes from
the graph's index, since one row may be split over several views. Views are compacted for pushes only: a pull reads
every vertex that still accepts messages, and little of its row.

Both ways: where vertices settle in the order of their priority and the frontier has more edges than all unsettled
vertices together, the rows of these are read in its place. What an active neighbor sends is taken, and then the vertex
itself sends along the row while it is there, so that the row need not be read again when the vertex is due.
Chakaravarthy et al. (IPDPS 2014) pull long edges so; that a row serves both ways is ours. It needs an undirected graph.
A row that a block cuts is only pulled, and stays pending.

Replicas: threads that add to one address wait for its line of memory, and in a skewed graph most add to few. Where the
first vertices are the most pointed to, what a part of edges sends to them is added up apart (in order: `launch.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from penstock.engine.kernels import hot_vertices
from penstock.engine.kernels.host.atomics import COMBINE, lowest_bit, prefetch
from penstock.engine.kernels.host.device_functions import (
    LOW,
    ONE,
    SIX,
    degree_of,
    find_part,
    find_row,
    is_marked,
    mark,
    row_start,
)
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author
from penstock.storage.base.thread_atomics import atomic_and

ALL = ~np.uint64(0)
AHEAD = np.int64(8)  # edges: how long before its message a neighbor's place is asked for
ROWS_AHEAD = 4  # listed rows, likewise
PARTS = 8
"""Parts of the edges a thread, so that the last ones to end do not matter."""


class ApartArrays(NamedTuple):
    """VertexArrays, and the sums of the first vertices that a part of the edges keeps."""

    sent: Any
    target: Any
    touched: Any
    summary: Any
    base: Any
    sums: Any


def make_take(author: Author) -> Any:
    """Inlined: combine a message with what vertex `at` (uint64, less base) has; mark what changes, but in sweeps."""
    combine, marks = COMBINE[author.combine], not author.everywhere

    @inline
    def take(vertices, at, value):  # type: ignore[no-untyped-def]
        if combine(vertices.target, at, value) and marks:
            mark(vertices.touched, vertices.summary, at)

    return take


def make_take_apart(author: Author) -> Any:
    """Inlined: the same, of ApartArrays: the first vertices' messages are added to their sums."""
    rest, marks = make_take(author), not author.everywhere

    @inline
    def take(vertices, at, value):  # type: ignore[no-untyped-def]
        if at < np.uint64(vertices.sums.shape[0]):
            vertices.sums[at] += value
            if marks:
                mark(vertices.touched, vertices.summary, at)
        else:
            rest(vertices, at, value)

    return take


def make_relax(author: Author, take: Any = None) -> Any:
    """Inlined: send along edges [first, last) of row `u` of degree `d`; the loop inside every push.

    take: what a message does, as `make_take` has it.
    """
    edge, cond, has_send, weighted = author.calls["edge"], author.calls["cond"], author.has_send, author.weighted
    take = take or make_take(author)

    @inline
    def relax(view, u, first, last, d, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        target, base = vertices.target, vertices.base
        message = vertices.sent[u - base] if has_send else vertices.sent[0]
        ahead = last - view.e0 - AHEAD
        for e in range(first - view.e0, last - view.e0):
            if e < ahead:
                prefetch(target, np.uint64(view.neighbors[np.uint64(e + AHEAD)]) - base)
            v = np.uint64(view.neighbors[np.uint64(e)])
            if cond(fields, scalars, v, np.int64(0), base):
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                take(vertices, v - base, target.dtype.type(edge(fields, scalars, message, u, v, w, d, base)))

    return relax


def make_push_list(author: Author) -> Any:
    """Kernel: push from listed vertices: ascending, the running sum of their edges, the first and the last of them."""
    relax = make_relax(author)

    @loop_kernel(author.key, grain=1)
    def push_list(first_step, end_step, view, index, listed, block, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        active, work, first, last = listed
        begin = work[first]
        for number in range(first_step, end_step):
            low = begin + number * block
            high = min(low + block, work[last])
            i = find_part(work, np.int64(first), np.int64(last), low)
            while i < last and work[i] < high:
                if i + ROWS_AHEAD < last:
                    start = row_start(index, np.uint64(active[i + ROWS_AHEAD]))
                    prefetch(view.neighbors, np.uint64(min(max(start, view.e0), view.e1 - np.int64(1)) - view.e0))
                u = np.uint64(active[i])
                start = row_start(index, u)
                degree = work[i + 1] - work[i]
                begins = max(start + max(low - work[i], 0), view.e0)
                ends = min(start + min(high - work[i], degree), view.e1)
                relax(view, u, begins, ends, degree, fields, scalars, vertices)
                i += 1

    return push_list


@inline
def ask_for_rows(view, index, active, v, stop, low, base):  # type: ignore[no-untyped-def]
    """Which of the rows [v, stop) of one word are marked; their first lines are on their way."""
    at = v - base
    marked = (active[at >> SIX] >> (at & LOW)) << (at & LOW)
    over = np.uint64(64) - (stop - v) - (at & LOW)
    marked = (marked << over) >> over
    left = marked
    while left != 0:
        u = ((at & ~LOW) | lowest_bit(left)) + base
        left &= left - ONE
        prefetch(view.neighbors, np.uint64(min(max(row_start(index, u), low), view.e1 - np.int64(1)) - view.e0))
    return marked


def make_push_marked(relax: Any) -> Any:
    """Inlined: send along a block's edges of every marked vertex of the view's rows (of all of them if `whole`).

    Marked rows are found a word of the bitmap at a time, and asked for while the rows of the word before are read.
    """

    @inline
    def push_marked(number, view, index, active, whole, block, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        base = vertices.base
        low = view.e0 + number * block
        high = min(low + block, view.e1)
        v = find_row(index, view.v0, view.v1, low)
        end = find_row(index, v, view.v1, high - np.int64(1)) + ONE
        word, last, ahead = (v - base) >> SIX, (end - ONE - base) >> SIX, np.uint64(0)
        while word <= last + ONE:
            left, ahead = ahead, np.uint64(0)
            if word <= last:
                stop = min(end, ((word + ONE) << SIX) + base)
                if whole:
                    ahead = (ALL >> (np.uint64(64) - (stop - v))) << ((v - base) & LOW)
                else:
                    ahead = ask_for_rows(view, index, active, v, stop, low, base)
                v = stop
            word += ONE
            while left != 0:
                u = (((word - np.uint64(2)) << SIX) | lowest_bit(left)) + base
                left &= left - ONE
                start, after = row_start(index, u), row_start(index, u + ONE)
                relax(view, u, max(start, low), min(after, high), after - start, fields, scalars, vertices)

    return push_marked


def make_push_rows(author: Author) -> Any:
    """Kernel: `push_marked` over blocks of the view's edges."""
    push_marked = make_push_marked(make_relax(author))

    @loop_kernel(author.key, grain=1)
    def push_rows(first_step, end_step, view, index, active, whole, block, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        for number in range(first_step, end_step):
            push_marked(number, view, index, active, whole, block, fields, scalars, vertices)

    return push_rows


def make_push_compacted(author: Author) -> Any:
    """Kernel: push along the marked rows of a compacted view (all of them if `whole`), which start at `offsets`."""
    relax = make_relax(author)

    @loop_kernel(author.key, grain=1)
    def push_compacted(  # type: ignore[no-untyped-def]
        first_step, end_step, view, rows, offsets, index, active, whole, block, fields, scalars, vertices
    ):
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        for number in range(first_step, end_step):
            low = number * block
            high = min(low + block, view.e1)
            i = find_part(offsets, np.int64(0), rows.shape[0] - 1, low)
            begins = low
            while begins < high:
                u, ends = np.uint64(rows[i]), min(np.int64(offsets[i + 1]), high)
                if whole or is_marked(active, u - vertices.base):
                    relax(view, u, begins, ends, degree_of(index, u), fields, scalars, vertices)
                begins = ends
                i += 1

    return push_compacted


@inline
def unmark(words, v):  # type: ignore[no-untyped-def]
    """Unset the bit of `v` (uint64, already less base), atomically; its summary bit stays."""
    atomic_and(words, v >> SIX, ~(ONE << (v & LOW)))


def make_relax_unsettled(author: Author) -> Any:
    """Kernel: relax the view's rows of unsettled vertices, from and to who is pending or active.

    A vertex is made pending no more before its values are read for what it sends: whoever changes them later makes it
    pending again.
    """
    edge, unsettled, relax = author.calls["edge"], author.calls["unsettled"], make_relax(author)
    combine, weighted = COMBINE[author.combine], author.weighted

    @inline
    def gather(view, v, first, last, index, active, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        target, pending, base = vertices.target, vertices.touched, vertices.base
        for e in range(first - view.e0, last - view.e0):
            u = np.uint64(view.neighbors[np.uint64(e)])
            if is_marked(pending, u - base) or is_marked(active, u - base):
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                message = vertices.sent[0]
                value = target.dtype.type(edge(fields, scalars, message, u, v, w, degree_of(index, u), base))
                if combine(target, v - base, value):
                    mark(pending, vertices.summary, v - base)

    @loop_kernel(author.key, grain=1)
    def relax_unsettled(first_step, end_step, view, index, active, block, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        pending, base = vertices.touched, vertices.base
        for number in range(first_step, end_step):
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            while start < high and v < view.v1:
                end = row_start(index, v + ONE)
                if end > start and unsettled(fields, scalars, v, np.int64(0), base):
                    gather(view, v, max(start, low), min(end, high), index, active, fields, scalars, vertices)
                    waits = is_marked(pending, v - base) or is_marked(active, v - base)
                    if waits and low <= start and end <= high:
                        unmark(pending, v - base)
                        relax(view, v, start, end, end - start, fields, scalars, vertices)
                start = end
                v += ONE

    return relax_unsettled


def kept_sums(author: Author) -> int:
    """How many vertices' sums are kept, from the first vertex on."""
    return hot_vertices.KEPT_BYTES // author.message.itemsize


def make_push_rows_replicas(author: Author) -> Any:
    """Kernel: what `push_rows` does, for a state that begins with vertex 0; sums: of each block, one row."""
    push_marked = make_push_marked(make_relax(author, make_take_apart(author)))

    @loop_kernel(author.key, grain=1)
    def push_rows(  # type: ignore[no-untyped-def]
        first_step, end_step, view, index, active, whole, block, fields, scalars, vertices, sums
    ):
        view = EdgeView(*view)
        for number in range(first_step, end_step):
            apart = *vertices, sums[number]
            push_marked(number, view, index, active, whole, block, fields, scalars, ApartArrays(*apart))

    return push_rows
