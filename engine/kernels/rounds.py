"""One more local round: who became active inside a loaded view sends again while its edges are at hand.

Owns the choice of those vertices: pending, below the limit, and with all of their row in the view, for what is taken
here is pending no more. Their edges are walked by `push_rows`. HyTGraph's recomputation of loaded partitions (Wang et
al., ICDE 2023, section VI). For asynchronous programs only: a synchronous one may not see its own updates.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.bitmap import ONE, SIX, row_start
from penstock.engine.kernels.cached import kernel
from penstock.engine.kernels.intrinsics import lowest_bit, pop_count
from penstock.engine.program.bindings import Author


def make_take(author: Author, key: str) -> Any:
    """Kernel: again = the pending vertices of [v0, v1) that may go and whose rows lie in [e0, e1); returns how many.

    Every word of `again` that holds a vertex of [v0, v1) is written; vertices outside are unmarked there.
    """
    priority, has_priority = author.calls["priority"], author.has_priority

    @kernel(key)
    def take(pending, again, index, view, rows, fields, scalars, limit, base):  # type: ignore[no-untyped-def]
        bases, offsets, shift = index
        e0, e1 = view
        v0, v1 = rows
        taken = np.int64(0)
        if v1 > v0:
            for word in numba.prange((v0 - base) >> SIX, ((v1 - ONE - base) >> SIX) + ONE):
                chosen = np.uint64(0)
                left = pending[word]
                while left != 0:
                    v = ((np.uint64(word) << SIX) | lowest_bit(left)) + base
                    bit = left & (~left + ONE)
                    left &= left - ONE
                    if v < v0 or v >= v1:
                        continue
                    start = row_start(bases, offsets, shift, v)
                    end = row_start(bases, offsets, shift, v + ONE)
                    if start < e0 or end > e1:
                        continue
                    if has_priority and priority(fields, scalars, v, end - start, base) >= limit:
                        continue
                    chosen |= bit
                again[word] = chosen
                pending[word] &= ~chosen
                taken += np.int64(pop_count(chosen))
        return taken

    return take
