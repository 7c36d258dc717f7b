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
from penstock.engine.kernels.cuda.driver import BLOCK, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.shared_functions import make_mark_blocks
from penstock.engine.program.bindings import Author

ZERO = np.int64(0)
ONE_EDGE = np.int64(1)
THREE = np.int64(3)
FOUR = np.int64(4)
SHORT = np.int64(2**32)
LOW, HIGH, ROWS, EDGES, LINES, CHUNK_LOW, CHUNK_HIGH, TALLY = range(8)
"""A thread's tally: a partition's edges [low, high), what is counted of it, the edges of the last marked chunk."""
WORDS_EACH, VERTICES_EACH = 4, 32
WORDS, VERTICES = np.uint64(WORDS_EACH * BLOCK), np.uint64(VERTICES_EACH * BLOCK)
"""Neighboring words of a bitmap, and vertices, that a block takes at once."""


@device
def pop_count(word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint32, int64."""
    return np.int64(cuda.popc(word))


mark_blocks = device(make_mark_blocks(atomic_add, atomic_or, lowest_bit, pop_count))


@device
def lines_between(low, high, line_edges):  # type: ignore[no-untyped-def]
    """Lines that the edges [low, high) touch; 64-bit division takes several times as long as that of 32 bits."""
    if high < SHORT:
        line = np.uint32(line_edges)
        return np.int64(np.uint32(high - 1) // line) - np.int64(np.uint32(low) // line) + 1
    return (high - 1) // line_edges - low // line_edges + 1


@device
def begin_tally(tally):  # type: ignore[no-untyped-def]
    """Nothing is counted yet: int64[TALLY], a thread's own, kept in registers."""
    tally[LOW], tally[HIGH], tally[ROWS], tally[EDGES], tally[LINES] = 0, 0, 0, 0, 0
    tally[CHUNK_LOW], tally[CHUNK_HIGH] = 0, 0


@device
def give_tally(tally, table, columns):  # type: ignore[no-untyped-def]
    """Add what a thread has counted of one partition to its row of the table."""
    if tally[ROWS] > 0:
        at = tally[LOW] // max(tally[HIGH] - tally[LOW], ONE_EDGE) * columns
        cuda.atomic.add(table, at, tally[ROWS])
        cuda.atomic.add(table, at + 1, tally[EDGES])
        cuda.atomic.add(table, at + 2, tally[LINES])
        tally[ROWS], tally[EDGES], tally[LINES] = 0, 0, 0


@device
def count_row(start, end, sizes, table, chunks, columns, tally):  # type: ignore[no-untyped-def]
    """Add row [start, end) to table (partition -> vertices, edges, lines: `columns` apart) and mark its chunks.

    By way of the thread's tally, for rows that follow each other mostly lie in one partition and one chunk: an atomic
    addition for each row made a count over the 33 M vertices of R-MAT 25 take 8 ms on an H200. `give_tally` ends it.
    """
    partition_edges, chunk_edges, line_edges = sizes
    if start < tally[CHUNK_LOW] or end > tally[CHUNK_HIGH]:
        first, last = start // chunk_edges, (end - 1) // chunk_edges
        for chunk in range(first, last + 1):
            chunks[chunk] = 1
        tally[CHUNK_LOW], tally[CHUNK_HIGH] = last * chunk_edges, (last + 1) * chunk_edges
    low = start
    while low < end:
        if low < tally[LOW] or low >= tally[HIGH]:
            give_tally(tally, table, columns)
            tally[LOW] = low // partition_edges * partition_edges
            tally[HIGH] = tally[LOW] + partition_edges
        high = min(end, tally[HIGH])
        tally[ROWS] += 1
        tally[EDGES] += high - low
        tally[LINES] += lines_between(low, high, line_edges)
        low = high


@device
def columns_of(blocks):  # type: ignore[no-untyped-def]
    """Columns of the table: where wanted blocks are marked, their number is the fourth."""
    return THREE if blocks.shape[0] == 0 else FOUR


@device
def count_wanted(start, end, sizes, table, chunks, blocks, tally):  # type: ignore[no-untyped-def]
    """`count_row`; where `blocks` is not empty, mark the row's, and count the new ones as the fourth column."""
    count_row(start, end, sizes, table, chunks, columns_of(blocks), tally)
    if blocks.shape[0] > 0:
        mark_blocks(start, end, sizes[0], table, blocks)


@kernel
def count_active(active, index, base, sizes, table, chunks, blocks):  # type: ignore[no-untyped-def]
    """Count the marked vertices' rows (demand of a push). A block takes neighboring words, a thread WORDS_EACH."""
    tally = cuda.local.array(TALLY, np.int64)
    begin_tally(tally)
    piece = np.uint64(cuda.blockIdx.x) * WORDS
    while piece < np.uint64(active.shape[0]):
        word = piece + np.uint64(cuda.threadIdx.x)
        last = min(piece + WORDS, np.uint64(active.shape[0]))
        while word < last:
            left = active[word]
            while left != NONE:
                v = ((word << FIVE) | lowest_bit(left)) + base
                left = np.uint32(left & np.uint32(left - BIT))
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                if end > start:
                    count_wanted(start, end, sizes, table, chunks, blocks, tally)
            word += np.uint64(BLOCK)
        piece += np.uint64(cuda.gridDim.x) * WORDS
    give_tally(tally, table, columns_of(blocks))


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
        tally = cuda.local.array(TALLY, np.int64)
        begin_tally(tally)
        piece = np.uint64(cuda.blockIdx.x) * VERTICES
        while piece < count:
            at, last = piece + np.uint64(cuda.threadIdx.x), min(piece + VERTICES, count)
            while at < last:
                start = row_start(index, at + base) + skip
                end = row_start(index, at + base + ONE)
                found = skip > ZERO and is_marked(matched, at)
                if end > start and not found and cond(fields, scalars, at + base, ZERO, base):
                    count_wanted(start, end, sizes, table, chunks, blocks, tally)
                at += np.uint64(BLOCK)
            piece += np.uint64(cuda.gridDim.x) * VERTICES
        give_tally(tally, table, columns_of(blocks))

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
