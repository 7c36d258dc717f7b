"""Device functions with which a warp writes the values of one block of a payload.

A thread takes a row, eight neighboring values. It adds up their differences, the warp's threads add up those of all
rows, and the values change places in shared memory so that neighboring threads write neighboring ones. The high bits of
exceptions reach the threads through the same memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import cuda, device
from penstock.engine.kernels.packed.payload_blocks import (
    U32,
    exceptions_of,
    high_width_of,
    width_of,
)
from penstock.engine.kernels.packed.rows import (
    add_room,
    begin_rows,
    is_over,
    largest_of,
    make_add_before,
    make_add_steps,
    make_add_up,
    make_below,
    make_residuals,
    put_room,
    rows_at,
)
from penstock.engine.kernels.packed.warp import ALL_OF, LAST, WARP, make_added, make_sum_before, sync_warp
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import LANES, ROWS

TURNS = ROWS // WARP
STEPS = ITEMS // WARP
LANE_BITS = np.uint64(3)
ONE, TWO, THREE, FIVE, LOW, BYTE = (np.uint32(number) for number in (1, 2, 3, 5, 31, ITEMS - 1))
BIT = np.uint64(1)
FIRST = np.int64(0)
COPIED = LANES * 32 + ITEMS // 4 + ITEMS + LANES
"""Words of a block's data at most, and those after it that its rows touch and do not use."""
ZERO32, WHOLE = np.int32(0), np.int32(ITEMS)
PAD_BITS = {np.uint32: np.uint64(5), np.uint64: np.uint64(4)}
"""Of so many items (as a power of 2) in shared memory the last is followed by one that is not used: no two threads that
read or write at once are at the same bank."""


def room_of(kind: Any) -> int:
    """Items of a warp in shared memory."""
    return ITEMS + (ITEMS >> int(PAD_BITS[kind]))


@device
def copy_words(words, at, count, skew, target, base):  # type: ignore[no-untyped-def]
    """target[base:base + count] = words[at:at + count], line by line. All threads of the warp call it.

    skew: words of its line before words[0]. Threads that have no word of their own copy the first or the last once
    more, so that no load waits for a branch.
    """
    last = count - np.int64(1)
    i = np.int64(cuda.threadIdx.x & LAST) - ((at + skew) & np.int64(LAST))
    while i <= last:
        i0 = max(FIRST, i)
        i1 = max(FIRST, min(last, i + np.int64(WARP)))
        i2 = max(FIRST, min(last, i + np.int64(2 * WARP)))
        i3 = max(FIRST, min(last, i + np.int64(3 * WARP)))
        i4 = max(FIRST, min(last, i + np.int64(4 * WARP)))
        i5 = max(FIRST, min(last, i + np.int64(5 * WARP)))
        word0, word1, word2 = words[np.uint64(at + i0)], words[np.uint64(at + i1)], words[np.uint64(at + i2)]
        word3, word4, word5 = words[np.uint64(at + i3)], words[np.uint64(at + i4)], words[np.uint64(at + i5)]
        target[np.uint64(base + i0)], target[np.uint64(base + i1)] = word0, word1
        target[np.uint64(base + i2)], target[np.uint64(base + i3)] = word2, word3
        target[np.uint64(base + i4)], target[np.uint64(base + i5)] = word4, word5
        i += np.int64(6 * WARP)
    sync_warp()


def make_place_of(kind: Any) -> Any:
    """Device function: where value i of a block is in the room that begins at `base`; all uint64."""
    pad_bits = PAD_BITS[kind]

    @device
    def place_of(base, i):  # type: ignore[no-untyped-def]
        return base + i + (i >> pad_bits)

    return place_of


@device
def load_exception(words, at, after, i, high_width):  # type: ignore[no-untyped-def]
    """Position and high bits (uint64) of exception i (uint32): positions begin at words[at], high bits at `after`."""
    four, bit = words[np.uint64(at + np.int64(i >> TWO))], np.uint32(i * high_width)
    place = np.uint64(after + np.int64(bit >> FIVE))
    pair = np.uint64(words[place]) | (np.uint64(words[place + np.uint64(1)]) << U32)
    position = np.uint64((four >> np.uint32((i & THREE) << THREE)) & BYTE)
    return position, (pair >> np.uint64(bit & LOW)) & ((BIT << np.uint64(high_width)) - BIT)


def make_patch(kind: Any) -> Any:
    """Device function: fill a warp's room with what exceptions add to each residual of a block; the warp calls it.

    at: index in `words` of the positions of the block's exceptions, of which it has some.
    """
    place_of, modulus = make_place_of(kind), ALL_OF[kind]
    nothing = (kind(0),) * LANES

    @device
    def patch(words, at, description, room, base):  # type: ignore[no-untyped-def]
        lane = np.uint32(cuda.threadIdx.x & LAST)
        width, high_width = np.uint64(width_of(description)), np.uint32(high_width_of(description))
        exceptions = np.uint32(exceptions_of(description))
        after = at + np.int64(np.uint32(exceptions + THREE) >> TWO)
        position, high = load_exception(words, at, after, min(lane, np.uint32(exceptions - ONE)), high_width)
        for turn in range(TURNS):
            row = np.uint64(np.uint32(lane + np.uint32(turn * WARP)))
            put_room(room, place_of(base, row << LANE_BITS), nothing)
        sync_warp()
        i = lane
        while i < exceptions:
            room[place_of(base, position)] = kind((high << width) & modulus)
            i = np.uint32(i + np.uint32(WARP))
            if i < exceptions:
                position, high = load_exception(words, at, after, i, high_width)
        sync_warp()

    return patch


def make_store(kind: Any, out_kind: Any) -> Any:
    """Device function: a warp writes what is in its room to out[place:], less what is not to be written."""
    place_of = make_place_of(kind)

    @device
    def store(room, base, out, written):  # type: ignore[no-untyped-def]
        low, high, place, _ = written
        lane = np.uint64(cuda.threadIdx.x & LAST)
        place += np.int64(lane)
        if low == ZERO32 and high == WHOLE:
            for step in range(STEPS):
                i = lane + np.uint64(step * WARP)
                out[np.uint64(place + np.int64(step * WARP))] = out_kind(room[place_of(base, i)])
        else:
            for step in range(STEPS):
                i = lane + np.uint64(step * WARP)
                if low <= np.int32(i) < high:
                    out[np.uint64(place + np.int64(step * WARP))] = out_kind(room[place_of(base, i)])

    return store


def make_write_block(kind: Any, out_kind: Any, differences: bool) -> Any:
    """Device function: a warp writes the values of one block; returns whether this thread met an id too large.

    at: where the block's data begins in `words`. head: first id, step, mask of an id. written: values [low, high) of
    the block are written, where value 0 would be in `out`, the limit. base: where the warp's room begins in `room`.
    """
    add_steps, add_up, add_before = make_add_steps(kind), make_add_up(kind), make_add_before(kind)
    below, added = make_below(kind), make_added(kind)
    patch, store, place_of = make_patch(kind), make_store(kind, out_kind), make_place_of(kind)
    sum_before, residuals = make_sum_before(kind), make_residuals(kind)

    @device
    def write_block(words, at, description, head, room, base, out, written):  # type: ignore[no-untyped-def]
        carry, step, mask = head
        low, high, _, limit = written
        width, patched, over = np.uint32(width_of(description)), exceptions_of(description) > 0, False
        low_bits = np.uint32((BIT << np.uint64(width)) - BIT)
        for turn in range(TURNS):
            row = np.uint32(np.uint32(cuda.threadIdx.x & LAST) + np.uint32(turn * WARP))
            bit, own = np.uint32(row * width), place_of(base, np.uint64(row) << LANE_BITS)
            loaded = begin_rows(words, at, width)
            if patched and turn == 0:
                patch(words, at + np.int64(LANES) * np.int64(width), description, room, base)
            one, other = rows_at(words, at, loaded, bit, width)
            values = residuals(one, other, np.uint32(bit & LOW), low_bits)
            values = add_steps(add_room(room, own, values) if patched else values, step)
            if differences:
                values = add_up(values, row == np.uint32(0))
                before, whole = sum_before(values[7])
                values = add_before(values, added(carry, before), mask)
                carry = added(carry, whole)
                if np.uint64(largest_of(values)) >= limit:
                    first = np.int32(row << THREE)
                    over |= is_over(values, limit, first, low, high)
                    values = below(values, limit)
            put_room(room, own, values)
        sync_warp()
        store(room, base, out, written)
        sync_warp()
        return over

    return write_block
