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
ALL_OF: dict[Any, Any] = {np.uint32: np.uint64(0xFFFFFFFF), np.uint64: ALL}
"""The largest number of a type, as uint64."""


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


def make_sum_before(kind: Any) -> Any:
    """Device function: of a value (uint32 or uint64) of each thread of a warp, the sum before this thread's, and all.

    Modulo. All threads of the warp call it.
    """
    signed = _SIGNED[kind]

    @device
    def sum_before(value):  # type: ignore[no-untyped-def]
        lane = np.int32(cuda.threadIdx.x) & np.int32(LAST)
        own = signed(value)
        whole = own
        step = np.int32(1)
        while step < WARP:
            other = cuda.shfl_up_sync(_EVERYONE, whole, step)
            if lane >= step:
                whole = signed(whole + other)
            step = np.int32(step * 2)
        return kind(signed(whole - own)), kind(cuda.shfl_sync(_EVERYONE, whole, LAST))

    @device
    def sum_before_in_turns(value):  # type: ignore[no-untyped-def]
        box = cuda.shared.array(BLOCK, np.uint64)
        cuda.syncthreads()
        box[cuda.threadIdx.x] = value
        cuda.syncthreads()
        listed = [int(one) for one in box]
        sums = sum(listed[: cuda.threadIdx.x]), sum(listed)
        return tuple(kind(np.uint64(one & int(ALL)) & ALL_OF[kind]) for one in sums)

    return sum_before_in_turns if SIMULATED else sum_before


def make_added(kind: Any) -> Any:
    """Device function: the sum of two uint32 or uint64, modulo."""

    @device
    def added(one, other):  # type: ignore[no-untyped-def]
        return kind(one + other)

    @device
    def added_in_python(one, other):  # type: ignore[no-untyped-def]
        return kind(int(one) + int(other) & int(ALL_OF[kind]))

    return added_in_python if SIMULATED else added


@device
def _sync_warp():  # type: ignore[no-untyped-def]
    cuda.syncwarp()


@device
def _sync_block():  # type: ignore[no-untyped-def]
    cuda.syncthreads()


sync_warp = _sync_block if SIMULATED else _sync_warp
"""Wait for the warp, and see what its threads have written."""


@device
def from_lane(value, lane):  # type: ignore[no-untyped-def]
    """A uint32 of another thread of the warp; all threads of the warp call it. On a GPU only."""
    return np.uint32(cuda.shfl_sync(_EVERYONE, np.int32(value), lane))
