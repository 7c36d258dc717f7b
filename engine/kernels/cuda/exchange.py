"""Kernels by which ranks merge what they have found: marks are counted and listed, values merged, slices combined.

What one rank lists has no vertex twice, so a rank's values are merged without atomics; ranks come one after another, so
that all of them get the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    BIT,
    FIVE,
    MERGE,
    NONE,
    all_threads,
    global_thread,
    is_marked,
    lowest_bit,
    mark,
)
from penstock.engine.kernels.cuda.driver import BLOCK, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.cuda.frontier import block_sum

ALL = np.uint32(0xFFFFFFFF)
WIDTH, ZERO = np.int64(32), np.int64(0)


@device
def inside(words, at, first, last):  # type: ignore[no-untyped-def]
    """Word `at` (int64) of a bitmap, without marks outside [first, last) (int64); 0 past its end."""
    low, high = first - at * WIDTH, last - at * WIDTH
    if at >= np.int64(words.shape[0]) or low >= WIDTH or high <= ZERO:
        return NONE
    found = np.uint32(words[np.uint64(at)])
    if low > ZERO:
        found = np.uint32(found & np.uint32(ALL << np.uint32(low)))
    if high < WIDTH:
        found = np.uint32(found & np.uint32(ALL >> np.uint32(WIDTH - high)))
    return found


@kernel
def count_marks(words, origin, first, last, counts):  # type: ignore[no-untyped-def]
    """Kernel: counts[block] = marks in [first, last) of the block's words, one a thread, from word `origin` on."""
    counted = cuda.shared.array(BLOCK, np.int64)
    thread = cuda.threadIdx.x
    counted[thread] = np.int64(cuda.popc(inside(words, origin + global_thread(), first, last)))
    half = BLOCK // 2
    while half > 0:
        cuda.syncthreads()
        if thread < half:
            counted[thread] += counted[thread + half]
        half //= 2
    if thread == 0:
        counts[cuda.blockIdx.x] = counted[0]


@kernel
def sum_counts(counts, every, readback):  # type: ignore[no-untyped-def]
    """Kernel of one block: counts become where each block's marks begin in a list; every, readback: their sum."""
    counted = cuda.shared.array(BLOCK, np.int64)
    thread = cuda.threadIdx.x
    pieces = counts.shape[0]
    each = (pieces + BLOCK - 1) // BLOCK
    first, last = min(thread * each, pieces), min((thread + 1) * each, pieces)
    total = ZERO
    for piece in range(first, last):
        total += counts[piece]
    counted[thread] = total
    block_sum(counted, thread)
    at = counted[thread] - total
    for piece in range(first, last):
        here = counts[piece]
        counts[piece] = at
        at += here
    if thread == BLOCK - 1:
        every[0] = counted[thread]
        readback[0] = counted[thread]


@kernel
def list_marks(words, origin, first, last, counts, every, ids, target, values):  # type: ignore[no-untyped-def]
    """Kernel: ids = the marked vertices, ascending; values = those of target there, if it has room for any.

    Nothing is listed where ids has no room for all.
    """
    if every[0] > np.int64(ids.shape[0]):
        return
    counted = cuda.shared.array(BLOCK, np.int64)
    thread = cuda.threadIdx.x
    word = origin + global_thread()
    left = inside(words, word, first, last)
    count = np.int64(cuda.popc(left))
    counted[thread] = count
    block_sum(counted, thread)
    at = counts[cuda.blockIdx.x] + counted[thread] - count
    while left != NONE:
        v = (np.uint64(word) << FIVE) | lowest_bit(left)
        left = np.uint32(left & np.uint32(left - BIT))
        ids[at] = v
        if values.shape[0] > 0:
            values[at] = target[v]
        at += np.int64(1)


@kernel
def copy_marks(words, first, last, found):  # type: ignore[no-untyped-def]
    """Kernel: found = words without marks outside [first, last)."""
    at = global_thread()
    while at < np.int64(found.shape[0]):
        found[at] = inside(words, at, first, last)
        at += all_threads()


@kernel
def move_marks(words, target):  # type: ignore[no-untyped-def]
    """Kernel: set in target what is set in words, and unset it there."""
    at = global_thread()
    while at < np.int64(words.shape[0]):
        if words[at] != NONE:
            target[at] = np.uint32(target[at] | words[at])
            words[at] = NONE
        at += all_threads()


@kernel
def reset_listed(ids, first, last, target, identity):  # type: ignore[no-untyped-def]
    """Kernel: target[ids[first:last]] = identity."""
    at = first + global_thread()
    while at < last:
        target[np.uint64(ids[at])] = identity
        at += all_threads()


@device
def second(a, b):  # type: ignore[no-untyped-def]
    """Return the second of two."""
    return b


@cache
def make_merge_listed(combine: str | None) -> DeviceKernel:
    """Kernel: target[ids] = what it was merged with values, and the ids marked; None: the values in its place.

    Of ids and values, which may be memory of the host, items first to last - 1.
    """
    merge: Callable[..., Any] = second if combine is None else MERGE[combine]

    @kernel
    def merge_listed(ids, values, first, last, target, words):  # type: ignore[no-untyped-def]
        at = first + global_thread()
        while at < last:
            v = np.uint64(ids[at])
            target[v] = merge(target[v], values[at])
            mark(words, v)
            at += all_threads()

    return merge_listed


@cache
def make_settle_slices(combine: str) -> DeviceKernel:
    """Kernel: as `make_combine_slices`; pending is who is marked or became another value than this rank's own.

    mine: where this rank's slice begins in `found`. first: the vertex with which the slices begin.
    """
    merge = MERGE[combine]

    @kernel
    def settle_slices(found, mine, ours, marks, pending, first):  # type: ignore[no-untyped-def]
        count = np.int64(ours.shape[0])
        at = global_thread()
        while at < count:
            total = found[at]
            other = at + count
            while other < np.int64(found.shape[0]):
                total = merge(total, found[other])
                other += count
            ours[at] = total
            v = np.uint64(first + at)
            if is_marked(marks, v) or found[mine + at] != ours[at]:
                mark(pending, v)
            at += all_threads()

    return settle_slices


@cache
def make_combine_slices(combine: str) -> DeviceKernel:
    """Kernel: ours = the slices of all ranks, one after another in `found`, merged in their order."""
    merge = MERGE[combine]

    @kernel
    def combine_slices(found, ours):  # type: ignore[no-untyped-def]
        count = np.int64(ours.shape[0])
        at = global_thread()
        while at < count:
            total = found[at]
            other = at + count
            while other < np.int64(found.shape[0]):
                total = merge(total, found[other])
                other += count
            ours[at] = total
            at += all_threads()

    return combine_slices
