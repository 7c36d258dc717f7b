"""Device functions with which a warp writes the values of one block of a payload.

What a block has in memory is copied to shared memory, whole lines of 128 bytes at a time; the high bits of exceptions
are put beside it; and differences are added up with shuffles, neighboring values by neighboring threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import cuda, device
from penstock.engine.kernels.packed.payload_blocks import (
    LOW5,
    ONE,
    U32,
    WORD_BITS,
    ZERO,
    exceptions_of,
    high_width_of,
    width_of,
)
from penstock.engine.kernels.packed.warp import ALL, LAST, WARP, added, make_running_sums, sync_warp
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import LANES

STEPS = ITEMS // WARP
LANE_BITS = np.int64(3)
LOW, TWO, THREE, FOUR, FIVE, EIGHT = (np.uint32(number) for number in (31, 2, 3, 4, 5, 8))
NONE = np.uint64(0)
BIT = np.uint64(1)
LOW32 = np.uint64(0xFFFFFFFF)


@device
def copy_words(words, at, count, skew, target, base):  # type: ignore[no-untyped-def]
    """target[base:base + count] = words[at:at + count], line by line; count > 0. All threads of the warp call it.

    Threads that have no word of their own copy the first or the last once more, so that no load waits for a branch.
    """
    last = count - ONE
    i = np.int64(cuda.threadIdx.x & LAST) - ((at + skew) & np.int64(LAST))
    while i <= last:
        i0 = max(ZERO, i)
        i1 = max(ZERO, min(last, i + np.int64(WARP)))
        i2 = max(ZERO, min(last, i + np.int64(2 * WARP)))
        i3 = max(ZERO, min(last, i + np.int64(3 * WARP)))
        word0 = words[np.uint64(at + i0)]
        word1 = words[np.uint64(at + i1)]
        word2 = words[np.uint64(at + i2)]
        word3 = words[np.uint64(at + i3)]
        target[np.uint64(base + i0)] = word0
        target[np.uint64(base + i1)] = word1
        target[np.uint64(base + i2)] = word2
        target[np.uint64(base + i3)] = word3
        i += np.int64(4 * WARP)


@device
def window(staged, word, apart, bit):  # type: ignore[no-untyped-def]
    """Bits from `bit` & 31 of staged[word] on, 32 or more, those above from staged[word + apart]; uint64."""
    low, high = staged[np.uint64(word)], staged[np.uint64(word + np.int64(apart))]
    return (np.uint64(low) | (np.uint64(high) << U32)) >> np.uint64(bit & LOW5)


def make_patch(kind: Any) -> Any:
    """Device function: highs[base:base + ITEMS] = what exceptions add to a block's residuals; a warp calls it."""

    @device
    def patch(staged, at, description, highs, base):  # type: ignore[no-untyped-def]
        lane = np.int64(cuda.threadIdx.x & LAST)
        width, high_width = np.uint64(width_of(description)), high_width_of(description)
        exceptions = exceptions_of(description)
        for number in range(STEPS):
            highs[np.uint64(base + np.int64(number * WARP) + lane)] = kind(0)
        sync_warp()
        mask = (BIT << np.uint64(high_width)) - BIT
        after = at + ((exceptions + np.int64(3)) >> np.int64(2))
        i = lane
        while i < exceptions:
            position = window(staged, at + (i >> np.int64(2)), 0, i << LANE_BITS) & np.uint64(255)
            bit = i * high_width
            high = window(staged, after + (bit >> WORD_BITS), 1, bit) & mask
            highs[np.uint64(base) + position] = kind((high << width) & ALL)
            i += np.int64(WARP)
        sync_warp()

    return patch


@device
def residual(staged, base, bit, low_bits):  # type: ignore[no-untyped-def]
    """The bits `low_bits` from bit number `bit` of a lane on, of which staged[base] is the first word; all uint32."""
    word = np.uint32(base + ((bit >> FIVE) << THREE))
    low, high = staged[word], staged[np.uint32(word + EIGHT)]
    return np.uint32(((np.uint64(low) | (np.uint64(high) << U32)) >> np.uint64(bit & LOW)) & np.uint64(low_bits))


def make_residuals(kind: Any) -> Any:
    """Device function: four values of each thread less the first id: residual and step, WARP values apart.

    first: the number of the thread's first one. bit: where it is in its lane.
    """
    modulus = LOW32 if kind is np.uint32 else ALL

    @device
    def residuals(rooms, places, first, bit, widths, step):  # type: ignore[no-untyped-def]
        (staged, highs), (base, room), (low_bits, apart, patched) = rooms, places, widths
        a = np.uint64(residual(staged, base, bit, low_bits))
        b = np.uint64(residual(staged, base, np.uint32(bit + apart), low_bits))
        c = np.uint64(residual(staged, base, np.uint32(bit + TWO * apart), low_bits))
        d = np.uint64(residual(staged, base, np.uint32(bit + THREE * apart), low_bits))
        if patched:
            a |= np.uint64(highs[np.uint32(room + first)])
            b |= np.uint64(highs[np.uint32(room + first + np.uint32(WARP))])
            c |= np.uint64(highs[np.uint32(room + first + np.uint32(2 * WARP))])
            d |= np.uint64(highs[np.uint32(room + first + np.uint32(3 * WARP))])
        return (
            kind(added(a, step) & modulus),
            kind(added(b, step) & modulus),
            kind(added(c, step) & modulus),
            kind(added(d, step) & modulus),
        )

    return residuals


def make_put(out_kind: Any, differences: bool) -> Any:
    """Device function: out[place] = value, if number i of the block is to be written; whether it is an id too large."""

    @device
    def put(out, place, value, i, written):  # type: ignore[no-untyped-def]
        low, high, _, limit = written
        if i < low or i >= high:
            return False
        over = differences and np.uint64(value) >= limit
        out[np.uint64(place)] = out_kind(0) if over else out_kind(value)
        return over

    return put


def make_write_block(kind: Any, out_kind: Any, differences: bool) -> Any:
    """Device function: a warp writes the values of one block; returns whether this thread met an id too large.

    places: of the block's data in `staged`, of what its exceptions add in `highs`. head: first id, step, mask of an
    id. written: which of its values are written, from where in `out` on, below which limit.
    """
    running_sums, residuals, put = make_running_sums(kind), make_residuals(kind), make_put(out_kind, differences)
    modulus = LOW32 if kind is np.uint32 else ALL

    @device
    def write_block(rooms, places, description, head, out, written):  # type: ignore[no-untyped-def]
        carry, step, mask = head
        base, room = places
        lane = np.uint32(cuda.threadIdx.x & LAST)
        width = np.uint32(width_of(description))
        low_bits, rows = np.uint32((BIT << np.uint64(width)) - BIT), np.uint32(width * np.uint32(WARP // LANES))
        widths = low_bits, rows, exceptions_of(description) > ZERO
        place = np.int64(written[2]) + np.int64(lane)
        bit, i, over = np.uint32((lane >> THREE) * width), np.int32(lane), False
        places = np.uint32(base + (lane & np.uint32(LANES - 1))), room
        for _ in range(STEPS // 4):
            a, b, c, d = residuals(rooms, places, np.uint32(i), bit, widths, step)
            if differences:
                a, b, c, d, whole = running_sums(a if i > 0 else kind(0), b, c, d)
                a = kind(added(carry, np.uint64(a)) & mask)
                b = kind(added(carry, np.uint64(b)) & mask)
                c = kind(added(carry, np.uint64(c)) & mask)
                d = kind(added(carry, np.uint64(d)) & mask)
                carry = added(carry, np.uint64(whole)) & modulus
            over |= put(out, place, a, i, written)
            over |= put(out, place + np.int64(WARP), b, i + np.int32(WARP), written)
            over |= put(out, place + np.int64(2 * WARP), c, i + np.int32(2 * WARP), written)
            over |= put(out, place + np.int64(3 * WARP), d, i + np.int32(3 * WARP), written)
            bit = np.uint32(bit + FOUR * rows)
            i = np.int32(i + np.int32(4 * WARP))
            place += np.int64(4 * WARP)
        return over

    return write_block
