"""Small functions that kernels on the CPU cores share: bits of a bitmap, lists of vertices, rows of an index."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels import shared_functions
from penstock.engine.kernels.host.atomics import lowest_bit
from penstock.engine.kernels.host.jit import inline
from penstock.engine.kernels.shared_functions import make_degree_of, make_find_row
from penstock.storage.base.thread_atomics import atomic_or

ONE = np.uint64(1)
SIX = np.uint64(6)
LOW = np.uint64(63)
NONE = np.uint64(0)
CACHED = 1 << 18
"""Vertices of which a value each is in a core's cache anyway."""


@inline
def mark(words, summary, v):  # type: ignore[no-untyped-def]
    """Set the bit of `v` (uint64, already less base) and its word's, atomically; cheap when they are set already.

    The bit of the word is set also where that of `v` was: it says that `v` has changed (`due.py`).
    """
    word = v >> SIX
    bit = ONE << (v & LOW)
    if words[word] & bit == 0:
        atomic_or(words, word, bit)
    over = word >> SIX
    upper = ONE << (word & LOW)
    if summary[over] & upper == 0:
        atomic_or(summary, over, upper)


@inline
def put(words, summary, at):  # type: ignore[no-untyped-def]
    """Set the bit of `at` (uint64, less base), where only this thread writes."""
    word = at >> SIX
    words[word] |= ONE << (at & LOW)
    summary[word >> SIX] |= ONE << (word & LOW)


@inline
def is_marked(words, v):  # type: ignore[no-untyped-def]
    """Whether the bit of `v` is set."""
    return words[v >> SIX] & (ONE << (v & LOW)) != 0


@inline
def take_marked(words, summary, lists, listed, base):  # type: ignore[no-untyped-def]
    """List the marked vertices, ascending, and unmark them; returns how many."""
    number = NONE
    for over in range(summary.shape[0]):
        upper = summary[over]
        summary[over] = NONE
        while upper != NONE:
            word = (np.uint64(over) << SIX) | lowest_bit(upper)
            upper &= upper - ONE
            left = words[word]
            words[word] = NONE
            while left != NONE:
                lists[listed + number] = ((word << SIX) | lowest_bit(left)) + base
                number += ONE
                left &= left - ONE
    return number


@inline
def mark_listed(words, lists, listed, number, base):  # type: ignore[no-untyped-def]
    """Set the bits of listed vertices."""
    for i in range(listed, listed + number):
        at = np.uint64(lists[i]) - base
        words[at >> SIX] |= ONE << (at & LOW)


@inline
def unmark_listed(words, lists, listed, number, base):  # type: ignore[no-untyped-def]
    """Unset the bits of listed vertices; no others are set."""
    for i in range(listed, listed + number):
        words[(np.uint64(lists[i]) - base) >> SIX] = NONE


row_start = inline(shared_functions.row_start)
degree_of = inline(make_degree_of(row_start))
find_row = inline(make_find_row(row_start))
find_part = inline(shared_functions.find_part)
