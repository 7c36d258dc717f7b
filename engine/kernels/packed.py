"""Push along a packed view: gathered rows one after another, with an index of their own
(`transfer/staging/compacted_layout.py`).

Owns how such a view is walked on the host. Every row in it is active, and no bitmap is asked. A row's degree comes from
the graph's index, since one row may be split over several views. Views are packed for pushes only: a pull asks every
vertex that still wants messages, of whose rows it reads little.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.bitmap import degree_of, is_marked
from penstock.engine.kernels.cached import inline, kernel
from penstock.engine.kernels.edges import make_relax
from penstock.engine.kernels.intrinsics import atomic_add
from penstock.engine.program.bindings import Author


@inline
def find_part(offsets, count, edge):  # type: ignore[no-untyped-def]
    """The row part in [0, count) that owns the packed `edge`: the last that starts at or before it."""
    low, high = np.int64(0), count - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if np.int64(offsets[middle]) <= edge:
            low = middle
        else:
            high = middle - 1
    return low


def make_push_packed(author: Author, weighted: bool, key: str) -> Any:
    """Kernel: push along the marked rows (all of them if `whole`) of a packed view of `e1` edges, in equal blocks."""
    relax = make_relax(author, weighted)

    @kernel(key)
    def push_packed(  # type: ignore[no-untyped-def]
        view,
        e1,
        rows,
        offsets,
        index,
        active,
        whole,
        threads,
        block,
        fields,
        scalars,
        sent,
        target,
        touched,
        summary,
        base,
    ):
        bases, row_offsets, shift = index
        blocks = (e1 + block - 1) // block
        counter = np.zeros(1, dtype=np.int64)
        for _ in numba.prange(threads):
            while True:
                number = atomic_add(counter, np.uint64(0), np.int64(1))
                if number >= blocks:
                    break
                low = number * block
                high = min(low + block, e1)
                i = find_part(offsets, rows.shape[0], low)
                begins = low
                while begins < high:
                    u = np.uint64(rows[i])
                    ends = min(np.int64(offsets[i + 1]), high)
                    d = degree_of(bases, row_offsets, shift, u)
                    if whole or is_marked(active, u - base):
                        relax(view, u, begins, ends, d, fields, scalars, sent, target, touched, summary, base)
                    begins = ends
                    i += 1

    return push_packed
