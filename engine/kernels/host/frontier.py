"""Two-level bitmaps of vertices: one bit a vertex, and one summary bit for each word of 64.

Owns marking (atomic), selection of the next frontier from what is pending, and enumeration in
ascending order. A word's summary bit may be set while the word is zero, never the other way round.
Work is cut into pieces of whole summary words (4096 vertices), so no two threads write one word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import lowest_bit
from penstock.engine.kernels.host.device_functions import ONE, SIX, degree_of, row_start
from penstock.engine.kernels.host.jit import loop_kernel
from penstock.engine.kernels.interface import EdgeView
from penstock.engine.program.bindings import Author
from penstock.storage.base.thread_atomics import atomic_add, pop_count


def make_select(author: Author) -> Any:
    """Kernel: move what is pending and below `limit` into `active`; count vertices and edges.

    Without a priority everything pending moves. counts int64[pieces, 2] (vertices, edges) per
    piece of summary words; rest float64[pieces]: lowest priority left pending (inf if none).
    """
    return _make_select(author.key, author.calls["priority"]) if author.has_priority else _SELECT_ALL


def _make_select(key: str, priority: Any) -> Any:
    has_priority = priority is not None

    @loop_kernel(key, counted=has_priority)
    def select(  # type: ignore[no-untyped-def]
        first_step,
        end_step,
        pending,
        pending_summary,
        active,
        active_summary,
        index,
        fields,
        scalars,
        limit,
        base,
        counts,
        rest,
    ):
        pieces = counts.shape[0]
        total = pending_summary.shape[0]
        for piece in range(first_step, end_step):
            vertices = np.int64(0)
            edges = np.int64(0)
            low = np.inf
            for over in range(total * piece // pieces, total * (piece + 1) // pieces):
                touched = pending_summary[over] | active_summary[over]
                kept = np.uint64(0)
                chosen = np.uint64(0)
                while touched != 0:
                    at = lowest_bit(touched)
                    touched &= touched - ONE
                    word = (np.uint64(over) << SIX) | at
                    bits = pending[word]
                    taken = bits
                    left = bits
                    while left != 0:
                        v = ((word << SIX) | lowest_bit(left)) + base
                        bit = left & (~left + ONE)
                        left &= left - ONE
                        d = degree_of(index, v)
                        if has_priority:
                            p = priority(fields, scalars, v, d, base)
                            if p >= limit:
                                taken &= ~bit
                                low = min(low, p)
                                continue
                        edges += d
                    active[word] = taken
                    pending[word] = bits & ~taken
                    vertices += np.int64(pop_count(taken))
                    if taken != 0:
                        chosen |= ONE << at
                    if bits & ~taken != 0:
                        kept |= ONE << at
                pending_summary[over] = kept
                active_summary[over] = chosen
            counts[piece, 0] = vertices
            counts[piece, 1] = edges
            rest[piece] = low

    return select


_SELECT_ALL = _make_select("select", None)


@loop_kernel("enumerate")
def enumerate_marked(  # type: ignore[no-untyped-def]
    first_step, end_step, active, active_summary, index, base, counts, vertices, work
):
    """List the marked vertices in ascending order, with the running sum of their edges."""
    pieces = counts.shape[0]
    total = active_summary.shape[0]
    for piece in range(first_step, end_step):
        at = np.int64(0)
        edges = np.int64(0)
        for before in range(piece):
            at += counts[before, 0]
            edges += counts[before, 1]
        for over in range(total * piece // pieces, total * (piece + 1) // pieces):
            upper = active_summary[over]
            while upper != 0:
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                left = active[word]
                while left != 0:
                    v = ((word << SIX) | lowest_bit(left)) + base
                    left &= left - ONE
                    vertices[at] = v
                    work[at] = edges
                    at += 1
                    edges += degree_of(index, v)
        if piece == pieces - 1:
            work[at] = edges


@loop_kernel("unmark_sent")
def unmark_sent(first_step, end_step, pending, active, whole, index, view, base):  # type: ignore[no-untyped-def]
    """Kernel: active vertices (all if `whole`) whose rows the view has whole are not pending: it sends for them.

    Steps: the words that hold a vertex of its rows.
    """
    view = EdgeView(*view)
    for step in range(first_step, end_step):
        word = ((view.v0 - base) >> SIX) + np.uint64(step)
        left = pending[word] if whole else pending[word] & active[word]
        while left != 0:
            v = ((word << SIX) | lowest_bit(left)) + base
            bit = left & (~left + ONE)
            left &= left - ONE
            if v < view.v0 or v >= view.v1 or row_start(index, v) < view.e0 or row_start(index, v + ONE) > view.e1:
                continue
            pending[word] &= ~bit


def make_select_in_view(author: Author) -> Any:
    """Kernel: resend = the pending vertices of the view's rows that may go and have all edges in it.

    Every word of `resend` that holds a vertex of [v0, v1) is written; vertices outside are unmarked there. taken counts
    them, and their edges. Steps: those words.
    """
    priority, has_priority = author.calls["priority"], author.has_priority

    @loop_kernel(author.key, counted=has_priority)
    def select_in_view(  # type: ignore[no-untyped-def]
        first_step, end_step, pending, resend, index, view, fields, scalars, limit, base, taken
    ):
        view = EdgeView(*view)
        v0, v1 = view.v0, view.v1
        for step in range(first_step, end_step):
            word = ((v0 - base) >> SIX) + np.uint64(step)
            chosen, edges = np.uint64(0), 0
            left = pending[word]
            while left != 0:
                v = ((word << SIX) | lowest_bit(left)) + base
                bit = left & (~left + ONE)
                left &= left - ONE
                if v < v0 or v >= v1:
                    continue
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                if start < view.e0 or end > view.e1:
                    continue
                if has_priority and priority(fields, scalars, v, end - start, base) >= limit:
                    continue
                chosen |= bit
                edges += end - start
            resend[word] = chosen
            pending[word] &= ~chosen
            if chosen != 0:
                atomic_add(taken, np.uint64(0), np.int64(pop_count(chosen)))
                atomic_add(taken, np.uint64(1), np.int64(edges))

    return select_in_view
