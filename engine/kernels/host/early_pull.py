"""Pull of programs that leave a row at the first message (`early_exit`): by words of the bitmap, 64 rows at a time.

Most rows are left after a few edges, so what takes long is that the first line of each must come from memory. Rows of
vertices that accept messages are therefore found first, and their lines asked for, before the first of them is read.
What is found is marked word by word.

Rows that were read to their ends in vain may be kept (`engine/state/unmatched_rows.py`): kept, the arrays (items,
starts, taken) of `UnmatchedRows`, the first of them empty where none are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import COMBINE, lowest_bit, make_absorb, prefetch
from penstock.engine.kernels.host.device_functions import (
    LOW,
    ONE,
    SIX,
    degree_of,
    find_row,
    is_marked,
    row_start,
)
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author
from penstock.storage.base.thread_atomics import atomic_add, atomic_or


@inline
def first_active(view, first, last, active, whole, base):  # type: ignore[no-untyped-def]
    """Which of the edges [first, last), at least one, is the first from an active neighbor; `last` if none is.

    Edges are counted from the view's first one. Two are looked at without a branch in between, which could not be
    predicted; the second is the first once more where the row has no other.
    """
    if whole:
        return first
    one = np.uint64(view.neighbors[np.uint64(first)]) - base
    other = np.uint64(view.neighbors[np.uint64(min(first + 1, last - 1))]) - base
    hits = (active[one >> SIX] >> (one & LOW)) & ONE
    hits |= ((active[other >> SIX] >> (other & LOW)) & ONE) << ONE
    if hits != 0:
        return first + np.int64(lowest_bit(hits))
    for e in range(first + 2, last):
        if is_marked(active, np.uint64(view.neighbors[np.uint64(e)]) - base):
            return e
    return last


def make_open_rows(author: Author) -> Any:
    """Inlined: which of the rows [v, stop) of one word accept messages and have edges left; asks for their first lines.

    skipped: how many of a row's edges an earlier view held, and a bitmap of the vertices that found a message among
    them. low: edges before it are another block's.
    """
    cond = author.calls["cond"]

    @inline
    def open_rows(view, index, v, stop, low, skipped, fields, scalars, base):  # type: ignore[no-untyped-def]
        skip, matched = skipped
        at = v - base
        word = at & ~LOW
        willing = np.uint64(0)
        if stop - v == np.uint64(64):  # a whole word: of so many rows at once that they are compared together
            for i in range(64):
                u = v + np.uint64(i)
                willing |= np.uint64(cond(fields, scalars, u, np.int64(0), base)) << np.uint64(i)
        else:
            for u in range(v, stop):
                bit = (np.uint64(u) - base) & LOW
                willing |= np.uint64(cond(fields, scalars, np.uint64(u), np.int64(0), base)) << bit
        if skip > 0:
            willing &= ~matched[at >> SIX]
        found = np.uint64(0)
        while willing != 0:
            bit = lowest_bit(willing)
            willing &= willing - ONE
            u = (word | bit) + base
            first = max(row_start(index, u) + skip, low)
            found |= np.uint64(row_start(index, u + ONE) > first) << bit
            prefetch(view.neighbors, np.uint64(first - view.e0))
        return found

    return open_rows


FORTY = np.uint64(40)
ITEMS = (ONE << FORTY) - ONE
TWO = np.uint64(2)


@inline
def mark_word(vertices, word, marks):  # type: ignore[no-untyped-def]
    """Mark vertices of one word."""
    atomic_or(vertices.touched, word, marks)
    atomic_or(vertices.summary, word >> SIX, ONE << (word & LOW))


@inline
def keep_rows(view, index, left, word, base, low, high, kept):  # type: ignore[no-untyped-def]
    """Append the pieces in edges [low, high) of the rows of one word that are set in `left`, as one segment."""
    items, starts, taken = kept
    size = ONE
    rest = left
    while rest != 0:
        u = ((word << SIX) | lowest_bit(rest)) + base
        rest &= rest - ONE
        size += ONE + np.uint64(min(row_start(index, u + ONE), high) - max(row_start(index, u), low))
    before = atomic_add(taken, np.uint64(0), (ONE << FORTY) | size)
    segment, at = before >> FORTY, before & ITEMS
    if at + size > np.uint64(items.shape[0]) or segment + ONE >= np.uint64(starts.shape[0]):
        return
    starts[segment] = np.int64(at)
    items[at] = word
    at += ONE
    while left != 0:
        bit = lowest_bit(left)
        u = ((word << SIX) | bit) + base
        left &= left - ONE
        first, last = max(row_start(index, u), low), min(row_start(index, u + ONE), high)
        items[at] = (np.uint64(last - first) << SIX) | bit
        at += ONE
        for e in range(first - view.e0, last - view.e0):
            items[at] = view.neighbors[np.uint64(e)]
            at += ONE


def make_pull_word(author: Author) -> Any:
    """Inlined: give the rows of a word that are set in `left` their messages; which vertices changed, which got none.

    Of a row that began before `low` the message goes into partials[number].
    """
    absorb, edge = make_absorb(author.combine), author.calls["edge"]
    has_send, weighted = author.has_send, author.weighted

    @inline
    def pull_word(  # type: ignore[no-untyped-def]
        view, index, word, left, bounds, sources, fields, scalars, vertices, partials, number
    ):
        (low, high, skip), (out_index, active, whole) = bounds, sources
        partial_vertices, partial_values, partial_found = partials
        marks, missed = np.uint64(0), left
        while left != 0:
            bit = ONE << lowest_bit(left)
            v = ((word << SIX) | lowest_bit(left)) + vertices.base
            left ^= bit
            start = row_start(index, v)
            first, last = max(start + skip, low) - view.e0, min(row_start(index, v + ONE), high) - view.e0
            e = first_active(view, first, last, active, whole, vertices.base)
            if e >= last:
                continue
            missed ^= bit
            u = np.uint64(view.neighbors[np.uint64(e)])
            message = vertices.sent[u - vertices.base] if has_send else vertices.sent[0]
            w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
            d = degree_of(out_index, u)
            value = vertices.sent.dtype.type(edge(fields, scalars, message, u, v, w, d, vertices.base))
            if start < low:
                partial_vertices[number] = v
                partial_values[number] = value
                partial_found[number] = True
            elif absorb(vertices.target, v - vertices.base, value):
                marks |= bit
        return marks, missed

    return pull_word


def make_early_pull(author: Author) -> Any:
    """Kernel: as `pull.make_pull` makes, of a program that leaves rows early."""
    open_rows, pull_word = make_open_rows(author), make_pull_word(author)

    @loop_kernel(author.key, grain=1)
    def early_pull(  # type: ignore[no-untyped-def]
        first_step,
        end_step,
        view,
        index,
        skipped,
        out_index,
        active,
        whole,
        block,
        fields,
        scalars,
        vertices,
        partials,
        kept,
    ):
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        sources, base = (out_index, active, whole), vertices.base
        for number in range(first_step, end_step):
            low = view.e0 + number * block
            high = min(low + block, view.e1)
            bounds = low, high, skipped[0]
            v = find_row(index, view.v0, view.v1, low)
            end = find_row(index, v, view.v1, high - np.int64(1)) + ONE
            partials[2][number] = False
            word, last, ahead = (v - base) >> SIX, (end - ONE - base) >> SIX, np.uint64(0)
            while word <= last + ONE:
                left, ahead = ahead, np.uint64(0)
                if word <= last:  # its lines come while the rows of the word before are read
                    stop = min(end, ((word + ONE) << SIX) + base)
                    ahead = open_rows(view, index, v, stop, low, skipped, fields, scalars, base)
                    v = stop
                word += ONE
                if left == 0:
                    continue
                at = word - TWO
                marks, missed = pull_word(
                    view, index, at, left, bounds, sources, fields, scalars, vertices, partials, number
                )
                if marks != 0 and not whole:
                    mark_word(vertices, at, marks)
                if missed != 0 and kept[0].shape[0] > 0:
                    keep_rows(view, index, missed, at, base, low, high, kept)

    return early_pull


def make_pull_unmatched(author: Author) -> Any:
    """Kernel: pull along the rows that are kept, of vertices that still accept messages; steps are segments."""
    edge, cond, has_send = author.calls["edge"], author.calls["cond"], author.has_send
    combine = COMBINE[author.combine]

    @loop_kernel(author.key, grain=64)
    def pull_unmatched(first_step, end_step, kept, out_index, active, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        vertices = VertexArrays(*vertices)
        items, starts, _ = kept
        sent, base = vertices.sent, vertices.base
        for segment in range(first_step, end_step):
            at, end = np.uint64(starts[segment]), np.uint64(starts[segment + 1])
            word, marks = np.uint64(items[at]), np.uint64(0)
            at += ONE
            while at < end:
                row = np.uint64(items[at])
                v = ((word << SIX) | (row & LOW)) + base
                at += ONE
                next_row = at + (row >> SIX)
                if not cond(fields, scalars, v, np.int64(0), base):
                    at = next_row
                while at < next_row:
                    u = np.uint64(items[at])
                    at += ONE
                    if is_marked(active, u - base):
                        message = sent[u - base] if has_send else sent[0]
                        d = degree_of(out_index, u)
                        value = sent.dtype.type(edge(fields, scalars, message, u, v, np.uint8(1), d, base))
                        if combine(vertices.target, v - base, value):
                            marks |= ONE << ((v - base) & LOW)
                        at = next_row
            if marks != 0:
                mark_word(vertices, word, marks)

    return pull_unmatched
