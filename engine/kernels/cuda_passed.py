"""Who may send once more in the same iteration, on a GPU; see `passed.py`. A thread takes words of 32 bits."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda import Kernel, kernel
from penstock.engine.kernels.cuda_demand import count_row
from penstock.engine.kernels.cuda_parts import BIT, FIVE, NONE, ONE, all_threads, global_thread, lowest_bit, row_start
from penstock.engine.program.bindings import Author


def make_take_passed(author: Author) -> Kernel:
    """Kernel: again = the pending vertices of `within` that may go and whose rows lie in passed chunks."""
    priority, has_priority = author.calls["priority"], author.has_priority

    @kernel
    def take_passed(  # type: ignore[no-untyped-def]
        pending, within, again, index, passed, seen, sizes, table, fields, scalars, limit, base
    ):
        bases, offsets, shift = index
        chunk_edges = sizes[1]
        word = np.uint64(global_thread())
        while word < np.uint64(pending.shape[0]):
            chosen = NONE
            left = np.uint32(pending[word] & within[word])
            while left != NONE:
                v = ((word << FIVE) | lowest_bit(left)) + base
                rest = np.uint32(left & np.uint32(left - BIT))
                start = row_start(bases, offsets, shift, v)
                end = row_start(bases, offsets, shift, v + ONE)
                here = True
                for chunk in range(start // chunk_edges, (end - 1) // chunk_edges + 1):
                    here = here and passed[chunk] != 0
                if here and has_priority:
                    here = np.float64(priority(fields, scalars, v, end - start, base)) < limit
                if here:
                    chosen = np.uint32(chosen | (left ^ rest))
                    if end > start:
                        count_row(start, end, sizes, table, seen)
                left = rest
            again[word] = chosen
            if chosen != NONE:
                pending[word] = np.uint32(pending[word] & ~chosen)
            word += np.uint64(all_threads())

    return take_passed
