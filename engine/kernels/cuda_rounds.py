"""One more local round on a GPU; see `rounds.py`. A thread takes one 32-bit word of the bitmap."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda import Kernel, kernel
from penstock.engine.kernels.cuda_parts import BIT, FIVE, NONE, ONE, all_threads, global_thread, lowest_bit, row_start
from penstock.engine.program.bindings import Author


def make_take(author: Author) -> Kernel:
    """Kernel: again = the pending vertices of [v0, v1) that may go and whose rows lie in [e0, e1)."""
    priority, has_priority = author.calls["priority"], author.has_priority

    @kernel
    def take(pending, again, index, e0, e1, rows, fields, scalars, limit, base):  # type: ignore[no-untyped-def]
        bases, offsets, shift = index
        v0, v1 = rows
        word = ((v0 - base) >> FIVE) + np.uint64(global_thread())
        while word <= (v1 - ONE - base) >> FIVE:
            chosen = NONE
            left = pending[word]
            while left != NONE:
                v = ((word << FIVE) | lowest_bit(left)) + base
                rest = np.uint32(left & np.uint32(left - BIT))
                start = row_start(bases, offsets, shift, v)
                end = row_start(bases, offsets, shift, v + ONE)
                if v >= v0 and v < v1 and start >= e0 and end <= e1:
                    due = True
                    if has_priority:
                        due = np.float64(priority(fields, scalars, v, end - start, base)) < limit
                    if due:
                        chosen = np.uint32(chosen | (left ^ rest))
                left = rest
            again[word] = chosen
            if chosen != NONE:
                pending[word] = np.uint32(pending[word] & ~chosen)
            word += np.uint64(all_threads())

    return take
