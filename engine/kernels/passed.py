"""Who may send once more in the same iteration, because the walk has gone past the edges (route `cel`).

Owns the choice of those vertices: pending, below the limit, and with all of their row in chunks that the walk has
passed; what is taken here is pending no more, and whoever asks must bring its row. WolfGraph's successors (Zhu et al.,
FGCS 2020), but only those that did change. For asynchronous programs only, as in `rounds.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.bitmap import ONE, SIX, row_start
from penstock.engine.kernels.cached import kernel
from penstock.engine.kernels.demand import count_row
from penstock.engine.kernels.intrinsics import lowest_bit
from penstock.engine.program.bindings import Author


@dataclass
class Passed:
    """Where rows may lie that are taken, and what was: arrays of the host.

    chunks: uint8, nonzero where the walk has passed and the edges can be had again. sizes: edges of a partition, of a
    chunk, of a 128-byte line. table: int64[partitions * 3], filled with what was taken (vertices, edges, lines).
    """

    chunks: NDArray[np.uint8]
    sizes: tuple[int, int, int]
    table: NDArray[np.int64]


def make_take_passed(author: Author, key: str) -> Any:
    """Kernel: again = the pending vertices of `within` that may go and whose rows lie in passed chunks.

    Every word of `again` is written; it may be `within` itself. table: as `count_active` counts; seen: chunks of it.
    """
    priority, has_priority = author.calls["priority"], author.has_priority

    @kernel(key)
    def take_passed(  # type: ignore[no-untyped-def]
        pending, summary, within, again, index, passed, seen, sizes, table, fields, scalars, limit, base
    ):
        bases, offsets, shift = index
        partition_edges, chunk_edges, line_edges = sizes
        for over in numba.prange(summary.shape[0]):
            upper = summary[over]
            for at in range(64):
                word = (np.uint64(over) << SIX) | np.uint64(at)
                chosen = np.uint64(0)
                left = np.uint64(0)
                if upper & (ONE << np.uint64(at)) != 0:
                    left = pending[word] & within[word]
                while left != 0:
                    v = ((word << SIX) | lowest_bit(left)) + base
                    bit = left & (~left + ONE)
                    left &= left - ONE
                    start = row_start(bases, offsets, shift, v)
                    end = row_start(bases, offsets, shift, v + ONE)
                    here = True
                    for chunk in range(start // chunk_edges, (end - 1) // chunk_edges + 1):
                        here = here and passed[chunk] != 0
                    if not here:
                        continue
                    if has_priority and priority(fields, scalars, v, end - start, base) >= limit:
                        continue
                    chosen |= bit
                    if end > start:
                        count_row(start, end, partition_edges, chunk_edges, line_edges, table, seen)
                again[word] = chosen
                pending[word] &= ~chosen

    return take_passed
