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
"""

from typing import Any

import numpy as np
from penstock.storage.base.jit import jit
from penstock.storage.encoding.payload import BLOCK, HEADER_WORDS, LANES, VALUES
from penstock.storage.encoding.simd import bit_length

_POSITION_BITS = 8
_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U32 = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)


@jit
def _put(words: Any, at: int, wide: bool, value: Any) -> None:
    words[at] = np.uint32(value & _LOW32)
    if wide:
        words[at + 1] = np.uint32(value >> _U32)


@jit
def _differences(ids: Any, first: int, count: int, out: Any) -> Any:
    """Fill out[1:count] with signed differences; return the least, and the least that is >= 0."""
    least = np.int64(0x7FFFFFFFFFFFFFFF)
    least_forward = np.int64(0x7FFFFFFFFFFFFFFF)
    before = np.uint64(ids[first])
    for i in range(1, count):
        now = np.uint64(ids[first + i])
        step = np.int64(now - before)
        before = now
        out[i] = step
        least = min(least, step)
        if step >= 0:
            least_forward = min(least_forward, step)
    return least, least_forward


@jit
def _values(values: Any, first: int, count: int, out: Any) -> Any:
    """Fill out[:count] with the values; return the least, twice."""
    least = np.int64(0x7FFFFFFFFFFFFFFF)
    for i in range(count):
        out[i] = np.int64(values[first + i])
        least = min(least, out[i])
    return least, least


@jit
def _cheapest(histogram: Any, narrowest: int) -> tuple[int, int]:
    """Return (bits, width) of the cheapest width for residuals counted by bit length."""
    top = 64
    while top > 0 and histogram[top] == 0:
        top -= 1
    best_width = min(top, 32)
    exceptions = 0
    for bits in range(best_width + 1, top + 1):
        exceptions += histogram[bits]
    best = BLOCK * best_width + exceptions * (_POSITION_BITS + top - best_width)
    for width in range(best_width - 1, narrowest - 1, -1):
        exceptions += histogram[width + 1]
        cost = BLOCK * width + exceptions * (_POSITION_BITS + top - width)
        if cost < best:
            best = cost
            best_width = width
    return best, best_width


@jit
def _count_lengths(steps: Any, count: int, step: Any, mask: Any, histogram: Any) -> None:
    histogram[:] = 0
    for i in range(count):
        histogram[bit_length((np.uint64(steps[i]) - step) & mask)] += 1


@jit
def _count_signed_lengths(steps: Any, count: int, histogram: Any) -> None:
    """Count by the bits of a two's complement number."""
    histogram[:] = 0
    for i in range(count):
        step = steps[i]
        if step == 0:
            histogram[0] += 1
        else:
            bits = bit_length(np.uint64(step if step >= 0 else -step - 1)) + 1
            histogram[min(bits, 64)] += 1


@jit
def _choose(steps: Any, count: int, id_bits: int, mask: Any, least: int, forward: int) -> Any:
    """Return (step, width) of the cheapest of three windows on the differences.

    From the least difference (nothing below); from the least forward one (backward jumps are
    exceptions); and around zero (roads, where neighbors are on both sides).
    """
    histogram = np.zeros(65, np.int64)
    narrowest = max(0, id_bits - 32)
    _count_lengths(steps, count, np.uint64(least), mask, histogram)
    best, best_width = _cheapest(histogram, narrowest)
    best_step = np.uint64(least)
    if least < 0:
        if forward < np.int64(0x7FFFFFFFFFFFFFFF):
            _count_lengths(steps, count, np.uint64(forward), mask, histogram)
            cost, width = _cheapest(histogram, narrowest)
            if cost < best:
                best = cost
                best_width = width
                best_step = np.uint64(forward)
        _count_signed_lengths(steps, count, histogram)
        cost, width = _cheapest(histogram, max(1, narrowest))
        if cost < best:
            best_width = width
            best_step = _U0 - (_U1 << np.uint64(width - 1))
    return best_step & mask, best_width


@jit
def _pack_lanes(residuals: Any, width: int, words: Any, at: int) -> None:
    """Write the low bits of 256 residuals, value i in lane i % 8 at bit (i // 8) * width."""
    for i in range(LANES * width):
        words[at + i] = np.uint32(0)
    if width == 0:
        return
    mask = (_U1 << np.uint64(width)) - _U1
    for row in range(BLOCK // LANES):
        bit = row * width
        word = at + (bit >> 5) * LANES
        shift = np.uint64(bit & 31)
        crosses = (bit & 31) + width > 32
        for lane in range(LANES):
            value = (residuals[row * LANES + lane] & mask) << shift
            words[word + lane] |= np.uint32(value & _LOW32)
            if crosses:
                words[word + LANES + lane] |= np.uint32(value >> _U32)


@jit
def _put_bits(words: Any, at: int, bit: int, value: Any) -> None:
    """Or up to 32 bits into zeroed words, at a bit offset."""
    shifted = value << np.uint64(bit & 31)
    words[at + (bit >> 5)] |= np.uint32(shifted & _LOW32)
    if shifted >> _U32 != _U0:
        words[at + (bit >> 5) + 1] |= np.uint32(shifted >> _U32)


@jit
def _pack_exceptions(residuals: Any, width: int, words: Any, at: int) -> Any:
    """Write positions and high bits of what ``width`` cuts off; return (count, high_width, end)."""
    count = 0
    all_high = _U0
    shift = np.uint64(width)
    for i in range(BLOCK):
        high = residuals[i] >> shift
        count += high != _U0
        all_high |= high
    high_width = bit_length(all_high)
    highs = at + (count + 3) // 4
    end = highs + (count * high_width + 31) // 32
    for i in range(at, end):
        words[i] = np.uint32(0)
    k = 0
    for i in range(BLOCK):
        high = residuals[i] >> shift
        if high != _U0:
            _put_bits(words, at, k * _POSITION_BITS, np.uint64(i))
            _put_bits(words, highs, k * high_width, high)
            k += 1
    return count, high_width, end


@jit
def _residuals(items: Any, first: int, count: int, id_bits: int, mask: Any, work: Any) -> Any:
    """Fill work's residuals of one block; return its (step, width). See ``pack`` for work."""
    steps, residuals, differences = work
    residuals[:] = _U0
    begin = 1 if differences else 0
    if count <= begin:
        return _U0, 0
    if differences:
        least, forward = _differences(items, first, count, steps)
    else:
        least, forward = _values(items, first, count, steps)
    step, width = _choose(steps[begin:], count - begin, id_bits, mask, least, forward)
    for i in range(begin, count):
        residuals[i] = (np.uint64(steps[i]) - step) & mask
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
    mask = ~_U0 >> np.uint64(64 - id_bits)
    blocks = (edges + BLOCK - 1) // BLOCK
    residuals = np.zeros(BLOCK, np.uint64)
    work = (np.zeros(BLOCK, np.int64), residuals, differences)
    at = HEADER_WORDS + blocks * (2 * w + 1)
    for k in range(blocks):
        first = k * BLOCK
        step, width = _residuals(items, first, min(BLOCK, edges - first), id_bits, mask, work)
        _put(words, HEADER_WORDS + k * w, wide, np.uint64(items[first]))
        _put(words, HEADER_WORDS + (blocks + k) * w, wide, step)
        _pack_lanes(residuals, width, words, at)
        exceptions, high_width, end = _pack_exceptions(residuals, width, words, at + LANES * width)
        words[HEADER_WORDS + 2 * blocks * w + k] = width | high_width << 6 | exceptions << 12
        at = end
    words[at : at + LANES] = 0
    words[0] = edges
    words[1] = id_bits if differences else id_bits | VALUES
    words[2] = blocks
    words[3] = at
    return at + LANES
