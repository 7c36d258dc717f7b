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
_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


def make_running_sum(kind: Any) -> Any:
    """Device function: of a warp's values (uint32 or uint64), the sum up to each thread's and that of all, modulo.

    All threads of the warp call it.
    """
    signed = _SIGNED[kind]

    @device
    def running_sum(value):  # type: ignore[no-untyped-def]
        lane = cuda.threadIdx.x & LAST
        total = signed(value)
        step = 1
        while step < WARP:
            other = cuda.shfl_up_sync(_EVERYONE, total, step)
            total = signed(total + (other if lane >= step else signed(0)))
            step *= 2
        return kind(total), kind(cuda.shfl_sync(_EVERYONE, total, LAST))

    @device
    def running_sum_in_turns(value):  # type: ignore[no-untyped-def]
        box = cuda.shared.array(BLOCK, np.uint64)
        lane = cuda.threadIdx.x
        cuda.syncthreads()
        box[lane] = value
        cuda.syncthreads()
        sums = [sum(int(box[at]) for at in range(last)) & int(_BITS) for last in (lane + 1, WARP)]
        cuda.syncthreads()
        return tuple(kind(np.uint64(one)) for one in sums)

    return running_sum_in_turns if SIMULATED else running_sum


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
