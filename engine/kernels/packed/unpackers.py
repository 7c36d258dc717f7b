"""Which `Unpacker` serves a device."""

from __future__ import annotations

import numpy as np
from penstock.storage.encoding.packed_store import ALL, PackedStore, UnpackTarget, malformed, unpack_wanted
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.transfer.devices.device import Device, Stream, Unpacker, UnpackRequest


def unpacker_of(device: Device, kernels: str = "host") -> Unpacker:
    """What decodes payloads for a device; kernels: the option, by which an emulated one may run a GPU's (simulated)."""
    if device.kernels(kernels) != "cuda":
        return HostUnpacker()
    from penstock.engine.kernels.packed.cuda_unpacker import CudaUnpacker  # numba.cuda only where a device is used

    return CudaUnpacker(device)


class HostUnpacker:
    """An `Unpacker` for the cores, and for a device that is emulated by them: it decodes at once."""

    def __init__(self) -> None:
        self._flaw: int | None = None

    def unpack(self, request: UnpackRequest, stream: Stream) -> None:
        """As `Unpacker.unpack`; where chunks are not whole blocks, every block is decoded."""
        r = request
        marks = ALL if r.marks is None or r.chunk_edges % ITEMS else r.marks
        store = PackedStore(r.words, r.first_word, r.starts, r.chunk_edges, r.edges)
        target = UnpackTarget(r.out, r.first_edge, r.limit, marks)
        status = unpack_wanted(store, target, r.first_chunk, r.last_chunk, r.values)
        if status.any():
            self._flaw = r.first_chunk + int(np.flatnonzero(status)[-1])
        for first in range(0, len(r.out) if r.summed else 0, r.summed or 1):
            part = r.out[first : first + r.summed]
            part[max(0, r.edges - r.first_edge - first) :] = 0
            part[1:], part[0] = np.cumsum(part[:-1], dtype=part.dtype), 0

    def check(self) -> None:
        """As `Unpacker.check`."""
        if self._flaw is not None:
            raise malformed(self._flaw)
