"""The packed encoding: neighbor ids as bit-packed differences in blocks of 256, for vector code.

A chunk's ids become differences to the id before, whatever the row. Every block stores its first id, the difference its
range starts at (``step``), and the width at which most differences less ``step`` fit; the few that do not (row jumps)
keep their high bits aside, as in Zukowski's PFOR. Sums are taken modulo 2^id_bits, so a row jump backwards is one large
positive difference and sorted rows need no sign bit. Weights and degrees use the same blocks without differences
(``bits``): a value is step plus residual. Blocks do not depend on each other: a GPU can decode them one by one. The
lanes are Lemire and Boytsov's SIMD-BP128, the fixed block of a fixed layout is Afroozeh and Boncz's FastLanes.

Payload, little-endian 32-bit words (W = 1 for uint32 ids, 2 for uint64):

    [edges, id_bits, blocks, words]  first ids: blocks * W  steps: blocks * W  descriptions: blocks
    then block by block: 8 * width words of lanes | positions, a byte each | high bits, packed
    then 8 zero words that the last block's vector loads may touch

A description is width | high_width << 6 | exceptions << 12. unpack.py reads it.

Three windows on the differences of a block are compared: from the least difference (nothing is below); from the least
forward one (backward jumps are exceptions); and around zero (roads, where neighbors are on both sides). What a width
costs follows from how many residuals are longer, which vector code counts 64 at a time.
"""

from typing import Any

import numpy as np
from penstock.storage.base.jit import jit, jit_part
from penstock.storage.encoding.payload import BLOCK, HEADER_WORDS, LANES, VALUES
from penstock.storage.encoding.simd_pack import (
    bit_length,
    count_above,
    count_bits,
    length_block,
    lowest_bit,
    mask_above,
    pack_block,
    residual_block,
    signed_length_block,
    step_block,
    value_block,
)

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


_U32 = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)


@jit_part
def _put(words: Any, at: int, wide: bool, value: Any) -> None:
    words[at] = np.uint32(value & _LOW32)
    if wide:
        words[at + 1] = np.uint32(value >> _U32)


@jit_part
def _differences(ids: Any, first: int, count: int, out: Any) -> Any:
    """Fill out[1:count] with signed differences; return the least, and the least that is >= 0."""
    if count == BLOCK:
        return step_block(ids, first, out)
    least = NONE
    forward = np.uint64(NONE)
    for i in range(1, count):
        step = np.int64(np.uint64(ids[first + i]) - np.uint64(ids[first + i - 1]))
        out[i] = step
        least = min(least, step)
        forward = min(forward, np.uint64(step))
    return least, np.int64(forward)


@jit_part
def _values(values: Any, first: int, count: int, out: Any) -> Any:
    """Fill out[:count] with the values; return the least, twice."""
    if count == BLOCK:
        least = value_block(values, first, out)
        return least, least
    least = NONE
    for i in range(count):
        out[i] = np.int64(values[first + i])
        least = min(least, out[i])
    return least, least


@jit_part
def _put_bits(words: Any, at: int, bit: int, value: Any) -> None:
    """Or up to 32 bits into zeroed words, at a bit offset."""
    shifted = value << np.uint64(bit & 31)
    words[at + (bit >> 5)] |= np.uint32(shifted & _LOW32)
    if shifted >> _U32 != _U0:
        words[at + (bit >> 5) + 1] |= np.uint32(shifted >> _U32)


@jit_part
def _pack_exceptions(residuals: Any, width: int, words: Any, at: int) -> Any:
    """Write positions and high bits of what ``width`` cuts off; return (count, high_width, end)."""
    limit = (_U1 << np.uint64(width)) - _U1
    all_bits = _U0
    for i in range(BLOCK):
        all_bits |= residuals[i]
    if all_bits <= limit:
        return 0, 0, at
    count = 0
    for first in range(0, BLOCK, 64):
        count += count_bits(mask_above(residuals, first, limit))
    high_width = bit_length(all_bits >> np.uint64(width))
    highs = at + (count + 3) // 4
    end = highs + (count * high_width + 31) // 32
    for i in range(at, end):
        words[i] = np.uint32(0)
    k = 0
    for first in range(0, BLOCK, 64):
        left = mask_above(residuals, first, limit)
        while left != _U0:
            position = first + lowest_bit(left)
            left &= left - _U1
            _put_bits(words, at, k * POSITION_BITS, np.uint64(position))
            _put_bits(words, highs, k * high_width, residuals[position] >> np.uint64(width))
            k += 1
    return count, high_width, end


@jit_part
def _residuals(items: Any, first: int, count: int, id_bits: int, work: Any, differences: bool) -> Any:
    """Fill work's residuals of one block; return its (step, width). See ``pack`` for work."""
    steps, residuals, lengths = work
    begin = 1 if differences else 0
    if count <= begin:
        residuals[:] = _U0
        return _U0, 0
    if differences:
        least, forward = _differences(items, first, count, steps)
    else:
        least, forward = _values(items, first, count, steps)
    steps[0] = steps[begin]
    for i in range(count, BLOCK):
        steps[i] = steps[begin]
    used = (begin, count)
    step, width = choose_window(steps, used, id_bits, least, forward, lengths)
    mask = ~_U0 >> np.uint64(64 - id_bits)
    residual_block(steps, step, mask, residuals)
    clear_unused(residuals, used)
    return step, width


@jit
def pack(items: Any, words: Any, differences: bool) -> Any:
    """Pack a chunk of items; return the number of words used.

    Parameters
    ----------
    items : ndarray of uint8, uint16, uint32 or uint64, (edges,)
        Ids (uint32 or uint64, below 2^63) or values (at most 32 bits).
    words : ndarray of uint32, (payload_words(edges, itemsize),)
        Is filled with the payload.
    differences : bool
        Whether to pack each item's difference to the one before (ids) or the item itself (weights, degrees).

    References
    ----------
    M. Zukowski, S. Heman, N. Nes, P. Boncz: Super-Scalar RAM-CPU Cache Compression. ICDE 2006.
    D. Lemire, L. Boytsov: Decoding billions of integers per second through vectorization. SPE 45 (1), 2015.
    A. Afroozeh, P. Boncz: The FastLanes Compression Layout. PVLDB 16 (9), 2023.
    """
    edges = len(items)
    wide = items.itemsize == 8
    w = 2 if wide else 1
    largest = _U0
    for i in range(edges):
        largest = max(largest, np.uint64(items[i]))
    id_bits = max(1, bit_length(largest))
    blocks = (edges + BLOCK - 1) // BLOCK
    residuals = np.empty(BLOCK, np.uint64)
    work = (np.empty(BLOCK, np.int64), residuals, np.empty(BLOCK, np.uint8))
    at = HEADER_WORDS + blocks * (2 * w + 1)
    for k in range(blocks):
        first = k * BLOCK
        step, width = _residuals(items, first, min(BLOCK, edges - first), id_bits, work, differences)
        _put(words, HEADER_WORDS + k * w, wide, np.uint64(items[first]))
        _put(words, HEADER_WORDS + (blocks + k) * w, wide, step)
        pack_block(residuals, width, words, at)
        exceptions, high_width, end = _pack_exceptions(residuals, width, words, at + LANES * width)
        words[HEADER_WORDS + 2 * blocks * w + k] = width | high_width << 6 | exceptions << 12
        at = end
    words[at : at + LANES] = 0
    words[0] = edges
    words[1] = id_bits if differences else id_bits | VALUES
    words[2] = blocks
    words[3] = at
    return at + LANES
