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
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EVERYONE = 0xFFFFFFFF
_SIGNED: dict[Any, Any] = {np.uint32: np.int32, np.uint64: np.int64}


@device
def _multiplied(value, has):  # type: ignore[no-untyped-def]
    return np.int32(value * has)  # and added to another number: one instruction


@device
def _chosen(value, has):  # type: ignore[no-untyped-def]
    return value if has != np.int32(0) else np.int64(0)


def make_running_sum(kind: Any) -> Any:
    """Device function: the sum of a warp's values (uint32 or uint64) up to and with this thread's, modulo.

    All threads of the warp call it.
    """
    signed = _SIGNED[kind]
    keep = _multiplied if kind is np.uint32 else _chosen

    @device
    def running_sum(value):  # type: ignore[no-untyped-def]
        lane = np.int32(cuda.threadIdx.x) & np.int32(LAST)
        total = signed(value)
        step = np.int32(1)
        while step < WARP:
            other = cuda.shfl_up_sync(_EVERYONE, total, step)
            has = np.int32((lane + np.int32(WARP) - step) >> np.int32(5))  # 1 if lane >= step, else 0
            total = signed(total + keep(other, has))
            step = np.int32(step * 2)
        return kind(total)

    @device
    def running_sum_in_turns(value):  # type: ignore[no-untyped-def]
        box = cuda.shared.array(BLOCK, np.uint64)
        lane = cuda.threadIdx.x
        cuda.syncthreads()
        box[lane] = value
        cuda.syncthreads()
        total = sum(int(box[at]) for at in range(lane + 1))
        cuda.syncthreads()
        return kind(np.uint64(total & int(ALL)))

    return running_sum_in_turns if SIMULATED else running_sum


def make_last_of_warp(kind: Any) -> Any:
    """Device function: the value (uint32 or uint64) of the warp's last thread. All threads of the warp call it."""
    signed = _SIGNED[kind]

    @device
    def last_of_warp(value):  # type: ignore[no-untyped-def]
        return kind(cuda.shfl_sync(_EVERYONE, signed(value), LAST))

    @device
    def last_of_warp_in_turns(value):  # type: ignore[no-untyped-def]
        box = cuda.shared.array(1, np.uint64)
        cuda.syncthreads()
        if cuda.threadIdx.x == LAST:
            box[0] = value
        cuda.syncthreads()
        return kind(box[0])

    return last_of_warp_in_turns if SIMULATED else last_of_warp


def _added(one: Any, other: Any) -> Any:
    with np.errstate(over="ignore"):
        return one + other


@device
def _added_here(one, other):  # type: ignore[no-untyped-def]
    return one + other


added = device(_added) if SIMULATED else _added_here
"""The sum of two uint64, modulo 2^64."""


def _less(one: Any, other: Any) -> Any:
    with np.errstate(over="ignore"):
        return one - other


@device
def _less_here(one, other):  # type: ignore[no-untyped-def]
    return one - other


less = device(_less) if SIMULATED else _less_here
"""One uint64 less another one, modulo 2^64."""


@device
def _sync_warp():  # type: ignore[no-untyped-def]
    cuda.syncwarp()


@device
def _sync_block():  # type: ignore[no-untyped-def]
    cuda.syncthreads()


sync_warp = _sync_block if SIMULATED else _sync_warp
"""Wait for the warp, and see what its threads have written."""
