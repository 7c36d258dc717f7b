"""A sweep that decodes packed edges while it gathers along them, so that no plain edge is written to memory.

Payloads are those of `storage/encoding/bitpack.py`. A step decodes some blocks of 256 ids into a ring that stays in the
first-level cache, and asks for the messages of ids that come later there, as `pull.py` does. Fusing decompression with
the loop that uses the values is Zukowski et al.'s (ICDE 2006).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import MERGE, make_absorb, prefetch
from penstock.engine.kernels.host.device_functions import ONE, degree_of, find_row, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.interface import RING, STEP_BLOCKS, TURN_BLOCKS, PackedView, VertexArrays
from penstock.engine.program.bindings import Author
from penstock.storage.encoding.payload import BLOCK, HEADER_WORDS
from penstock.storage.encoding.simd import sum_block
from penstock.storage.encoding.unpack import block_words, open_block, word_pair

STEP, TURN = np.int64(STEP_BLOCKS), np.int64(TURN_BLOCKS)
TURN_EDGES = np.int64(TURN_BLOCKS * BLOCK)
IN_RING = np.uint64(RING - 1)
AHEAD = np.int64(BLOCK)
"""Edges between a message and the one that is asked for; they are in the blocks that are decoded already."""


@inline
def decode_turn(words, payload, blocks_of, at, ring, residuals):  # type: ignore[no-untyped-def]
    """Decode blocks [k, end) of a payload to their places in the ring.

    payload: where it begins, its blocks, the mask of an id, the step's first block. Returns where the next block's data
    begins, and the largest id.
    """
    first, blocks, mask, begin = payload
    k, end = blocks_of
    kind = ring.dtype.type
    wide = np.int64(ring.itemsize // 4)
    head = first + np.int64(HEADER_WORDS)
    largest = kind(0)
    while k < end:
        description = np.int64(words[np.uint64(head + np.int64(2) * blocks * wide + k)])
        start = kind(word_pair(words, head + k * wide, wide == 2))
        step = kind(word_pair(words, head + (blocks + k) * wide, wide == 2))
        at = open_block(words, at, description, residuals)
        residuals[0] = kind(0) - step
        place = ((k - begin) * np.int64(BLOCK)) & np.int64(IN_RING)
        largest = max(largest, sum_block(residuals, start, step, mask, ring, place))
        k += np.int64(1)
    return at, largest


@inline
def clear_beyond(ring, first, last, limit):  # type: ignore[no-untyped-def]
    """Write 0 for the ids of some places of the ring that name no vertex; whether there were any (uint8)."""
    found = np.uint8(0)
    for i in range(first, last):
        at = np.uint64(i) & IN_RING
        if np.uint64(ring[at]) >= limit:
            ring[at] = 0
            found = np.uint8(1)
    return found


def make_packed_sweep(author: Author) -> Any:
    """Kernel: as `sweep` (`pull.py`), of a view whose edges are packed. Weights are not looked at.

    scratch: ids (steps, SCRATCH). flaws: uint8 (steps,), 1 where an id is not below `limit`. That payloads are sound
    is checked when they are read.
    """
    edge, cond = author.calls["edge"], author.calls["cond"]
    merge, absorb = MERGE[author.combine], make_absorb(author.combine)

    @inline
    def gather(ring, v, low, first, last, before, out_index, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        sent, base = vertices.sent, vertices.base
        total = before
        for e in range(first - low, last - low):
            prefetch(sent, np.uint64(ring[np.uint64(e + AHEAD) & IN_RING]) - base)
            u = np.uint64(ring[np.uint64(e) & IN_RING])
            value = edge(fields, scalars, sent[u - base], u, v, np.uint8(1), degree_of(out_index, u), base)
            total = merge(total, sent.dtype.type(value))
        return total

    @loop_kernel(author.key, grain=1)
    def packed_sweep(  # type: ignore[no-untyped-def]
        first_step,
        end_step,
        view,
        index,
        out_index,
        limit,
        fields,
        scalars,
        identity,
        vertices,
        scratch,
        partials,
        flaws,
    ):
        view, vertices = PackedView(*view), VertexArrays(*vertices)
        words = view.words
        partial_vertices, partial_values, partial_found = partials
        in_chunk = (view.chunk_edges + STEP * BLOCK - 1) // (STEP * BLOCK)
        for number in range(first_step, end_step):
            partial_found[number] = False
            flaws[number] = 0
            chunk, begin = number // in_chunk, (number % in_chunk) * STEP
            chunk_edge = view.e0 + chunk * view.chunk_edges
            items = min(view.chunk_edges, view.e1 - chunk_edge)
            blocks = (items + BLOCK - 1) // BLOCK
            if begin >= blocks:
                continue
            end_block = min(begin + STEP, blocks)
            ring, residuals = scratch[number, BLOCK:], scratch[number, :BLOCK]
            wide = np.int64(ring.itemsize // 4)
            payload = view.starts[chunk]
            mask = ring.dtype.type(~np.uint64(0) >> np.uint64(np.int64(64) - np.int64(words[payload + 1])))
            descriptions = payload + HEADER_WORDS + 2 * blocks * wide
            at = descriptions + blocks
            for k in range(begin):
                at += block_words(np.int64(words[descriptions + k]))
            low, high = chunk_edge + begin * BLOCK, chunk_edge + min(end_block * BLOCK, items)
            v = find_row(index, view.v0, view.v1, low)
            start = row_start(index, v)
            taken = cond(fields, scalars, v, np.int64(0), vertices.base)
            k, where = min(begin + TURN, end_block), (payload, blocks, mask, begin)
            at, largest = decode_turn(words, where, (begin, k), at, ring, residuals)
            if np.uint64(largest) >= limit:  # of what fills the last block perhaps, which nothing reads
                flaws[number] |= clear_beyond(ring, 0, min(k * BLOCK, items) - begin * BLOCK, limit)
            total, first = identity, low
            while first < high:
                stop = min(first + TURN_EDGES, high)
                following = min(k + TURN, end_block)
                if k < following:
                    at, largest = decode_turn(words, where, (k, following), at, ring, residuals)
                    if np.uint64(largest) >= limit:
                        last = min(following * BLOCK, items) - begin * BLOCK
                        flaws[number] |= clear_beyond(ring, (k - begin) * BLOCK, last, limit)
                    k = following
                while v < view.v1 and start < stop:
                    end = row_start(index, v + ONE)
                    if end > start and taken:
                        total = gather(
                            ring, v, low, max(start, first), min(end, stop), total, out_index, fields, scalars, vertices
                        )  # fmt: skip
                    if end > stop and stop < high:
                        break
                    if end > start and taken:
                        if start < low:
                            partial_vertices[number] = v
                            partial_values[number] = total
                            partial_found[number] = True
                        else:
                            absorb(vertices.target, v - vertices.base, total)
                    total, start = identity, end
                    v += ONE
                    taken = v < view.v1 and cond(fields, scalars, v, np.int64(0), vertices.base)
                first = stop

    return packed_sweep
