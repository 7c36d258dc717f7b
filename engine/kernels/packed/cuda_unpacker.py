"""Decodes payloads on a GPU, or under the simulator: cuts a request into CUDA blocks and launches the kernel."""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import blocks_together, use
from penstock.engine.kernels.packed.block_sums import sum_before
from penstock.engine.kernels.packed.part_table import MOST_BLOCKS
from penstock.engine.kernels.packed.unpack import AT_ONCE, unpack_kernel
from penstock.engine.kernels.packed.warp import WARP, WARPS
from penstock.storage.encoding.packed_store import malformed
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.transfer.devices.device import Device, Stream, UnpackRequest

IN_PLACE = 2
"""CUDA blocks a multiprocessor that read over the link: they keep it busy, and leave room for other kernels."""
PART = 128
"""Blocks of a part at most where all are decoded: enough to pay for its table."""
MARKED, NOT_MARKED = np.bool_(True), np.bool_(False)
int64, uint64 = lru_cache(1 << 14)(np.int64), lru_cache(16)(np.uint64)
"""The same object for the same number: a launch lays out only arguments that are other objects than at the last one."""


class CudaUnpacker:
    """An `Unpacker` for one GPU."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._flaws, self._flaws_here = device.shared_array(1, np.int64)
        self._no_marks = device.array(1, np.uint32)

    def unpack(self, request: UnpackRequest, stream: Stream) -> None:
        """As `Unpacker.unpack`: one launch, or two."""
        r, marked = request, request.marks is not None
        chunks, blocks = r.last_chunk - r.first_chunk, -(-r.chunk_edges // ITEMS)
        assert 0 <= r.first_chunk <= r.last_chunk < len(r.starts), "these chunks are in the store"
        room = blocks_together() * (IN_PLACE if r.in_place else AT_ONCE)
        each = part_of(chunks, blocks, room, MOST_BLOCKS if marked or r.in_place else PART)
        parts = -(-blocks // each)
        counts = r.first_chunk, r.chunk_edges, r.edges, each, parts, chunks * parts
        shape = tuple(int64(one) for one in counts)
        launched = min(chunks * parts, room) if r.in_place else chunks * parts
        place = int64(r.first_word), int64(r.first_edge), uint64(r.limit), int64(skew_of(r.words))
        use(self._device)
        with nullcontext() if stream is None else stream:
            unpack_kernel(np.dtype(r.out.dtype), r.values, r.in_place)(
                launched, r.words, r.starts, shape, place, r.out, MARKED if marked else NOT_MARKED,
                r.marks if marked else self._no_marks, self._flaws_here,
            )  # fmt: skip
            if r.summed:
                sum_before(-(-len(r.out) // r.summed), r.out, int64(r.edges - r.first_edge), int64(r.summed))

    def check(self) -> None:
        """As `Unpacker.check`."""
        if self._flaws[0]:
            raise malformed(int(self._flaws[0]) - 1)


def part_of(chunks: int, blocks: int, room: int, most: int) -> int:
    """Blocks of a part, `most` at most: as many as leave parts enough for `room` CUDA blocks, and no warp idle."""
    parts = max(1, room // max(1, chunks))
    return min(most, -(-blocks // (parts * WARPS)) * WARPS)


def skew_of(words: Any) -> int:
    """Words of 4 bytes between the line in which an array begins and the array."""
    address = words.ctypes.data if isinstance(words, np.ndarray) else words.data.ptr
    return int(address) // 4 % WARP
