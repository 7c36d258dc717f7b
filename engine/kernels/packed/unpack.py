"""Kernels that decode payloads on a GPU: a warp takes a block of 256 values (`storage/encoding/bitpack.py`).

A CUDA block takes a part of a chunk: neighboring blocks. Its threads make a table of those that are wanted
(`part_table.py`), then each of its warps decodes a block at a time (`block_values.py`).

A malformed block's values are 0, and so are ids that are not below the limit, so that no kernel follows them; both are
flagged. Nothing is read outside of a payload or written outside of `out`.

    shape = first chunk, edges of a chunk, edges of the adjacency, blocks of a part, parts of a chunk, all parts
    place = word and edge of the adjacency that words[0] and out[0] are, limit, words of its line before words[0]
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from penstock.engine.kernels.cuda.driver import DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.packed.block_values import COPIED, copy_words, make_write_block, room_of
from penstock.engine.kernels.packed.part_table import BAD, MOST_BLOCKS, NUMBER_BITS, make_find_blocks
from penstock.engine.kernels.packed.payload_blocks import BLOCK_BITS, ONE, ZERO, size_of, wanted_part, width_of
from penstock.engine.kernels.packed.warp import LAST, WARP, WARPS
from penstock.storage.encoding.payload import BLOCK as ITEMS

AT_ONCE = 4
"""CUDA blocks that a multiprocessor has registers for: 64 a thread."""
DESCRIPTION = np.uint32((1 << 24) - 1)
MOST_ITEMS = np.int64(MOST_BLOCKS * ITEMS)
NONE, WHOLE = np.int32(0), np.int32(ITEMS)


@device
def part_of_chunk(part, shape):  # type: ignore[no-untyped-def]
    """Of part number `part` of a launch: its chunk, the chunk's first edge and items, the part's blocks [low, high)."""
    first_chunk, chunk_edges, edges, each, parts, _ = shape
    chunk = first_chunk + part // parts
    first = chunk * chunk_edges
    items = min(chunk_edges, edges - first)
    blocks = (items + np.int64(ITEMS - 1)) >> BLOCK_BITS
    low = min(blocks, part % parts * each)
    return chunk, first, items, low, min(blocks, low + each)


@device
def what_is_written(edge, end, place, room):  # type: ignore[no-untyped-def]
    """Of a part that begins at an edge, in a chunk that ends at another: which items are written where, and the limit.

    room: items of `out`. The first item that is written, one more than the last, at most (int32); the first's place.
    """
    _, first_edge, limit, _ = place
    low = max(ZERO, min(MOST_ITEMS, first_edge - edge))
    high = max(ZERO, min(MOST_ITEMS, min(end, first_edge + room) - edge))
    return np.int32(low), np.int32(high), edge - first_edge, limit


@device
def part_of_block(written, number):  # type: ignore[no-untyped-def]
    """The same of block `number` (int32) of that part."""
    low, high, place, limit = written
    at = np.int32(number << np.int32(8))
    return np.int32(max(low - at, NONE)), np.int32(min(high - at, WHOLE)), place + np.int64(at), limit


@device
def write_zeros(out, written, zero):  # type: ignore[no-untyped-def]
    """A warp writes the zeros of a malformed block."""
    low, high, place, _ = written
    i = low + np.int32(cuda.threadIdx.x & LAST)
    while i < high:
        out[np.uint64(place + np.int64(i))] = zero
        i = np.int32(i + np.int32(WARP))


def make_unpack(out_kind: Any, differences: bool, in_place: bool) -> DeviceKernel:
    """Kernel: decode the chunks of `shape` into `out`, or, where `marked`, their marked blocks; a CUDA block a part.

    in_place: `words` is read over a link, so a block's data is copied to shared memory first, whole lines at a time.
    flaws int64[1]: the number of a chunk that is malformed, or has an id that is not below the limit, plus 1.
    """
    kind = np.uint64 if out_kind is np.uint64 else np.uint32
    find_blocks, write_block = make_find_blocks(kind, differences), make_write_block(kind, out_kind, differences)
    kind_type, room_items = numba.from_dtype(np.dtype(kind)), room_of(kind)
    rooms, copies = WARPS * room_items, WARPS * COPIED if in_place else 1

    def unpack(words, starts, shape, place, out, marked, marks, flaws):  # type: ignore[no-untyped-def]
        places = cuda.shared.array(MOST_BLOCKS, numba.uint32)
        descriptions = cuda.shared.array(MOST_BLOCKS, numba.uint32)
        firsts = cuda.shared.array(MOST_BLOCKS, kind_type)
        steps = cuda.shared.array(MOST_BLOCKS, kind_type)
        room = cuda.shared.array(rooms, kind_type)
        copied = cuda.shared.array(copies, numba.uint32)
        warp = np.uint32(cuda.threadIdx.x // WARP)
        base, part = np.uint64(warp) * np.uint64(room_items), np.int64(cuda.blockIdx.x)
        own_copy = np.int64(warp) * np.int64(COPIED)
        while part < shape[5]:
            chunk, first, items, low, high = part_of_chunk(part, shape)
            if marked and low < high:
                low, high = wanted_part(marks, first, low, high)
            if low < high:
                begin = starts[np.uint64(chunk)] - place[0]
                length = starts[np.uint64(chunk + ONE)] - starts[np.uint64(chunk)]
                payload = begin, length, items, (items + np.int64(ITEMS - 1)) >> BLOCK_BITS
                table, wanted = (places, descriptions, firsts, steps), (marked, marks, first)
                count, mask = find_blocks(words, payload, (low, high), wanted, table)
                written_part = what_is_written(first + (low << BLOCK_BITS), first + items, place, out.shape[0])
                entry = warp
                while entry < count:
                    described = descriptions[entry]
                    description = np.int64(described & DESCRIPTION)
                    written = part_of_block(written_part, np.int32(described >> NUMBER_BITS))
                    if width_of(description) == BAD:
                        write_zeros(out, written, out_kind(0))
                        flaws[0] = chunk + ONE
                    else:
                        head, data = (firsts[entry], steps[entry], mask), begin + np.int64(places[entry])
                        if in_place:
                            copy_words(words, data, size_of(description), place[3], copied, own_copy)
                            over = write_block(copied, own_copy, description, head, room, base, out, written)
                        else:
                            over = write_block(words, data, description, head, room, base, out, written)
                        if over:
                            flaws[0] = chunk + ONE
                    entry = np.uint32(entry + np.uint32(WARPS))
            cuda.syncthreads()
            part += np.int64(cuda.gridDim.x)

    return kernel(unpack, AT_ONCE)


@cache
def unpack_kernel(out_dtype: np.dtype[Any], values: bool, in_place: bool) -> DeviceKernel:
    """The kernel for this dtype of `out`, made once a process."""
    return make_unpack(out_dtype.type, not values, in_place)
