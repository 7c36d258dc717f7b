"""What an iteration needs of the edges: counted per partition, marked per chunk.

Only runs when edges may have to travel; a resident adjacency needs no count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import lowest_bit
from penstock.engine.kernels.host.device_functions import ONE, SIX, is_marked, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.interface import EdgeView
from penstock.engine.kernels.shared_functions import make_mark_blocks
from penstock.engine.program.bindings import Author
from penstock.storage.base import thread_atomics
from penstock.storage.base.thread_atomics import atomic_add, atomic_or

SPAN = np.uint64(4096)


@inline
def lowest_bit_of(word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a non-zero uint32, as uint64."""
    return lowest_bit(np.uint64(word))


@inline
def pop_count(word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint32, int64."""
    return np.int64(thread_atomics.pop_count(np.uint64(word)))


mark_blocks = inline(make_mark_blocks(atomic_add, atomic_or, lowest_bit_of, pop_count))


@inline
def count_row(start, end, sizes, table, chunks, columns):  # type: ignore[no-untyped-def]
    """Add row [start, end) to table (partition -> vertices, edges, lines: `columns` apart) and mark its chunks."""
    partition_edges, chunk_edges, line_edges = sizes
    for chunk in range(start // chunk_edges, (end - 1) // chunk_edges + 1):
        chunks[chunk] = 1
    for partition in range(start // partition_edges, (end - 1) // partition_edges + 1):
        low = max(start, partition * partition_edges)
        high = min(end, (partition + 1) * partition_edges)
        at = np.uint64(partition * columns)
        atomic_add(table, at, np.int64(1))
        atomic_add(table, at + ONE, high - low)
        atomic_add(table, at + np.uint64(2), (high - 1) // line_edges - low // line_edges + 1)


@inline
def count_wanted(start, end, sizes, table, chunks, blocks):  # type: ignore[no-untyped-def]
    """`count_row`; where `blocks` is not empty, mark the row's, and count the new ones as the fourth column."""
    count_row(start, end, sizes, table, chunks, 3 if len(blocks) == 0 else 4)
    if len(blocks) > 0:
        mark_blocks(start, end, sizes[0], table, blocks)


@loop_kernel("count_active", shares=1)
def count_active(  # type: ignore[no-untyped-def]
    first_step, end_step, active, active_summary, index, base, sizes, table, chunks, blocks
):
    """Count the marked vertices' rows (demand of a push)."""
    for over in range(first_step, end_step):
        upper = active_summary[over]
        while upper != 0:
            word = (np.uint64(over) << SIX) | lowest_bit(upper)
            upper &= upper - ONE
            left = active[word]
            while left != 0:
                v = ((word << SIX) | lowest_bit(left)) + base
                left &= left - ONE
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                if end > start:
                    count_wanted(start, end, sizes, table, chunks, blocks)


def make_add_pending(author: Author) -> Any:
    """Kernel: add what the author calls pending of every marked vertex to the partition in which its row begins."""
    pending = author.calls["pending"]

    @loop_kernel(author.key, shares=1, counted=True)
    def add_pending(  # type: ignore[no-untyped-def]
        first_step, end_step, active, active_summary, index, fields, scalars, base, partition_edges, values
    ):
        for over in range(first_step, end_step):
            upper = active_summary[over]
            while upper != 0:
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                left = active[word]
                while left != 0:
                    v = ((word << SIX) | lowest_bit(left)) + base
                    left &= left - ONE
                    start = row_start(index, v)
                    end = row_start(index, v + ONE)
                    if end > start:
                        value = np.float64(pending(fields, scalars, v, end - start, base))
                        atomic_add(values, np.uint64(start // partition_edges), value)

    return add_pending


@loop_kernel("cache_row_prefixes")
def cache_row_prefixes(first_step, end_step, view, index, head_index, each, heads):  # type: ignore[no-untyped-def]
    """Copy what edges [e0, e1) hold of the first `each` edges of rows [v0, v1) (`engine/state/row_prefix_cache.py`)."""
    view = EdgeView(*view)
    for row in range(first_step, end_step):
        v = view.v0 + np.uint64(row)
        start = row_start(index, v)
        end = min(row_start(index, v + ONE), start + each)
        at = row_start(head_index, v)
        for e in range(max(start, view.e0), min(end, view.e1)):
            heads[at + e - start] = view.neighbors[e - view.e0]


def make_count_cond(author: Author, function: str = "cond") -> Any:
    """Kernel: count the rows of vertices that want messages (demand of a pull), or for which another function holds.

    skipped: how many of a row's edges were looked at before, and a bitmap of who found a message among them.
    """
    cond = author.calls[function]

    @loop_kernel(f"{author.key} {function}", shares=1)
    def count_cond(  # type: ignore[no-untyped-def]
        first_step, end_step, count, index, fields, scalars, base, skipped, sizes, table, chunks, blocks
    ):
        skip, matched = skipped
        for over in range(first_step, end_step):
            first = np.uint64(over) * SPAN
            for at in range(first, min(first + SPAN, count)):
                v = np.uint64(at) + base
                start = row_start(index, v) + skip
                end = row_start(index, v + ONE)
                found = skip > 0 and is_marked(matched, v - base)
                if end > start and not found and cond(fields, scalars, v, np.int64(0), base):
                    count_wanted(start, end, sizes, table, chunks, blocks)

    return count_cond
