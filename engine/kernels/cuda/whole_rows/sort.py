"""Sorting the rows of a block on a GPU, all of them at once: bitonic networks, in shared memory and out of it.

Rows of at most SHORT messages share the network of a window: those that begin in it are sorted together by (place of
their row, message), which leaves every row where it was. A longer row is cut into chunks of TILE; each is sorted, then
they are merged, pair by pair, steps of less than a TILE in shared memory again. A network whose every comparison puts
the smaller one first sorts any number of messages, as if those past the end were infinite (Batcher, AFIPS 1968; Knuth,
section 5.3.4). Nothing is needed beside the messages themselves, and no row is too long. NaNs come last.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda.device_functions import ONE
from penstock.engine.kernels.cuda.driver import BLOCK, TILE, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.cuda.whole_rows.rows import position, row_at, row_from
from penstock.engine.program.bindings import Author

SHORT = TILE // 2
"""Messages of a row that is sorted with its neighbors, and of a window in which such rows begin."""
PAIRS = np.int64(TILE // 2)
ZERO = np.int64(0)
STEP = np.int64(1)


@device
def before(one, other):  # type: ignore[no-untyped-def]
    """Whether `one` belongs before `other`."""
    return one < other or (other != other and one == one)


@device
def exchange(values, low, high):  # type: ignore[no-untyped-def]
    """Put the smaller of two entries first."""
    one, other = values[low], values[high]
    if before(other, one):
        values[low] = other
        values[high] = one


@device
def exchange_in_rows(values, places, low, high):  # type: ignore[no-untyped-def]
    """The same by (places, values)."""
    here, there = places[low], places[high]
    one, other = values[low], values[high]
    if there < here or (there == here and before(other, one)):
        values[low], places[low] = other, there
        values[high], places[high] = one, here


@device
def mirrored(pair, shift):  # type: ignore[no-untyped-def]
    """The two entries of comparison number `pair` between two sorted runs of 1 << shift: the first with the last."""
    low = ((pair >> shift) << (shift + STEP)) | (pair & ((STEP << shift) - STEP))
    return low, low ^ ((STEP << (shift + STEP)) - STEP)


@device
def straight(pair, shift):  # type: ignore[no-untyped-def]
    """The two entries of comparison number `pair` at a distance of 1 << shift."""
    low = ((pair >> shift) << (shift + STEP)) | (pair & ((STEP << shift) - STEP))
    return low, low | (STEP << shift)


@device
def copy_over(target, to, source, begin, length):  # type: ignore[no-untyped-def]
    """Copy source[begin:begin + length] to target[to:], and be done; all threads of the block call it."""
    at = np.int64(cuda.threadIdx.x)
    while at < length:
        target[to + at] = source[begin + at]
        at += np.int64(BLOCK)
    cuda.syncthreads()


@device
def merge_shared(values, count, shift):  # type: ignore[no-untyped-def]
    """Comparisons at distances 1 << shift down to 1 of shared values[:count]; all threads of the block call it."""
    while shift >= ZERO:
        pair = np.int64(cuda.threadIdx.x)
        while pair < PAIRS:
            low, high = straight(pair, shift)
            if high < count:
                exchange(values, low, high)
            pair += np.int64(BLOCK)
        cuda.syncthreads()
        shift -= STEP


@device
def sort_shared(values, count):  # type: ignore[no-untyped-def]
    """Sort shared values[:count]; all threads of the block call it."""
    shift = ZERO
    while (STEP << shift) < count:
        pair = np.int64(cuda.threadIdx.x)
        while pair < PAIRS:
            low, high = mirrored(pair, shift)
            if high < count:
                exchange(values, low, high)
            pair += np.int64(BLOCK)
        cuda.syncthreads()
        merge_shared(values, count, shift - STEP)
        shift += STEP


@device
def sort_shared_rows(values, places, count):  # type: ignore[no-untyped-def]
    """Sort shared values[:count] inside of rows, which `places` tells apart; all threads of the block call it."""
    shift = ZERO
    while (STEP << shift) < count:
        gap = shift
        while gap >= ZERO:
            pair = np.int64(cuda.threadIdx.x)
            while pair < PAIRS:
                low, high = mirrored(pair, gap) if gap == shift else straight(pair, gap)
                if high < count:
                    exchange_in_rows(values, places, low, high)
                pair += np.int64(BLOCK)
            cuda.syncthreads()
            gap -= STEP
        shift += STEP


def make_sort_windows(author: Author) -> DeviceKernel:
    """Kernel: sort every row of the block that has at most SHORT messages; `count`: messages of the block."""
    message_type: Any = numba.from_dtype(author.message)

    @kernel
    def sort_windows(layout, buffer, count):  # type: ignore[no-untyped-def]
        values = cuda.shared.array(TILE, message_type)
        places = cuda.shared.array(TILE, np.int32)
        rows = cuda.shared.array(2, np.uint64)
        thread = np.int64(cuda.threadIdx.x)
        window = np.int64(cuda.blockIdx.x)
        while window * np.int64(SHORT) < count:
            if thread < 2:
                rows[thread] = row_from(layout, (window + thread) * np.int64(SHORT))
            cuda.syncthreads()
            first, last = rows[0], rows[1]
            begin = position(layout, first)
            length = position(layout, last) - begin
            if first < last:
                final = position(layout, last - ONE) - begin
                if length - final > np.int64(SHORT):
                    length = final
            at = thread
            while at < length:
                row = row_at(layout, first, last, begin + at)
                places[at] = np.int32(position(layout, row) - begin)
                values[at] = buffer[begin + at]
                at += np.int64(BLOCK)
            cuda.syncthreads()
            sort_shared_rows(values, places, length)
            copy_over(buffer, begin, values, ZERO, length)
            window += np.int64(cuda.gridDim.x)

    return sort_windows


def make_sort_chunks(author: Author) -> DeviceKernel:
    """Kernel: sort every chunk of the long rows.

    chunks int64 (n, 3): where a chunk and its row begin in the buffer, and where the row ends.
    """
    message_type: Any = numba.from_dtype(author.message)

    @kernel
    def sort_chunks(chunks, buffer):  # type: ignore[no-untyped-def]
        values = cuda.shared.array(TILE, message_type)
        number = np.int64(cuda.blockIdx.x)
        while number < chunks.shape[0]:
            begin = chunks[number, 0]
            length = min(np.int64(TILE), chunks[number, 2] - begin)
            copy_over(values, ZERO, buffer, begin, length)
            sort_shared(values, length)
            copy_over(buffer, begin, values, ZERO, length)
            number += np.int64(cuda.gridDim.x)

    return sort_chunks


@kernel
def merge_far(chunks, buffer, run_shift, gap_shift):  # type: ignore[no-untyped-def]
    """Kernel: comparisons of entries in different chunks, of rows longer than a run of 1 << run_shift messages.

    The first step of merging runs (gap_shift == run_shift) is mirrored, the others, at 1 << gap_shift, are not.
    """
    run, gap = STEP << run_shift, STEP << gap_shift
    number = np.int64(cuda.blockIdx.x)
    while number < chunks.shape[0]:
        begin, row, end = chunks[number, 0], chunks[number, 1], chunks[number, 2]
        if end - row > run:
            at = begin - row + np.int64(cuda.threadIdx.x)
            after = min(begin - row + np.int64(TILE), end - row)
            while at < after:
                if at & gap == ZERO:
                    partner = at ^ (gap + gap - STEP) if gap == run else at | gap
                    if partner < end - row:
                        exchange(buffer, row + at, row + partner)
                at += np.int64(BLOCK)
        number += np.int64(cuda.gridDim.x)


def make_merge_near(author: Author) -> DeviceKernel:
    """Kernel: the comparisons inside of chunks that end a merge of runs of 1 << run_shift messages."""
    message_type: Any = numba.from_dtype(author.message)
    widest = np.int64(TILE.bit_length() - 2)

    @kernel
    def merge_near(chunks, buffer, run_shift):  # type: ignore[no-untyped-def]
        values = cuda.shared.array(TILE, message_type)
        number = np.int64(cuda.blockIdx.x)
        while number < chunks.shape[0]:
            begin, row, end = chunks[number, 0], chunks[number, 1], chunks[number, 2]
            if end - row > STEP << run_shift:
                length = min(np.int64(TILE), end - begin)
                copy_over(values, ZERO, buffer, begin, length)
                merge_shared(values, length, widest)
                copy_over(buffer, begin, values, ZERO, length)
            number += np.int64(cuda.gridDim.x)

    return merge_near


def merges(longest: int) -> list[tuple[int, int]]:
    """Far steps (run_shift, gap_shift) that sort a row of `longest` messages once its chunks are, in their order.

    After the last step of a run_shift come the near ones.
    """
    tile = TILE.bit_length() - 1
    runs = range(tile, max(tile, (longest - 1).bit_length()))
    return [(run, gap) for run in runs for gap in range(run, tile - 1, -1)]
