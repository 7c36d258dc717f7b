"""Kernels that decode payloads on a GPU: a warp takes a block of 256 values (`storage/encoding/bitpack.py`).

A CUDA block takes a part of a chunk: neighboring blocks. Where the data of each begins is not stored: its threads add
up the sizes that the descriptions of all blocks before give, 4 bytes for 256 edges. A warp then copies the data of a
block to shared memory, whole lines of 128 bytes at a time (so is host memory best read over a link, too), puts the high
bits of exceptions beside it, and adds up differences with shuffles, 32 neighboring values at a time.

A malformed block's values are 0, and so are ids that are not below the limit, so that no kernel follows them; both are
flagged. Nothing is read outside of a payload or written outside of `out`.

    shape = first chunk, edges of a chunk, edges of the adjacency, blocks of a part, parts of a chunk
    place = word and edge of the adjacency that words[0] and out[0] are, limit, words of its line before words[0]
    payload = where it begins in `words`, its blocks, where their data ends (0: malformed), words before words[0]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda.driver import DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.packed.payload_blocks import (
    BLOCK_BITS,
    LOW5,
    ONE,
    U32,
    WORD_BITS,
    ZERO,
    end_of_data,
    exceptions_of,
    find_blocks,
    high_width_of,
    is_wanted,
    size_of,
    wanted_part,
    width_of,
)
from penstock.engine.kernels.packed.warp import LAST, WARP, WARPS, added, make_running_sum, sync_warp
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import HEADER_WORDS, LANES, VALUES

MOST_BLOCKS = 1024
"""Blocks of a part at most: those of a chunk of 2^18 edges."""
STEPS = ITEMS // WARP
MOST_WORDS = LANES * 32 + ITEMS // 4 + ITEMS
"""Words of a block's data: lanes, positions, high bits."""
ROOM = MOST_WORDS + LANES
"""Of a warp in shared memory; what takes bits out may touch the words after the last, and does not use them."""
ROOMS = WARPS * ROOM
HIGHS = WARPS * ITEMS
LANE_BITS = np.int64(3)
NONE = np.uint64(0)
BIT = np.uint64(1)
LOW32 = np.uint64(0xFFFFFFFF)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


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


def make_id_at(wide: bool) -> Any:
    """Device function: number k of the first ids, or of the steps, that begin at words[at]; uint64."""

    @device
    def id_at(words, at, k):  # type: ignore[no-untyped-def]
        if wide:
            place = np.uint64(at + k + k)
            return np.uint64(words[place]) | (np.uint64(words[place + np.uint64(1)]) << U32)
        return np.uint64(words[np.uint64(at + k)])

    return id_at


def make_write_block(kind: Any, out_kind: Any, differences: bool) -> Any:
    """Device function: a warp writes the values of one block; returns whether this thread met an id too large.

    places: of the block's data in `staged`, of what its exceptions add in `highs`. head: first id, step, mask of an
    id. written: which of its values are written, from where in `out` on, below which limit.
    """
    running_sum = make_running_sum(kind)
    modulus = LOW32 if kind is np.uint32 else ALL

    @device
    def write_block(rooms, places, description, head, out, written):  # type: ignore[no-untyped-def]
        (staged, highs), (base, room) = rooms, places
        carry, step, mask = head
        low, high, place, limit = written
        lane = np.int64(cuda.threadIdx.x & LAST)
        width, patched = width_of(description), exceptions_of(description) > ZERO
        low_bits = (BIT << np.uint64(width)) - BIT
        over = False
        for number in range(STEPS):
            i = np.int64(number * WARP) + lane
            bit = (i >> LANE_BITS) * width
            word = base + ((bit >> WORD_BITS) << LANE_BITS) + (i & np.int64(LANES - 1))
            value = window(staged, word, LANES, bit) & low_bits
            if patched:
                value |= np.uint64(highs[np.uint64(room + i)])
            value = added(value, step) & modulus
            if differences:
                mine, whole = running_sum(kind(value if i > ZERO else NONE))
                value = added(carry, np.uint64(mine)) & mask
                carry = added(carry, np.uint64(whole)) & modulus
            if i >= low and i < high:
                if differences and value >= limit:
                    value, over = NONE, True
                out[np.uint64(place + i)] = out_kind(value)
        return over

    return write_block


def make_decode_block(kind: Any, out_kind: Any, differences: bool) -> Any:
    """Device function: a warp decodes block k of a payload, of table entry `entry`; returns whether all is well.

    written: as `write_block`'s; it writes zeros where the block is malformed.
    """
    wide, id_words = kind is np.uint64, np.int64(2 if kind is np.uint64 else 1)
    id_at, patch, write_block = make_id_at(wide), make_patch(kind), make_write_block(kind, out_kind, differences)

    @device
    def decode_block(words, payload, k, entry, rooms, out, written):  # type: ignore[no-untyped-def]
        begin, blocks, end, skew = payload
        warp = np.int64(cuda.threadIdx.x // WARP)
        base, room = warp * np.int64(ROOM), warp * np.int64(ITEMS)
        at, description = np.int64(entry & LOW32), np.int64(entry >> U32)
        after = at + size_of(description)
        if after > end or (k == blocks - ONE and after != end):
            low, high, place, _ = written
            i = low + np.int64(cuda.threadIdx.x & LAST)
            while i < high:
                out[np.uint64(place + i)] = out_kind(0)
                i += np.int64(WARP)
            return False
        first, mask = NONE, LOW32
        if differences:
            first = id_at(words, begin + np.int64(HEADER_WORDS), k)
            mask = ALL >> (np.uint64(64) - np.uint64(words[np.uint64(begin + ONE)]))
        step = id_at(words, begin + np.int64(HEADER_WORDS) + blocks * id_words, k)
        if after > at:
            copy_words(words, begin + at, after - at, skew, rooms[0], base)
        sync_warp()
        if exceptions_of(description) > ZERO:
            patch(rooms[0], base + np.int64(LANES) * width_of(description), description, rooms[1], room)
        over = write_block(rooms, (base, room), description, (first, step, mask), out, written)
        sync_warp()
        return not over

    return decode_block


def make_unpack(out_kind: Any, differences: bool) -> DeviceKernel:
    """Kernel: decode the chunks of `shape` into `out`, or, where `marked`, their marked blocks; a CUDA block a part.

    flaws int64[1]: the number of a chunk that is malformed, or has an id that is not below the limit, plus 1.
    """
    kind = np.uint64 if out_kind is np.uint64 else np.uint32
    decode_block = make_decode_block(kind, out_kind, differences)
    id_words, values = np.int64(2 if kind is np.uint64 else 1), np.int64(0 if differences else VALUES)
    kind_type = numba.from_dtype(np.dtype(kind))

    @kernel
    def unpack(words, starts, shape, place, out, marked, marks, flaws):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(MOST_BLOCKS, numba.uint64)
        staged = cuda.shared.array(ROOMS, numba.uint32)
        highs = cuda.shared.array(HIGHS, kind_type)
        first_chunk, chunk_edges, edges, each, parts = shape
        first_word, first_edge, limit, skew = place
        chunk = first_chunk + np.int64(cuda.blockIdx.x) // parts
        first = chunk * chunk_edges
        items = min(chunk_edges, edges - first)
        blocks = (items + np.int64(ITEMS - 1)) >> BLOCK_BITS
        low = min(blocks, np.int64(cuda.blockIdx.x) % parts * each)
        high = min(blocks, low + each)
        if marked and low < high:
            low, high = wanted_part(marks, first, low, high)
        if low < high:
            begin = starts[np.uint64(chunk)] - first_word
            length = starts[np.uint64(chunk + ONE)] - starts[np.uint64(chunk)]
            end = end_of_data(words, begin, length, items, (id_words, values))
            if end > ZERO:
                descriptions = np.int64(HEADER_WORDS) + np.int64(2) * blocks * id_words
                find_blocks(words, begin + descriptions, descriptions + blocks, (low, high), table)
            k = low + np.int64(cuda.threadIdx.x // WARP)
            while k < high:
                at = first + (k << BLOCK_BITS)
                count = min(np.int64(ITEMS), first + items - at)
                if not marked or is_wanted(marks, at, at + count):
                    here = at - first_edge
                    written = max(ZERO, -here), min(count, np.int64(out.shape[0]) - here), here, limit
                    entry = table[np.uint64(k - low)] if end > ZERO else LOW32
                    if not decode_block(words, (begin, blocks, end, skew), k, entry, (staged, highs), out, written):
                        flaws[0] = chunk + ONE
                k += np.int64(WARPS)

    return unpack


@cache
def unpack_kernel(out_dtype: np.dtype[Any], values: bool) -> DeviceKernel:
    """The kernel for this dtype of `out`, made once a process."""
    return make_unpack(out_dtype.type, not values)
