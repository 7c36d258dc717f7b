"""A bucket of priorities that all threads empty together, in one launch: for frontiers of thousands of vertices.

Threads take spans of the pile of pending vertices (`due.py`), list who is due there, and relax them. Whom an edge makes
due is listed behind them, by the same thread, so that a bucket takes one launch, however many rounds it has: the bucket
fusion of Zhang et al. (CGO 2020). Who is not due, or finds the list full, waits in the pile.

A vertex is marked in the pile after its value has changed, and bounds are lowered after it is marked; what takes a word
raises its bound before it unmarks what is there. So no bound is above a priority in the pile, and no vertex is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import COMBINE, lowest_bit, prefetch
from penstock.engine.kernels.host.device_functions import (
    LOW,
    NONE,
    ONE,
    SIX,
    degree_of,
    is_marked,
    mark,
    row_start,
)
from penstock.engine.kernels.host.fused_steps import AHEAD, next_limit, prefetch_targets
from penstock.engine.kernels.host.jit import inline
from penstock.engine.kernels.host.threads.parallel_loop import run_loop
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author, scalars_later
from penstock.storage.base.thread_atomics import atomic_add, atomic_and, atomic_min, atomic_or

PIECES = 4
"""Of the pile, for each thread."""
MOST_WORK = 1 << 22
"""Edges that a call walks for each thread: some ten milliseconds, after which a signal is heard."""


@inline
def lower(bounds, at, priority):  # type: ignore[no-untyped-def]
    """Let a bound be no higher than a priority."""
    if priority < bounds[at]:
        atomic_min(bounds, at, priority)


@inline
def lowest_waiting(marks):  # type: ignore[no-untyped-def]
    """The lowest bound of the pile; inf where it is empty."""
    waiting, span_lows = marks[1], marks[3]
    lowest = np.inf
    for over in range(waiting.shape[0]):
        if waiting[over] != NONE:
            lowest = min(lowest, span_lows[over])
    return lowest


def make_take_span(author: Author) -> Any:
    """Inlined: list who is due in one span of the pile, in lists[end : room]; returns where the list ends."""
    priority = author.calls["priority"]

    @inline
    def take_span(over, index, marks, limit, lists, end, room, fields, scalars, base):  # type: ignore[no-untyped-def]
        pending, waiting, word_lows, span_lows = marks
        span_lows[over] = np.inf
        upper, kept, span_low = atomic_and(waiting, over, NONE), NONE, np.inf
        while upper != NONE:
            bit = upper & (~upper + ONE)
            word = (over << SIX) | lowest_bit(upper)
            upper &= upper - ONE
            low = word_lows[word]
            if low < limit:
                word_lows[word] = np.inf
                left, stays, low = atomic_and(pending, word, NONE), NONE, np.inf
                while left != NONE:
                    one = left & (~left + ONE)
                    v = ((word << SIX) | lowest_bit(left)) + base
                    left &= left - ONE
                    p = np.float64(priority(fields, scalars, v, degree_of(index, v), base))
                    if p >= limit or end == room:
                        stays |= one
                        low = min(low, p)
                    else:
                        lists[end] = v
                        end += ONE
                        prefetch(index[1], v)
                if stays == NONE:
                    continue
                atomic_or(pending, word, stays)
                lower(word_lows, word, low)
            kept |= bit
            span_low = min(span_low, low)
        if kept != NONE:
            atomic_or(waiting, over, kept)
            lower(span_lows, over, span_low)
        return end

    return take_span


def make_relax_due(author: Author) -> Any:
    """Inlined: messages along a row of `u`; returns where the list ends, behind which is listed who becomes due.

    ring: where the list is in `lists`, of how many entries (a power of two), and the number of its first; `end`: of its
    end. out: the index that priorities know.
    """
    edge, cond, priority = author.calls["edge"], author.calls["cond"], author.calls["priority"]
    combine, weighted = COMBINE[author.combine], author.weighted

    @inline
    def relax_due(  # type: ignore[no-untyped-def]
        view, index, u, out, marks, limit, lists, ring, end, fields, scalars, arrays
    ):
        own, size, first = ring
        pending, waiting, word_lows, span_lows = marks
        target, base = arrays.target, arrays.base
        start, after = row_start(index, u), row_start(index, u + ONE)
        for e in range(start - view.e0, after - view.e0):
            v = np.uint64(view.neighbors[np.uint64(e)])
            at = v - base
            if cond(fields, scalars, v, np.int64(0), base):
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                value = target.dtype.type(edge(fields, scalars, arrays.sent[0], u, v, w, after - start, base))
                if combine(target, at, value):
                    p = np.float64(priority(fields, scalars, v, degree_of(out, v), base))
                    word = at >> SIX
                    if p < limit and end - first < size:
                        if is_marked(pending, at):
                            atomic_and(pending, word, ~(ONE << (at & LOW)))
                        lists[own + (end & (size - ONE))] = v
                        end += ONE
                        prefetch(out[1], v)
                    else:
                        mark(pending, waiting, at)
                        lower(word_lows, word, p)
                        lower(span_lows, word >> SIX, p)
        return end

    return relax_due


def make_drain(author: Author, both: bool) -> Any:
    """Body of a loop over pieces of the pile: relax who is due, and whom that makes due.

    size: entries of `lists` for each piece, a power of two. Vertices and edges are added to row `at` of `counts`.
    """
    take_span, relax_due = make_take_span(author), make_relax_due(author)

    @inline
    def drain(  # type: ignore[no-untyped-def]
        first_step,
        end_step,
        pieces,
        view,
        index,
        against,
        lists,
        size,
        marks,
        limit,
        fields,
        scalars,
        arrays,
        counts,
        at,
    ):
        view, arrays = EdgeView(*view), VertexArrays(*arrays)
        other, other_index = EdgeView(*against[0]), against[1]
        waiting, span_lows, base = marks[1], marks[3], arrays.base
        spans = waiting.shape[0]
        vertices, edges = np.int64(0), np.int64(0)
        for piece in range(first_step, end_step):
            own = np.uint64(piece) * size
            over, last = np.uint64(spans * piece // pieces), np.uint64(spans * (piece + 1) // pieces)
            while over < last:
                end = own
                while over < last and end - own < size >> ONE:
                    if waiting[over] != NONE and span_lows[over] < limit:
                        end = take_span(over, index, marks, limit, lists, end, own + size, fields, scalars, base)
                    over += ONE
                number, end = NONE, end - own
                while number < end:
                    u = np.uint64(lists[own + (number & (size - ONE))])
                    later = np.uint64(lists[own + (min(number + AHEAD, end - ONE) & (size - ONE))])
                    prefetch_targets(view, index, later, arrays.target, fields[0], base)
                    number += ONE
                    ring = own, size, number
                    edges += degree_of(index, u)
                    end = relax_due(view, index, u, index, marks, limit, lists, ring, end, fields, scalars, arrays)
                    if both:
                        edges += degree_of(other_index, u)
                        end = relax_due(
                            other, other_index, u, index, marks, limit, lists, ring, end, fields, scalars, arrays
                        )
                vertices += np.int64(end)
        atomic_add(counts, np.uint64(2 * at), vertices)
        atomic_add(counts, np.uint64(2 * at + 1), edges)

    return drain


def make_share_buckets(author: Author, both: bool) -> Any:
    """Inlined: buckets in one launch of all threads each, until one has too few vertices.

    sizes: threads, and the fewest vertices of a bucket before the next is shared. limits: of priorities, and the width
    by which it moves. iterations: how many are done, and may be. total: edges walked. Other arguments as those of
    `make_fused_iterations`. Returns how many are done, the limit, and the edges.
    """
    drain, ahead = make_drain(author, both), inline(scalars_later(author))

    @inline
    def share_buckets(  # type: ignore[no-untyped-def]
        sizes, view, index, against, lists, marks, limits, fields, scalars, arrays, readback, iterations, total
    ):
        (threads, fewest), (limit, bucket), (done, most) = sizes, limits, iterations
        pieces = min(marks[1].shape[0], threads * PIECES)
        size = ONE
        while size * np.uint64(2 * pieces) <= np.uint64(lists.shape[0]):
            size <<= ONE
        vertices = fewest
        while vertices >= fewest and done < most and total < MOST_WORK * threads:
            rest = lowest_waiting(marks)
            if rest == np.inf:
                break
            if rest >= limit:
                limit = next_limit(rest, bucket)
            readback[done, 0], readback[done, 1] = 0, 0
            bucket_of = view, index, against, lists, size, marks, limit, fields, ahead(scalars, done, limit), arrays
            run_loop(drain, threads, pieces, 1, (pieces, *bucket_of, readback, done))
            vertices = readback[done, 0]
            total += readback[done, 1]
            done += 1
        return done, limit, total

    return share_buckets
