"""The pile of vertices that are pending and not due yet: there may be many, and for long.

Every word of the bitmap of pending vertices, and every span of 64 words, has a lower bound of its vertices' priorities,
so that what cannot be due is passed over. That is the far pile of Davidson et al. (IPDPS 2014), in place. A bound may
be that of a vertex that has left since; the next look at its word corrects it.

Where priorities are steady, the summary of the bitmap tells the words in which vertices were marked since the last
selection, and `waiting` those that were looked at then. A selection looks at the first, and at the second only where
the bound is below the limit. It costs what has changed and what is due, not what is pending.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import lowest_bit
from penstock.engine.kernels.host.device_functions import LOW, NONE, ONE, SIX, degree_of, is_marked, put
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.program.bindings import Author
from penstock.engine.program.program import Program, arguments, author_function
from penstock.storage.base.thread_atomics import pop_count

CHANGING = {"iteration", "due", "settled"}
"""What a priority may read that changes while the vertex does not."""


def is_steady(program: Program, author: Author) -> bool:
    """Whether a program has priorities, and a vertex's changes only when the vertex is marked."""
    priority = author_function(program, "priority")
    return priority is not None and not (CHANGING | set(author.totals)) & set(arguments(priority))


def make_select_due(author: Author) -> Any:
    """Kernel: move what is pending and below `limit` into `active`; count vertices and edges.

    Of steady priorities. Looks at the words that are in `marked`, which it clears, and at those `waiting` whose bounds
    are below the limit. counts int64[pieces, 2] (vertices, edges) per piece of spans; rest float64[pieces]: a lower
    bound of the priorities left pending (inf if none), exact where nothing was due.
    """
    priority = author.calls["priority"]

    @loop_kernel(author.key, grain=1, counted=True)
    def select_due(  # type: ignore[no-untyped-def]
        first_step,
        end_step,
        pending,
        marked,
        active,
        active_summary,
        lows,
        index,
        fields,
        scalars,
        limit,
        base,
        counts,
        rest,
    ):
        waiting, word_lows, span_lows = lows
        pieces, total = counts.shape[0], marked.shape[0]
        for piece in range(first_step, end_step):
            vertices, edges, low = np.int64(0), np.int64(0), np.inf
            for over in range(total * piece // pieces, total * (piece + 1) // pieces):
                left = active_summary[over]
                while left != NONE:
                    active[(np.uint64(over) << SIX) | lowest_bit(left)] = NONE
                    left &= left - ONE
                active_summary[over] = NONE
                fresh, upper = marked[over], marked[over] | waiting[over]
                if upper == NONE:
                    continue
                if fresh == NONE and span_lows[over] >= limit:
                    low = min(low, span_lows[over])
                    continue
                kept, chosen, span_low = NONE, NONE, np.inf
                while upper != NONE:
                    bit = upper & (~upper + ONE)
                    word = (np.uint64(over) << SIX) | lowest_bit(upper)
                    upper &= upper - ONE
                    bits = pending[word]
                    if bits == NONE:
                        continue
                    if fresh & bit == NONE and word_lows[word] >= limit:
                        kept |= bit
                        span_low = min(span_low, word_lows[word])
                        continue
                    left, taken, word_low = bits, NONE, np.inf
                    while left != NONE:
                        one = left & (~left + ONE)
                        v = ((word << SIX) | lowest_bit(left)) + base
                        left &= left - ONE
                        d = degree_of(index, v)
                        p = np.float64(priority(fields, scalars, v, d, base))
                        if p >= limit:
                            word_low = min(word_low, p)
                        else:
                            taken |= one
                            edges += d
                    active[word] = taken
                    pending[word] = bits & ~taken
                    word_lows[word] = word_low
                    vertices += np.int64(pop_count(taken))
                    if taken != NONE:
                        chosen |= bit
                    if bits & ~taken != NONE:
                        kept |= bit
                        span_low = min(span_low, word_low)
                marked[over] = NONE
                waiting[over] = kept
                active_summary[over] = chosen
                span_lows[over] = span_low
                low = min(low, span_low)
            counts[piece, 0] = vertices
            counts[piece, 1] = edges
            rest[piece] = low

    return select_due


@inline
def wait(marks, at, priority):  # type: ignore[no-untyped-def]
    """Put a vertex (uint64, less base) into the pile of those that are not due."""
    pending, waiting, word_lows, span_lows = marks
    word, over = at >> SIX, at >> (SIX + SIX)
    if pending[word] == NONE or priority < word_lows[word]:
        word_lows[word] = priority
    if waiting[over] == NONE or priority < span_lows[over]:
        span_lows[over] = priority
    put(pending, waiting, at)


def make_is_due(author: Author) -> Any:
    """Inlined: whether a vertex that is active next is due; else it waits in the pile. Without a priority it is."""
    priority, has_priority = author.calls["priority"], author.has_priority

    @inline
    def is_due(index, marks, limit, v, fields, scalars, base):  # type: ignore[no-untyped-def]
        if not has_priority:
            return True
        pending = marks[0]
        at = v - base
        p = np.float64(priority(fields, scalars, v, degree_of(index, v), base))
        if p >= limit:
            wait(marks, at, p)
            return False
        if is_marked(pending, at):
            pending[at >> SIX] &= ~(ONE << (at & LOW))
        return True

    return is_due


def make_take_due(author: Author) -> Any:
    """Inlined: move vertices that are due from the pile to a list, ascending, until it is full.

    listed: where the list begins in `lists`. Returns how many, and if there are none the lowest bound of the rest.
    """
    priority = author.calls["priority"]

    @inline
    def take_due(index, marks, limit, lists, listed, room, fields, scalars, base):  # type: ignore[no-untyped-def]
        pending, waiting, word_lows, span_lows = marks
        number, rest = np.uint64(0), np.inf
        for over in range(waiting.shape[0]):
            upper = waiting[over]
            if upper == NONE:
                continue
            if number == room:
                break
            if span_lows[over] >= limit:
                rest = min(rest, span_lows[over])
                continue
            kept, span_low = upper, np.inf
            while upper != NONE:
                bit = upper & (~upper + ONE)
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                if pending[word] != NONE and (word_lows[word] >= limit or number == room):
                    span_low = min(span_low, word_lows[word])
                    continue
                left, stays, low = pending[word], NONE, np.inf
                while left != NONE:
                    one = left & (~left + ONE)
                    v = ((word << SIX) | lowest_bit(left)) + base
                    left &= left - ONE
                    p = np.float64(priority(fields, scalars, v, degree_of(index, v), base))
                    if p >= limit or number == room:
                        stays |= one
                        low = min(low, p)
                    else:
                        lists[listed + number] = v
                        number += ONE
                pending[word] = stays
                if stays == NONE:
                    kept &= ~bit
                word_lows[word] = low
                span_low = min(span_low, low)
            waiting[over] = kept
            span_lows[over] = span_low
            rest = min(rest, span_low)
        return number, rest

    return take_due


def make_wait_again(author: Author) -> Any:
    """Inlined: make listed vertices pending; without priorities they do not wait, but are marked."""
    priority, has_priority = author.calls["priority"], author.has_priority

    @inline
    def wait_again(index, marks, lists, listed, number, fields, scalars, base):  # type: ignore[no-untyped-def]
        for i in range(listed, listed + number):
            v = np.uint64(lists[i])
            if has_priority:
                wait(marks, v - base, np.float64(priority(fields, scalars, v, degree_of(index, v), base)))
            else:
                put(marks[0], marks[1], v - base)

    return wait_again
