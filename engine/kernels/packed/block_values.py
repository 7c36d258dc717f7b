"""Device functions with which a warp writes the values of one block of a payload.

What a block has in memory is copied to shared memory, whole lines of 128 bytes at a time; the high bits of exceptions
are put beside it; and differences are added up with shuffles, neighboring values by neighboring threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import cuda, device
from penstock.engine.kernels.packed.payload_blocks import (
    EMPTY,
    ONE,
    U32,
    ZERO,
    exceptions_of,
    high_width_of,
    width_of,
)
from penstock.engine.kernels.packed.warp import (
    ALL,
    LAST,
    WARP,
    added,
    less,
    make_last_of_warp,
    make_running_sum,
    sync_warp,
)
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import LANES

STEPS = ITEMS // WARP
TURNS = ITEMS // LANES // WARP
"""Rows of LANES values that a thread has of a block: one on a GPU."""
LOW, TWO, THREE, FIVE = (np.uint32(number) for number in (31, 2, 3, 5))
ONE_WORD = np.uint32(1)
NO = np.int32(0)
NONE = np.uint64(0)
BIT = np.uint64(1)
LOW32 = np.uint64(0xFFFFFFFF)


@device
def copy_words(words, at, count, skew, target, base):  # type: ignore[no-untyped-def]
    """target[base:base + count] = words[at:at + count], line by line; count > 0. All threads of the warp call it.

    Six lines are on their way at once: the data of nearly every block.
    """
    last = np.int32(count - ONE)
    i = np.int32(np.int32(cuda.threadIdx.x & LAST) - np.int32((at + skew) & np.int64(LAST)))
    while i <= last:
        here, there = at + np.int64(i), np.int64(base + i)
        has1, has2, has3 = i + WARP <= last, i + 2 * WARP <= last, i + 3 * WARP <= last
        has4, has5 = i + 4 * WARP <= last, i + 5 * WARP <= last
        word0 = words[np.uint64(here)] if i >= NO else EMPTY
        word1 = words[np.uint64(here + np.int64(WARP))] if has1 else EMPTY
        word2 = words[np.uint64(here + np.int64(2 * WARP))] if has2 else EMPTY
        word3 = words[np.uint64(here + np.int64(3 * WARP))] if has3 else EMPTY
        word4 = words[np.uint64(here + np.int64(4 * WARP))] if has4 else EMPTY
        word5 = words[np.uint64(here + np.int64(5 * WARP))] if has5 else EMPTY
        if i >= NO:
            target[np.uint64(there)] = word0
        if has1:
            target[np.uint64(there + np.int64(WARP))] = word1
        if has2:
            target[np.uint64(there + np.int64(2 * WARP))] = word2
        if has3:
            target[np.uint64(there + np.int64(3 * WARP))] = word3
        if has4:
            target[np.uint64(there + np.int64(4 * WARP))] = word4
        if has5:
            target[np.uint64(there + np.int64(5 * WARP))] = word5
        i = np.int32(i + np.int32(6 * WARP))


@device
def bits_from(staged, word, bit):  # type: ignore[no-untyped-def]
    """32 bits, and others above, from bit number `bit` after staged[word] on; all uint32, uint64 returned."""
    word = np.uint32(word + (bit >> FIVE))
    low, high = staged[word], staged[np.uint32(word + ONE_WORD)]
    return (np.uint64(low) | (np.uint64(high) << U32)) >> np.uint64(bit & LOW)


def make_patch(kind: Any) -> Any:
    """Device function: highs[base:base + ITEMS] = what exceptions add to a block's residuals; a warp calls it."""

    @device
    def patch(staged, at, description, highs, base):  # type: ignore[no-untyped-def]
        lane = np.uint32(cuda.threadIdx.x & LAST)
        for number in range(STEPS):
            highs[np.uint32(base + lane + np.uint32(number * WARP))] = kind(0)
        sync_warp()
        width, high_width = np.uint64(width_of(description)), high_width_of(description)
        exceptions = exceptions_of(description)
        mask = (BIT << np.uint64(high_width)) - BIT
        after = np.uint32(at + (np.uint32(exceptions + THREE) >> TWO))
        i = lane
        while i < exceptions:
            position = np.uint32(bits_from(staged, at, np.uint32(i << THREE)) & np.uint64(255))
            high = bits_from(staged, after, np.uint32(i * high_width)) & mask
            highs[np.uint32(base + position)] = kind((high << width) & ALL)
            i = np.uint32(i + np.uint32(WARP))
        sync_warp()

    return patch


@device
def residual(staged, word, shift, low_bits):  # type: ignore[no-untyped-def]
    """The bits `low_bits` from bit `shift` of staged[word] on, those above from the lane's next word; all uint64."""
    low, high = staged[word], staged[word + np.uint64(LANES)]
    return ((np.uint64(low) | (np.uint64(high) << U32)) >> shift) & low_bits


def make_residuals(kind: Any) -> Any:
    """Device function: the LANES residuals of a row, which begin in staged[word], each with `step` added.

    patched: whether what highs[place:] holds is added to them.
    """
    modulus = LOW32 if kind is np.uint32 else ALL

    @device
    def residuals(staged, word, shift, low_bits, step, highs, place, patched):  # type: ignore[no-untyped-def]
        a = residual(staged, word, shift, low_bits)
        b = residual(staged, word + np.uint64(1), shift, low_bits)
        c = residual(staged, word + np.uint64(2), shift, low_bits)
        d = residual(staged, word + np.uint64(3), shift, low_bits)
        e = residual(staged, word + np.uint64(4), shift, low_bits)
        f = residual(staged, word + np.uint64(5), shift, low_bits)
        g = residual(staged, word + np.uint64(6), shift, low_bits)
        h = residual(staged, word + np.uint64(7), shift, low_bits)
        if patched:
            a |= np.uint64(highs[place])
            b |= np.uint64(highs[place + np.uint64(1)])
            c |= np.uint64(highs[place + np.uint64(2)])
            d |= np.uint64(highs[place + np.uint64(3)])
            e |= np.uint64(highs[place + np.uint64(4)])
            f |= np.uint64(highs[place + np.uint64(5)])
            g |= np.uint64(highs[place + np.uint64(6)])
            h |= np.uint64(highs[place + np.uint64(7)])
        return (
            kind(added(a, step) & modulus),
            kind(added(b, step) & modulus),
            kind(added(c, step) & modulus),
            kind(added(d, step) & modulus),
            kind(added(e, step) & modulus),
            kind(added(f, step) & modulus),
            kind(added(g, step) & modulus),
            kind(added(h, step) & modulus),
        )

    return residuals


def make_sums(kind: Any) -> Any:
    """Device functions: running sums of a row; each of a row's values plus another one, under a mask; modulo."""
    modulus = LOW32 if kind is np.uint32 else ALL

    @device
    def plus(one, other):  # type: ignore[no-untyped-def]
        return kind(added(np.uint64(one), np.uint64(other)) & modulus)

    @device
    def sums_of(row):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f, g, h = row
        b = plus(a, b)
        c = plus(b, c)
        d = plus(c, d)
        e = plus(d, e)
        f = plus(e, f)
        g = plus(f, g)
        return a, b, c, d, e, f, g, plus(g, h)

    @device
    def each_plus(row, other, mask):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f, g, h = row
        return (
            kind(plus(a, other) & mask),
            kind(plus(b, other) & mask),
            kind(plus(c, other) & mask),
            kind(plus(d, other) & mask),
            kind(plus(e, other) & mask),
            kind(plus(f, other) & mask),
            kind(plus(g, other) & mask),
            kind(plus(h, other) & mask),
        )

    return sums_of, each_plus


@device
def largest_of(row):  # type: ignore[no-untyped-def]
    """The largest of a row's values."""
    a, b, c, d, e, f, g, h = row
    return max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))


@device
def put_row(target, place, row):  # type: ignore[no-untyped-def]
    """target[place:place + LANES] = a row's values."""
    a, b, c, d, e, f, g, h = row
    target[place] = a
    target[place + np.uint64(1)] = b
    target[place + np.uint64(2)] = c
    target[place + np.uint64(3)] = d
    target[place + np.uint64(4)] = e
    target[place + np.uint64(5)] = f
    target[place + np.uint64(6)] = g
    target[place + np.uint64(7)] = h


@device
def clear_large(target, place, top, count):  # type: ignore[no-untyped-def]
    """Put 0 in the place of what is above `top` in target[place:place + LANES]; whether the first `count` had such."""
    over = False
    for number in range(LANES):
        if target[place + np.uint64(number)] > top:
            target[place + np.uint64(number)] = 0
            over = over or np.int64(number) < count
    return over


def make_decode_rows(kind: Any, differences: bool) -> Any:
    """Device function: a warp decodes one block into `highs`; returns whether this thread met an id too large.

    places: of the block's data in `staged`; of what its exceptions add, and of its values then, in `highs`. head: first
    id, step, mask of an id. limits: the largest id; how many values the block has.
    """
    running_sum, last_of_warp = make_running_sum(kind), make_last_of_warp(kind)
    residuals, (sums_of, each_plus) = make_residuals(kind), make_sums(kind)
    modulus = LOW32 if kind is np.uint32 else ALL

    @device
    def decode_rows(rooms, places, description, head, limits):  # type: ignore[no-untyped-def]
        (staged, highs), (base, room), (first, step, mask), (top, count) = rooms, places, head, limits
        width, patched, over = width_of(description), exceptions_of(description) > EMPTY, False
        low_bits, masked, before = (BIT << np.uint64(width)) - BIT, kind(mask & modulus), kind(first & modulus)
        for turn in range(TURNS):
            number = np.uint32(np.uint32(turn * WARP) + np.uint32(cuda.threadIdx.x & LAST))
            bit = np.uint32(number * width)
            word = np.uint64(np.uint32(base + ((bit >> FIVE) << THREE)))
            place = np.uint64(np.uint32(room + (number << THREE)))
            row = residuals(staged, word, np.uint64(bit & LOW), low_bits, step, highs, place, patched)
            if differences:
                a, b, c, d, e, f, g, h = row
                row = sums_of((a if number > EMPTY else kind(0), b, c, d, e, f, g, h))
                mine = running_sum(row[7])
                others = added(np.uint64(before), less(np.uint64(mine), np.uint64(row[7])))
                whole = each_plus(row, kind(others & modulus), masked)
                put_row(highs, place, whole)
                if largest_of(whole) > top:
                    over = clear_large(highs, place, top, count - np.int64(number << THREE)) or over
                if TURNS > 1:
                    before = kind(added(np.uint64(before), np.uint64(last_of_warp(mine))) & modulus)
            else:
                put_row(highs, place, row)
        return over

    return decode_rows


def make_write_values(out_kind: Any) -> Any:
    """Device function: out[place + i] = values[room + i], for i in [low, high) of a block; a warp calls it."""

    @device
    def write_values(values, room, out, written):  # type: ignore[no-untyped-def]
        low, high, place = written
        lane = np.uint32(cuda.threadIdx.x & LAST)
        source, target = np.uint64(np.uint32(room + lane)), place + np.int64(lane)
        if low == ZERO and high == np.int64(ITEMS):
            for number in range(STEPS):
                i = np.int64(number * WARP)
                out[np.uint64(target + i)] = out_kind(values[source + np.uint64(i)])
        else:
            for number in range(STEPS):
                i = np.int64(number * WARP)
                if np.int64(lane) + i >= low and np.int64(lane) + i < high:
                    out[np.uint64(target + i)] = out_kind(values[source + np.uint64(i)])

    return write_values
