"""Two-level bitmaps of vertices: one bit a vertex, and one summary bit for each word of 64.

Owns marking (atomic), selection of the next frontier from what is pending, and enumeration in
ascending order. A word's summary bit may be set while the word is zero, never the other way round.
Work is cut into pieces of whole summary words (4096 vertices), so no two threads write one word.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cached import inline, kernel
from penstock.engine.kernels.intrinsics import atomic_or, lowest_bit, pop_count
from penstock.engine.program.bindings import Author

ONE = np.uint64(1)
SIX = np.uint64(6)
TWELVE = np.uint64(12)
LOW = np.uint64(63)
SPAN = 4096  # vertices under one summary word


@inline
def mark(words, summary, v):  # type: ignore[no-untyped-def]
    """Set the bit of `v` (uint64, already less base), atomically; cheap when it is set already."""
    word = v >> SIX
    bit = ONE << (v & LOW)
    if words[word] & bit == 0:
        atomic_or(words, word, bit)
        over = word >> SIX
        upper = ONE << (word & LOW)
        if summary[over] & upper == 0:
            atomic_or(summary, over, upper)


@inline
def is_marked(words, v):  # type: ignore[no-untyped-def]
    """Whether the bit of `v` is set."""
    return words[v >> SIX] & (ONE << (v & LOW)) != 0


@inline
def degree_of(bases, offsets, shift, v):  # type: ignore[no-untyped-def]
    """Number of edges in row `v` (uint64)."""
    return row_start(bases, offsets, shift, v + ONE) - row_start(bases, offsets, shift, v)


@inline
def row_start(bases, offsets, shift, v):  # type: ignore[no-untyped-def]
    """Number of the first edge of row `v` (uint64), as int64."""
    return bases[v >> shift] + np.int64(offsets[v])


def make_select(author: Author, key: str) -> Any:
    """Kernel: move what is pending and below `limit` into `active`; count vertices and edges.

    Without a priority everything pending moves. counts int64[pieces, 2] (vertices, edges) per
    piece of summary words; rest float64[pieces]: lowest priority left pending (inf if none).
    """
    priority = author.calls["priority"]
    has_priority = author.has_priority

    @kernel(key)
    def select(  # type: ignore[no-untyped-def]
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
        bases, offsets, shift = index
        pieces = counts.shape[0]
        total = pending_summary.shape[0]
        for piece in numba.prange(pieces):
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
                        d = degree_of(bases, offsets, shift, v)
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


def make_enumerate(key: str) -> Any:
    """Kernel: list the marked vertices in ascending order, with the running sum of their edges."""

    @kernel(key)
    def enumerate_marked(  # type: ignore[no-untyped-def]
        active, active_summary, index, base, counts, vertices, work
    ):
        bases, offsets, shift = index
        pieces = counts.shape[0]
        total = active_summary.shape[0]
        for piece in numba.prange(pieces):
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
                        edges += degree_of(bases, offsets, shift, v)
            if piece == pieces - 1:
                work[at] = edges

    return enumerate_marked
