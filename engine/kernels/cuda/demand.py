"""Counting demand on a GPU: what an iteration needs of every partition, so that only a small table crosses the link.

And copying row prefixes out of a view (`engine/state/row_prefix_cache.py`): a thread takes a row.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    BIT,
    FIVE,
    NONE,
    ONE,
    all_threads,
    atomic_add,
    atomic_or,
    global_thread,
    is_marked,
    lowest_bit,
    row_start,
)
from penstock.engine.kernels.cuda.driver import DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.shared_functions import make_mark_blocks
from penstock.engine.program.bindings import Author

ZERO = np.int64(0)
THREE = np.int64(3)
FOUR = np.int64(4)


@device
def pop_count(word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint32, int64."""
    return np.int64(cuda.popc(word))


mark_blocks = device(make_mark_blocks(atomic_add, atomic_or, lowest_bit, pop_count))


@device
def count_row(start, end, sizes, table, chunks, columns):  # type: ignore[no-untyped-def]
    """Add row [start, end) to table (partition -> vertices, edges, lines: `columns` apart) and mark its chunks."""
    partition_edges, chunk_edges, line_edges = sizes
    for chunk in range(start // chunk_edges, (end - 1) // chunk_edges + 1):
        chunks[chunk] = 1
    for partition in range(start // partition_edges, (end - 1) // partition_edges + 1):
        low = max(start, partition * partition_edges)
        high = min(end, (partition + 1) * partition_edges)
        at = partition * columns
        cuda.atomic.add(table, at, 1)
        cuda.atomic.add(table, at + 1, high - low)
        cuda.atomic.add(table, at + 2, (high - 1) // line_edges - low // line_edges + 1)


@device
def count_wanted(start, end, sizes, table, chunks, blocks):  # type: ignore[no-untyped-def]
    """`count_row`; where `blocks` is not empty, mark the row's, and count the new ones as the fourth column."""
    if blocks.shape[0] == 0:
        count_row(start, end, sizes, table, chunks, THREE)
    else:
        count_row(start, end, sizes, table, chunks, FOUR)
        mark_blocks(start, end, sizes[0], table, blocks)


@kernel
def count_active(active, index, base, sizes, table, chunks, blocks):  # type: ignore[no-untyped-def]
    """Count the marked vertices' rows (demand of a push)."""
    word = np.uint64(global_thread())
    while word < np.uint64(active.shape[0]):
        left = active[word]
        while left != NONE:
            v = ((word << FIVE) | lowest_bit(left)) + base
            left = np.uint32(left & np.uint32(left - BIT))
            start = row_start(index, v)
            end = row_start(index, v + ONE)
            if end > start:
                count_wanted(start, end, sizes, table, chunks, blocks)
        word += np.uint64(all_threads())


def make_add_pending(author: Author) -> DeviceKernel:
    """Kernel: add what the author calls pending of every marked vertex to the partition in which its row begins."""
    pending = author.calls["pending"]

    @kernel
    def add_pending(active, index, fields, scalars, base, partition_edges, values):  # type: ignore[no-untyped-def]
        word = np.uint64(global_thread())
        while word < np.uint64(active.shape[0]):
            left = active[word]
            while left != NONE:
                v = ((word << FIVE) | lowest_bit(left)) + base
                left = np.uint32(left & np.uint32(left - BIT))
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                if end > start:
                    value = np.float64(pending(fields, scalars, v, end - start, base))
                    cuda.atomic.add(values, start // partition_edges, value)
            word += np.uint64(all_threads())

    return add_pending


def make_count_cond(author: Author, function: str = "cond") -> DeviceKernel:
    """Kernel: count the rows of vertices that want messages (demand of a pull), or for which another function holds.

    skipped: how many of a row's edges were looked at before, and a bitmap of who found a message among them.
    """
    cond = author.calls[function]

    @kernel
    def count_cond(  # type: ignore[no-untyped-def]
        count, index, fields, scalars, base, skipped, sizes, table, chunks, blocks
    ):
        skip, matched = skipped
        at = np.uint64(global_thread())
        while at < count:
            start = row_start(index, at + base) + skip
            end = row_start(index, at + base + ONE)
            found = skip > ZERO and is_marked(matched, at)
            if end > start and not found and cond(fields, scalars, at + base, ZERO, base):
                count_wanted(start, end, sizes, table, chunks, blocks)
            at += np.uint64(all_threads())

    return count_cond


@kernel
def cache_row_prefixes(view, index, head_index, each, heads):  # type: ignore[no-untyped-def]
    """Kernel: heads = what [e0, e1) holds of the first `each` edges of rows [v0, v1)."""
    v = view.v0 + np.uint64(global_thread())
    while v < view.v1:
        start = row_start(index, v)
        end = min(row_start(index, v + ONE), start + each)
        at = row_start(head_index, v)
        for e in range(max(start, view.e0), min(end, view.e1)):
            heads[at + e - start] = view.neighbors[e - view.e0]
        v += np.uint64(all_threads())
