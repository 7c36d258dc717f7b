"""The table of a part's wanted blocks, which the threads of a CUDA block make together: a thread a block of the part.

Where the data of a block begins is not stored: the threads add up the sizes that the descriptions of all blocks before
give, 4 bytes for 256 edges. What does not depend on another word is loaded at the same time, for a load takes longer
than all sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import BLOCK, cuda, device
from penstock.engine.kernels.packed.payload_blocks import (
    BLOCK_BITS,
    LONGEST,
    ONE,
    U32,
    ZERO,
    end_of_data,
    is_wanted,
    may_be_payload,
    size_of,
)
from penstock.engine.kernels.packed.warp import ALL, ALL_OF, WARP, WARPS, running_sum
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import HEADER_WORDS, VALUES

MOST_BLOCKS = BLOCK
"""Blocks of a part at most."""
NUMBER_BITS = np.uint32(24)
"""In the table a description has its block's number in the part above so many bits."""
BAD = np.int64(63)
"""The description of a malformed block: a width that cannot be."""
_COUNT_BITS = np.int64(48)
_SIZES = np.int64((1 << 48) - 1)


@device
def sizes_before(words, at, low):  # type: ignore[no-untyped-def]
    """This thread's share of the words that the data of blocks [0, low) takes (int64); at: the first description."""
    total = ZERO
    last = low - ONE
    i = np.int64(cuda.threadIdx.x)
    while i < low:
        i1, i2, i3 = i + np.int64(BLOCK), i + np.int64(2 * BLOCK), i + np.int64(3 * BLOCK)
        word0 = np.int64(words[np.uint64(at + i)])
        word1 = np.int64(words[np.uint64(at + min(i1, last))])
        word2 = np.int64(words[np.uint64(at + min(i2, last))])
        word3 = np.int64(words[np.uint64(at + min(i3, last))])
        total += size_of(word0)
        total += size_of(word1) if i1 < low else ZERO
        total += size_of(word2) if i2 < low else ZERO
        total += size_of(word3) if i3 < low else ZERO
        i += np.int64(4 * BLOCK)
    return total


@device
def sum_up(value, other):  # type: ignore[no-untyped-def]
    """Sums over a CUDA block's threads (int64, >= 0): of `value` up to this thread's, of all, and of all `other`.

    All threads call it.
    """
    totals = cuda.shared.array(WARPS, np.int64)
    others = cuda.shared.array(WARPS, np.int64)
    warp = cuda.threadIdx.x // WARP
    mine, whole = running_sum(value)
    _, other_whole = running_sum(other)
    totals[warp] = whole
    others[warp] = other_whole
    cuda.syncthreads()
    all_values, all_others = ZERO, ZERO
    for number in range(WARPS):
        mine += totals[number] if number < warp else ZERO
        all_values += totals[number]
        all_others += others[number]
    return mine, all_values, all_others


def make_id_at(wide: bool) -> Any:
    """Device function: number k of the first ids, or of the steps, that begin at words[at]; uint32, or uint64."""

    @device
    def id_at(words, at, k):  # type: ignore[no-untyped-def]
        if wide:
            place = np.uint64(at + k + k)
            return np.uint64(words[place]) | (np.uint64(words[place + np.uint64(1)]) << U32)
        return words[np.uint64(at + k)]

    return id_at


def make_find_blocks(kind: Any, differences: bool) -> Any:
    """Device function: fill the table of a part's wanted blocks; how many there are, and the mask of an id.

    payload: where it begins in `words`, its words, items and blocks. part: its blocks [low, high), BLOCK at most.
    wanted: whether only marked ones, the bitmap, the edge of the adjacency at which the chunk begins.
    table: where the data of a block begins in the payload; description, and number of the block in the part; first id;
    step. All threads call it.
    """
    wide = kind is np.uint64
    id_at, id_words = make_id_at(wide), np.int64(2 if wide else 1)
    values, modulus = np.int64(0 if differences else VALUES), ALL_OF[kind]

    @device
    def find_blocks(words, payload, part, wanted, table):  # type: ignore[no-untyped-def]
        begin, length, items, blocks = payload
        low, high = part
        places, descriptions, firsts, steps = table
        k = low + np.int64(cuda.threadIdx.x)
        here, before, end, id_bits, first, step = BAD, ZERO, ZERO, ONE, kind(0), kind(0)
        if may_be_payload(words, begin, length, blocks, id_words):
            head, mine = np.uint64(begin), min(k, high - ONE)
            header = np.int64(words[head]), np.int64(words[head + np.uint64(1)]), np.int64(words[head + np.uint64(2)])
            data = np.int64(words[head + np.uint64(3)])
            at = begin + np.int64(HEADER_WORDS)
            if differences:
                first = id_at(words, at, mine)
            step = id_at(words, at + blocks * id_words, mine)
            at += np.int64(2) * blocks * id_words
            here = np.int64(words[np.uint64(at + mine)])
            before = sizes_before(words, at, low)
            id_bits = header[1] - values
            end = end_of_data((header[0], header[1], header[2], data), length, items, (id_words, values))
        marked, marks, edge = wanted
        size, count = ZERO, ZERO
        if k < high:
            size, edge = size_of(here), edge + (k << BLOCK_BITS)
            taken = min(np.int64(ITEMS), items - (k << BLOCK_BITS))
            count = ONE if not marked or is_wanted(marks, edge, edge + taken) else ZERO
        mine, whole, earlier = sum_up(size + (count << _COUNT_BITS), before)
        after = np.int64(HEADER_WORDS) + blocks * (id_words + id_words + ONE) + earlier + (mine & _SIZES)
        if count > ZERO:
            bad = end == ZERO or after > end or (k == blocks - ONE and after != end)
            entry = np.uint64((mine >> _COUNT_BITS) - ONE)
            described = np.uint32(BAD if bad else here)
            descriptions[entry] = np.uint32(described | np.uint32(np.uint32(cuda.threadIdx.x) << NUMBER_BITS))
            places[entry] = np.uint32(min(after - size, LONGEST))
            firsts[entry] = first
            steps[entry] = step
        cuda.syncthreads()
        mask = ALL >> np.uint64(np.int64(64) - id_bits) if end > ZERO else ALL
        return whole >> _COUNT_BITS, kind(mask & modulus)

    return find_blocks
