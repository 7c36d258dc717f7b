"""Kernels that decode payloads on a GPU: a warp takes a block of 256 values (`storage/encoding/bitpack.py`).

A CUDA block takes a part of a chunk: neighboring blocks. Where the data of each begins is not stored: its threads add
up the sizes that the descriptions of all blocks before give, 4 bytes for 256 edges. Then each of its warps decodes a
block at a time (`block_values.py`); lines are read whole and once, as host memory is best read over a link.

A malformed block's values are 0, and so are ids that are not below the limit, so that no kernel follows them; both are
flagged. Nothing is read outside of a payload or written outside of `out`.

    shape = first chunk, edges of a chunk, edges of the adjacency, blocks of a part, parts of a chunk, all parts
    place = word and edge of the adjacency that words[0] and out[0] are, largest id, words of its line before words[0]
    payload = where it begins in `words`, its blocks, where their data ends (0: malformed), bits of an id, words before
              words[0]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda.driver import DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.packed.block_values import (
    LOW32,
    NONE,
    copy_words,
    make_decode_rows,
    make_patch,
    make_write_values,
)
from penstock.engine.kernels.packed.payload_blocks import (
    BLOCK_BITS,
    EMPTY,
    ONE,
    U32,
    ZERO,
    end_of_data,
    exceptions_of,
    find_blocks,
    is_here,
    is_wanted,
    size_of,
    size_of_share,
    sum_up,
    wanted_part,
    width_of,
)
from penstock.engine.kernels.packed.warp import ALL, LAST, WARP, WARPS, sync_warp
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import HEADER_WORDS, LANES, VALUES

MOST_BLOCKS = 1024
"""Blocks of a part at most: those of a chunk of 2^18 edges."""
MOST_WORDS = LANES * 32 + ITEMS // 4 + ITEMS
"""Words of a block's data: lanes, positions, high bits."""
ROOM = MOST_WORDS + LANES
"""Of a warp in shared memory; what takes bits out may touch the words after the last, and does not use them."""
ROOMS = WARPS * ROOM
HIGHS = WARPS * ITEMS
FACTS = 8
ALIGNMENT = 16
"""Bytes: shared memory is read and written in fours of words."""
LANE_BITS = np.uint32(3)
AT_ONCE = 5
"""CUDA blocks that a multiprocessor has registers for: 48 a thread, none spilled (32-bit ids); each takes 35 KiB."""


def make_id_at(wide: bool) -> Any:
    """Device function: number k of the first ids, or of the steps, that begin at words[at]; uint64."""

    @device
    def id_at(words, at, k):  # type: ignore[no-untyped-def]
        if wide:
            place = np.uint64(at + k + k)
            return np.uint64(words[place]) | (np.uint64(words[place + np.uint64(1)]) << U32)
        return np.uint64(words[np.uint64(at + k)])

    return id_at


def make_decode_block(kind: Any, out_kind: Any, differences: bool) -> Any:
    """Device function: a warp decodes block k of a payload, of table entry `entry`; returns whether all is well.

    written, limits: as in `block_values.py`; it writes zeros where the block is malformed.
    """
    wide, id_words = kind is np.uint64, np.int64(2 if kind is np.uint64 else 1)
    id_at, patch = make_id_at(wide), make_patch(kind)
    decode_rows, write_values = make_decode_rows(kind, differences), make_write_values(out_kind)

    @device
    def decode_block(words, payload, k, entry, rooms, out, written, limits):  # type: ignore[no-untyped-def]
        begin, blocks, end, id_bits, skew = payload
        warp = np.int64(cuda.threadIdx.x // WARP)
        base, room = np.uint32(warp * np.int64(ROOM)), np.uint32(warp * np.int64(ITEMS))
        at, description = np.int64(entry & LOW32), np.uint32(entry >> U32)
        after = at + np.int64(size_of(description))
        if after > end or (k == blocks - ONE and after != end):
            low, high, place = written
            i = low + np.int64(cuda.threadIdx.x & LAST)
            while i < high:
                out[np.uint64(place + i)] = out_kind(0)
                i += np.int64(WARP)
            return False
        first, mask = NONE, LOW32
        if differences:
            first = id_at(words, begin + np.int64(HEADER_WORDS), k)
            mask = ALL >> (np.uint64(64) - np.uint64(id_bits))
        step = id_at(words, begin + np.int64(HEADER_WORDS) + blocks * id_words, k)
        if after > at:
            copy_words(words, begin + at, after - at, skew, rooms[0], np.int64(base))
        sync_warp()
        if exceptions_of(description) > EMPTY:
            patch(rooms[0], np.uint32(base + (width_of(description) << LANE_BITS)), description, rooms[1], room)
        over = decode_rows(rooms, (base, room), description, (first, step, mask), limits)
        sync_warp()
        write_values(rooms[1], room, out, written)
        sync_warp()
        return not over

    return decode_block


def make_begin_part(id_words: Any, values: Any) -> Any:
    """Device function: what a CUDA block must know of a part, in shared memory; whether there is anything to decode.

    told: FACTS int64: the part's first and last block, the chunk's first edge, its edges, and `payload`. They are kept
    there because registers are for the values: 48 of them are enough then. All threads of the CUDA block call it.
    """

    @device
    def begin_part(words, starts, shape, first_word, part, marks, marked, told, table):  # type: ignore[no-untyped-def]
        first_chunk, chunk_edges, edges, each, parts, _ = shape
        chunk = first_chunk + part // parts
        first = chunk * chunk_edges
        items = min(chunk_edges, edges - first)
        blocks = (items + np.int64(ITEMS - 1)) >> BLOCK_BITS
        low = min(blocks, part % parts * each)
        high = min(blocks, low + each)
        if marked and low < high:
            low, high = wanted_part(marks, first, low, high)
        if low >= high:
            return False
        begin = starts[np.uint64(chunk)] - first_word
        length = starts[np.uint64(chunk + ONE)] - starts[np.uint64(chunk)]
        descriptions = np.int64(HEADER_WORDS) + np.int64(2) * blocks * id_words
        data, at = descriptions + blocks, begin + descriptions
        here = is_here(words, begin, length, data)
        a, b, c, d, size = EMPTY, EMPTY, EMPTY, EMPTY, ZERO
        if here:
            a, b = words[np.uint64(begin)], words[np.uint64(begin + ONE)]
            c, d = words[np.uint64(begin + np.int64(2))], words[np.uint64(begin + np.int64(3))]
            size = size_of_share(words, at, high)
        if cuda.threadIdx.x == 0:
            header = np.int64(a), np.int64(b), np.int64(c), np.int64(d)
            told[0], told[1], told[2], told[3], told[4], told[5] = low, high, first, items, begin, blocks
            told[6], told[7] = end_of_data(header, length, data, items, (id_words, values)), np.int64(b)
        size = sum_up(size) - size
        if here:
            find_blocks(words, at, data + size, low, high, table)
        cuda.syncthreads()
        return True

    return begin_part


def make_unpack(out_kind: Any, differences: bool) -> DeviceKernel:
    """Kernel: decode the chunks of `shape` into `out`, or, where `marked`, their marked blocks; a CUDA block a part.

    flaws int64[1]: the number of a chunk that is malformed, or has an id that is not below the limit, plus 1.
    """
    kind = np.uint64 if out_kind is np.uint64 else np.uint32
    decode_block = make_decode_block(kind, out_kind, differences)
    begin_part = make_begin_part(np.int64(2 if kind is np.uint64 else 1), np.int64(0 if differences else VALUES))
    kind_type = numba.from_dtype(np.dtype(kind))

    def unpack(words, starts, shape, place, out, marked, marks, flaws):  # type: ignore[no-untyped-def]
        table = cuda.shared.array(MOST_BLOCKS, numba.uint64)
        staged = cuda.shared.array(ROOMS, numba.uint32, ALIGNMENT)
        highs = cuda.shared.array(HIGHS, kind_type, ALIGNMENT)
        told = cuda.shared.array(FACTS, numba.int64)
        first_word, first_edge, largest, skew = place
        top = kind(min(largest, ALL if kind is np.uint64 else LOW32))
        part = np.int64(cuda.blockIdx.x)
        while part < shape[5]:
            if begin_part(words, starts, shape, first_word, part, marks, marked, told, table):
                k = told[0] + np.int64(cuda.threadIdx.x // WARP)
                while k < told[1]:
                    at = told[2] + (k << BLOCK_BITS)
                    count = min(np.int64(ITEMS), told[2] + told[3] - at)
                    if not marked or is_wanted(marks, at, at + count):
                        here = at - first_edge
                        written = max(ZERO, -here), min(count, np.int64(out.shape[0]) - here), here
                        entry = table[np.uint64(k - told[0])] if told[6] > ZERO else LOW32
                        payload = told[4], told[5], told[6], told[7], skew
                        if not decode_block(words, payload, k, entry, (staged, highs), out, written, (top, count)):
                            flaws[0] = told[2] // shape[1] + ONE
                    k += np.int64(WARPS)
            cuda.syncthreads()
            part += np.int64(cuda.gridDim.x)

    return kernel(unpack, AT_ONCE)


@cache
def unpack_kernel(out_dtype: np.dtype[Any], values: bool) -> DeviceKernel:
    """The kernel for this dtype of `out`, made once a process."""
    return make_unpack(out_dtype.type, not values)
