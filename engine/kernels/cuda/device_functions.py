"""Small functions that kernels on a GPU share: rows of an index, bits of a bitmap, threads of a launch."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels import shared_functions
from penstock.engine.kernels.cuda.driver import BLOCK, cuda, device
from penstock.engine.kernels.shared_functions import make_combine, make_degree_of, make_find_row
from penstock.engine.program.combiners import COMBINERS

FIVE = np.uint64(5)
ONE = np.uint64(1)
LOW = np.uint64(31)
NONE = np.uint32(0)
BIT = np.uint32(1)
MANY_BITS = 3

row_start = device(shared_functions.row_start)
degree_of = device(make_degree_of(row_start))
find_row = device(make_find_row(row_start))
find_part = device(shared_functions.find_part)


@device
def is_marked(words, at):  # type: ignore[no-untyped-def]
    """Whether bit `at` (uint64) of a bitmap of 32-bit words is set."""
    return (words[at >> FIVE] >> np.uint32(at & LOW)) & BIT != NONE


@device
def mark(words, at):  # type: ignore[no-untyped-def]
    """Set bit `at` (uint64), atomically; cheap when it is set already."""
    bit = np.uint32(BIT << np.uint32(at & LOW))
    if words[at >> FIVE] & bit == NONE:
        cuda.atomic.or_(words, at >> FIVE, bit)


@device
def mark_new(words, at):  # type: ignore[no-untyped-def]
    """Set bit `at` (uint64), atomically, without a look before; whether it was unset."""
    bit = np.uint32(BIT << np.uint32(at & LOW))
    return cuda.atomic.or_(words, at >> FIVE, bit) & bit == NONE


@device
def unmark(words, at):  # type: ignore[no-untyped-def]
    """Unset bit `at` (uint64), atomically."""
    cuda.atomic.and_(words, at >> FIVE, np.uint32(~np.uint32(BIT << np.uint32(at & LOW))))


@device
def lowest_bit(word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a non-zero uint32, as uint64."""
    return np.uint64(cuda.ffs(word) - 1)


@device
def are_dense(word):  # type: ignore[no-untyped-def]
    """Whether most of a block's words, one a thread, have many bits; all threads call it, and wait for each other.

    Then neighboring threads take neighboring bits, whose vertices' values lie in one line of memory. A thread that
    walks its own word reads a line for each bit: `apply` of a BFS that reaches 12 M of 33 M vertices took 2.2 ms on an
    H200. With few bits most of the threads would find none.
    """
    return cuda.syncthreads_count(np.int32(cuda.popc(word) >= MANY_BITS)) > BLOCK // 2


@device
def global_thread():  # type: ignore[no-untyped-def]
    """Number of this thread in the whole launch, int64."""
    return np.int64(cuda.blockIdx.x) * np.int64(BLOCK) + np.int64(cuda.threadIdx.x)


@device
def all_threads():  # type: ignore[no-untyped-def]
    """Threads of the whole launch, int64."""
    return np.int64(cuda.gridDim.x) * np.int64(BLOCK)


@device
def wait_for_all(arrivals, goal):  # type: ignore[no-untyped-def]
    """Wait until every block of a `kernel_together` is here and sees what all have written; return the next goal.

    All threads call it. arrivals int64[1], 0 at launch; goal: blocks of the launch at the first call. One thread a
    block counts and waits, fenced on both sides; the fence also empties its multiprocessor's first-level cache, so that
    plain reads after it are not stale (the barrier of CUDA's cooperative groups does the same).
    """
    cuda.syncthreads()
    if cuda.gridDim.x > 1 and cuda.threadIdx.x == 0:
        cuda.threadfence()
        count = cuda.atomic.add(arrivals, 0, np.int64(1)) + np.int64(1)
        while count < goal:
            count = cuda.atomic.add(arrivals, 0, np.int64(0))
        cuda.threadfence()
    cuda.syncthreads()
    return goal + np.int64(cuda.gridDim.x)


@device
def tell_sum(box, value, place):  # type: ignore[no-untyped-def]
    """place[0] += the values of a block's threads; all of them call it. box int64[1], shared."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        box[0] = np.int64(0)
    cuda.syncthreads()
    if value > np.int64(0):
        cuda.atomic.add(box, 0, value)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and box[0] > np.int64(0):
        cuda.atomic.add(place, 0, box[0])


@device
def atomic_min(target, at, value):  # type: ignore[no-untyped-def]
    """Lower target[at] to value; what it was."""
    return cuda.atomic.min(target, at, value)


@device
def atomic_max(target, at, value):  # type: ignore[no-untyped-def]
    """Raise target[at] to value; what it was."""
    return cuda.atomic.max(target, at, value)


@device
def atomic_add(target, at, value):  # type: ignore[no-untyped-def]
    """Add value to target[at]; what it was."""
    return cuda.atomic.add(target, at, value)


@device
def atomic_or(target, at, value):  # type: ignore[no-untyped-def]
    """Set value's bits in target[at]; what it was."""
    return cuda.atomic.or_(target, at, value)


_ATOMICS = {"add": atomic_add, "min": atomic_min, "max": atomic_max, "or_": atomic_or}
COMBINE = {
    name: device(make_combine(device(combiner.changes), _ATOMICS[combiner.atomic]))
    for name, combiner in COMBINERS.items()
}
"""Combine a value into an entry that several threads write; whether that changes it."""
MERGE = {name: device(combiner.merge) for name, combiner in COMBINERS.items()}
