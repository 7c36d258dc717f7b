"""What the threads of a warp do together: running sums, and numbers that wrap around.

Numba's simulator has no shuffles: there a block is one warp, and shared memory takes their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import BLOCK, SIMULATED, cuda, device

WARP = BLOCK if SIMULATED else 32
WARPS = BLOCK // WARP
LAST = WARP - 1
_EVERYONE = 0xFFFFFFFF
_SIGNED: dict[Any, Any] = {np.uint32: np.int32, np.uint64: np.int64}
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@device
def _running_sum(value):  # type: ignore[no-untyped-def]
    lane = np.int32(cuda.threadIdx.x) & np.int32(LAST)
    step = np.int32(1)
    while step < WARP:
        other = cuda.shfl_up_sync(_EVERYONE, value, step)
        if lane >= step:
            value += other
        step = np.int32(step * 2)
    return value, cuda.shfl_sync(_EVERYONE, value, LAST)


@device
def _running_sum_in_turns(value):  # type: ignore[no-untyped-def]
    box = cuda.shared.array(BLOCK, np.int64)
    cuda.syncthreads()
    box[cuda.threadIdx.x] = value
    cuda.syncthreads()
    return np.sum(box[: cuda.threadIdx.x + 1]), np.sum(box)


running_sum = _running_sum_in_turns if SIMULATED else _running_sum
"""The sum of a warp's values (int64) up to and with this thread's, and that of all. All threads of the warp call it."""


def make_running_sums(kind: Any) -> Any:
    """Device function: for four values (uint32 or uint64) of each thread of a warp, running sums, and that of all.

    They run over the first values of all threads, then over their second ones, and so on; modulo. Returned are those up
    to and with each of the four, and the last. All threads of the warp call it.
    """
    signed = _SIGNED[kind]

    @device
    def running_sums(a, b, c, d):  # type: ignore[no-untyped-def]
        lane = np.int32(cuda.threadIdx.x) & np.int32(LAST)
        a, b, c, d = signed(a), signed(b), signed(c), signed(d)
        step = np.int32(1)
        while step < WARP:
            p = cuda.shfl_up_sync(_EVERYONE, a, step)
            q = cuda.shfl_up_sync(_EVERYONE, b, step)
            r = cuda.shfl_up_sync(_EVERYONE, c, step)
            s = cuda.shfl_up_sync(_EVERYONE, d, step)
            if lane >= step:
                a, b, c, d = signed(a + p), signed(b + q), signed(c + r), signed(d + s)
            step = np.int32(step * 2)
        b = signed(b + cuda.shfl_sync(_EVERYONE, a, LAST))
        d = signed(d + cuda.shfl_sync(_EVERYONE, c, LAST))
        before = cuda.shfl_sync(_EVERYONE, b, LAST)
        c, d = signed(c + before), signed(d + before)
        return kind(a), kind(b), kind(c), kind(d), kind(cuda.shfl_sync(_EVERYONE, d, LAST))

    @device
    def running_sums_in_turns(*values):  # type: ignore[no-untyped-def]
        box = cuda.shared.array((4, BLOCK), np.uint64)
        lane = cuda.threadIdx.x
        cuda.syncthreads()
        box[:, lane] = values
        cuda.syncthreads()
        listed = [int(value) for value in box.ravel()]
        cuda.syncthreads()
        sums = [sum(listed[: BLOCK * part + lane + 1]) for part in range(4)] + [sum(listed)]
        return tuple(kind(np.uint64(one & int(ALL))) for one in sums)

    return running_sums_in_turns if SIMULATED else running_sums


def _added(one: Any, other: Any) -> Any:
    with np.errstate(over="ignore"):
        return one + other


@device
def _added_here(one, other):  # type: ignore[no-untyped-def]
    return one + other


added = device(_added) if SIMULATED else _added_here
"""The sum of two uint64, modulo 2^64."""


@device
def _sync_warp():  # type: ignore[no-untyped-def]
    cuda.syncwarp()


@device
def _sync_block():  # type: ignore[no-untyped-def]
    cuda.syncthreads()


sync_warp = _sync_block if SIMULATED else _sync_warp
"""Wait for the warp, and see what its threads have written."""
