"""Sums of the values of a block before each of them, which make row offsets of degrees in their place.

A CUDA block takes one of these blocks: each of its threads adds up neighboring values, the threads add up those of all,
and each writes what is before its own.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.driver import BLOCK, cuda, kernel
from penstock.engine.kernels.packed.part_table import sum_up
from penstock.engine.kernels.packed.payload_blocks import ZERO

EACH = 16
"""Neighboring values of a thread."""


@kernel
def sum_before(values, count, block):  # type: ignore[no-untyped-def]
    """Kernel: in each block of so many of `values` (uint32), let every one be the sum of those before it, modulo.

    count: those from this one on count as 0 (int64). A CUDA block for each block.
    """
    first = np.int64(cuda.blockIdx.x) * block
    end = min(first + block, np.int64(values.shape[0]))
    before = ZERO
    while first < end:
        low = first + np.int64(cuda.threadIdx.x) * np.int64(EACH)
        high = min(low + np.int64(EACH), end)
        own, at = ZERO, low
        while at < min(high, count):
            own += np.int64(values[at])
            at += 1
        mine, whole, _ = sum_up(own, ZERO)
        mine += before - own
        at = low
        while at < high:
            value = np.int64(values[at]) if at < count else ZERO
            values[at] = np.uint32(mine & np.int64(0xFFFFFFFF))
            mine += value
            at += 1
        before += whole
        first += np.int64(BLOCK * EACH)
        cuda.syncthreads()
