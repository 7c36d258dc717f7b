"""A tile of a pull on a GPU: its messages in shared memory, and what each of its rows comes to.

Owns how threads share a tile's edges: for reading, neighboring threads take neighboring edges, and ask for all of
theirs before they look at one; for adding up, each takes a few edges side by side, whatever rows they belong to.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda import BLOCK, PER_THREAD, TILE, cuda, device
from penstock.engine.kernels.cuda_edges import ZERO
from penstock.engine.kernels.cuda_parts import ONE, degree_of, find_row, is_marked, row_start
from penstock.engine.program.bindings import Author

PART_SHIFT = np.int64(PER_THREAD.bit_length() - 1)
PART_LAST = np.int64(PER_THREAD - 1)
ROOM = TILE + BLOCK
"""Messages that a tile has room for, with a gap after each thread's."""
BOTH = 2 * BLOCK
"""Of a scan: what a step reads, and what it writes."""


@device
def merge_min(a, b):  # type: ignore[no-untyped-def]
    """The smaller."""
    return b if b < a else a


@device
def merge_max(a, b):  # type: ignore[no-untyped-def]
    """The larger."""
    return b if b > a else a


@device
def merge_sum(a, b):  # type: ignore[no-untyped-def]
    """The sum."""
    return a + b


@device
def merge_or(a, b):  # type: ignore[no-untyped-def]
    """The union of bits."""
    return a | b


MERGE = {"min": merge_min, "max": merge_max, "sum": merge_sum, "or": merge_or}


def make_bring(author: Author, weighted: bool) -> Any:
    """Device function: the message that source `u` sends along the in-edge at place `at` of the view."""
    edge, has_send = author.calls["edge"], author.has_send

    @device
    def bring(view, at, u, v, out_index, fields, scalars, sent, base):  # type: ignore[no-untyped-def]
        bases, offsets, shift = out_index
        message = sent[u - base] if has_send else sent[0]
        d = degree_of(bases, offsets, shift, u)
        w = view[1][at] if weighted else np.uint8(1)
        return sent.dtype.type(edge(fields, scalars, message, u, v, w, d, base))

    return bring


@device
def spot(at):  # type: ignore[no-untyped-def]
    """Where the tile's edge number `at` has its message: with gaps, for threads that each walk their own."""
    return np.uint64(at + (at >> PART_SHIFT))


@device
def mark_ends(index, rows, tile, ends):  # type: ignore[no-untyped-def]
    """Set a bit for every edge of the tile with which a row ends.

    tile: the first of its edges that the view has, the one after the last, and the first that it could have.
    """
    bases, offsets, shift = index
    low, high, origin = tile
    v = rows[0] + np.uint64(cuda.threadIdx.x)
    while v < rows[1]:
        start, end = row_start(bases, offsets, shift, v), row_start(bases, offsets, shift, v + ONE)
        if start < end and low < end and end <= high:
            at = end - np.int64(1) - origin
            cuda.atomic.or_(ends, at >> PART_SHIFT, np.int32(1) << np.int32(at & PART_LAST))
        v += np.uint64(BLOCK)


def make_fill(author: Author, weighted: bool, uses_target: bool) -> Any:
    """Device function: values = the messages along the tile's edges, where `spot` says.

    Where the view has no such edge or its source is not active: the identity. tile: as in `mark_ends`, which runs while
    messages come. In steps: a thread's ids, marks of their sources, messages; what a step asks for it asks for at once.
    An edge outside is read as the nearest one inside, so that no branch stands between two loads.
    """
    bring, message_type = make_bring(author, weighted), numba.from_dtype(author.message)

    @device
    def fill(  # type: ignore[no-untyped-def]
        view, tile, rows, index, out_index, active, whole, fields, scalars, sent, identity, base, values, ends
    ):
        bases, offsets, shift = index
        neighbors, e0 = view[0], view[2]
        low, high, origin = tile
        sources = cuda.local.array(PER_THREAD, np.uint64)
        brought = cuda.local.array(PER_THREAD, message_type)
        chosen = cuda.local.array(PER_THREAD, np.bool_)
        mine = origin + np.int64(cuda.threadIdx.x)
        for k in range(PER_THREAD):
            e = min(max(mine + np.int64(k * BLOCK), low), high - np.int64(1))
            sources[k] = neighbors[np.uint64(e - e0)]
        for k in range(PER_THREAD):
            chosen[k] = whole or is_marked(active, sources[k] - base)
        for k in range(PER_THREAD):
            e = min(max(mine + np.int64(k * BLOCK), low), high - np.int64(1))
            v = rows[0]
            if uses_target:
                v = find_row(bases, offsets, shift, rows[0], rows[1], e)
            brought[k] = identity
            if whole or chosen[k]:
                brought[k] = bring(view, np.uint64(e - e0), sources[k], v, out_index, fields, scalars, sent, base)
        mark_ends(index, rows, tile, ends)
        for k in range(PER_THREAD):
            e = mine + np.int64(k * BLOCK)
            inside = e >= low and e < high
            values[spot(e - origin)] = brought[k] if inside else identity

    return fill


def make_add_rows(author: Author) -> Any:
    """Device function: values = at the last edge of every row of the tile, and of the tile, what the row comes to.

    Every thread walks PER_THREAD edges; what a row has of several is added by a segmented scan over the threads
    (Blelloch 1990), so that long rows beside short ones take no longer. ends int32[BLOCK]: bits of `mark_ends`, unset
    here. sums (2 * BLOCK,), broken uint8[2 * BLOCK]: shared. last: the tile's last edge, from its first possible one.
    """
    merge = MERGE[author.combine]

    @device
    def add_rows(values, ends, sums, broken, identity, last):  # type: ignore[no-untyped-def]
        thread = np.int64(cuda.threadIdx.x)
        bits = ends[thread]
        ends[thread] = np.int32(0)
        mine = spot(thread << PART_SHIFT)
        total, first, begun = identity, identity, mine
        seen = False
        for k in range(PER_THREAD):
            total = merge(total, values[mine + np.uint64(k)])
            if bits & np.int32(1 << k) != np.int32(0):
                if seen:
                    values[mine + np.uint64(k)] = total
                else:
                    first, begun, seen = total, mine + np.uint64(k), True
                total = identity
        over, side, step = seen, ZERO, np.int64(1)
        sums[thread], broken[thread] = total, np.uint8(over)
        while step < np.int64(BLOCK):
            cuda.syncthreads()
            if thread >= step:
                before, cut = sums[side + thread - step], broken[side + thread - step] != np.uint8(0)
                total = total if over else merge(before, total)
                over = over or cut
            side = np.int64(BLOCK) - side
            sums[side + thread], broken[side + thread] = total, np.uint8(over)
            step *= np.int64(2)
        cuda.syncthreads()
        if seen:
            values[begun] = merge(sums[side + thread - np.int64(1)], first) if thread > ZERO else first
        if thread == last >> PART_SHIFT and bits >> np.int32(last & PART_LAST) & np.int32(1) == np.int32(0):
            values[spot(last)] = total

    return add_rows
