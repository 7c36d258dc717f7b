"""Small functions that kernels on the CPU cores share: bits of a bitmap, rows of an index."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels import shared_functions
from penstock.engine.kernels.host.atomics import atomic_or
from penstock.engine.kernels.host.jit import inline
from penstock.engine.kernels.shared_functions import make_degree_of, make_find_row

ONE = np.uint64(1)
SIX = np.uint64(6)
LOW = np.uint64(63)


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


row_start = inline(shared_functions.row_start)
degree_of = inline(make_degree_of(row_start))
find_row = inline(make_find_row(row_start))
find_part = inline(shared_functions.find_part)
