"""The cheapest window on the differences of a block: where it starts, and how many bits wide it is.

Three windows are compared: from the least difference (nothing is below); from the least forward one (backward jumps are
exceptions); and around zero (roads, where neighbors are on both sides). What a width costs follows from how many
residuals are longer: their lengths in bits are a byte each, which vector code compares with a width 64 at a time.
"""

from typing import Any

import numpy as np
from penstock.storage.base.jit import jit_part
from penstock.storage.encoding.payload import BLOCK
from penstock.storage.encoding.simd_pack import bit_length, count_above, length_block, signed_length_block

POSITION_BITS = 8
"""Bits of the position of an exception."""
NONE = np.int64(0x7FFFFFFFFFFFFFFF)
"""The least of no differences."""
_U0 = np.uint64(0)
_U1 = np.uint64(1)


@jit_part
def clear_unused(items: Any, used: Any) -> None:
    """Write 0 outside of items[first:last], where ``used`` is (first, last), of 256."""
    first, last = used
    if first > 0:
        items[0] = 0
    for i in range(last, BLOCK):
        items[i] = 0


@jit_part
def _cheapest(lengths: Any, top: int, narrowest: int) -> tuple[int, int]:
    """Return (bits, width) of the cheapest width for residuals of these lengths, the largest of which is ``top``."""
    best_width = min(top, 32)
    best = BLOCK * best_width
    if top > 32:
        best += count_above(lengths, best_width) * (POSITION_BITS + top - best_width)
    for width in range(best_width - 1, narrowest - 1, -1):
        extra = count_above(lengths, width) * (POSITION_BITS + top - width)
        if extra >= best:
            break  # so it is for every narrower width
        if BLOCK * width + extra < best:
            best = BLOCK * width + extra
            best_width = width
    return best, best_width


@jit_part
def choose_window(steps: Any, used: Any, id_bits: int, least: int, forward: int, lengths: Any) -> Any:
    """Return (start, width) of the cheapest window on steps[first:last], where ``used`` is (first, last), first 0 or 1.

    ``least`` and ``forward`` are the least of them and the least that is not negative (`NONE` if all are); the other
    steps, 256 in all, repeat one of them, so that every loop is as long. ``lengths`` is room for 256 bytes.
    """
    mask = ~_U0 >> np.uint64(64 - id_bits)
    narrowest = max(0, id_bits - 32)
    best: Any = NONE
    best_width: Any = 0
    best_start: Any = _U0
    for window in range(3 if least < 0 else 1):
        if window == 1 and forward == NONE:
            continue
        if window < 2:
            start = np.uint64(least if window == 0 else forward)
            top = bit_length(length_block(steps, start, mask, lengths))
        else:
            top = bit_length(signed_length_block(steps, lengths))
            narrowest = max(1, narrowest)
        clear_unused(lengths, used)
        cost, width = _cheapest(lengths, top, narrowest)
        if window == 2:
            start = _U0 - (_U1 << np.uint64(width - 1))
        if cost < best:
            best, best_width, best_start = cost, width, start
    return best_start & mask, best_width
