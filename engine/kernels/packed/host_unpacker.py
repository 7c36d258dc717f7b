"""Decodes payloads on the cores: what a GPU's kernel does, by the decoder that reads frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.packed.flaw import flaw
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.unpack import unpack, unpack_values
from penstock.transfer.devices.device import Stream
from penstock.transfer.devices.unpacking import UnpackRequest


class HostUnpacker:
    """An `Unpacker` for the cores, and for a device that is emulated by them: it decodes at once."""

    def __init__(self) -> None:
        self._flaw: int | None = None

    def unpack(self, request: UnpackRequest, stream: Stream) -> None:
        """As `Unpacker.unpack`."""
        for chunk in range(request.first_chunk, request.last_chunk):
            first = chunk * request.chunk_edges
            last = min(request.edges, first + request.chunk_edges)
            wanted = None if request.marks is None else wanted_edges(request.marks, first, last)
            if wanted is None or wanted.any():
                self._decode(request, chunk, (first, last), wanted)

    def _decode(
        self, request: UnpackRequest, chunk: int, edges: tuple[int, int], wanted: NDArray[np.bool_] | None
    ) -> None:
        first, last = edges
        payload = self._payload(request, chunk)
        low, high = max(first, request.first_edge), min(last, request.first_edge + len(request.out))
        place = request.out[max(0, low - request.first_edge) : max(0, high - request.first_edge)]
        whole = wanted is None and high - low == last - first
        items: NDArray[Any] = place if whole else np.empty(last - first, request.out.dtype)
        largest = (unpack_values if request.values else unpack)(payload, items)
        if largest < -1:
            items[:] = 0
        elif not request.values and largest >= request.limit:
            items[items >= request.limit] = 0
        if largest < -1 or (not request.values and largest >= request.limit):
            self._flaw = chunk
        if not whole:
            part = slice(low - first, high - first)
            np.copyto(place, items[part], where=True if wanted is None else wanted[part])

    @staticmethod
    def _payload(request: UnpackRequest, chunk: int) -> NDArray[np.uint32]:
        """The words of a chunk, none where they are not all here."""
        begin, end = (int(request.starts[at]) - request.first_word for at in (chunk, chunk + 1))
        here: NDArray[np.uint32] = request.words[begin:end] if 0 <= begin <= end <= len(request.words) else []
        return np.asarray(here, np.uint32)

    def check(self) -> None:
        """As `Unpacker.check`."""
        if self._flaw is not None:
            raise flaw(self._flaw)


def wanted_edges(marks: NDArray[np.uint32], first: int, last: int) -> NDArray[np.bool_]:
    """Which of edges [first, last) are in a marked block of their chunk, which begins at `first`.

    A block of a chunk lies in two of the adjacency's blocks where chunks are not whole blocks; either may be marked.
    """
    begins = np.arange(first, last, ITEMS)
    ends = np.minimum(last, begins + ITEMS)
    marked = [
        (marks[block >> 5] >> (block & 31).astype(np.uint32)) & 1 for block in (begins // ITEMS, (ends - 1) // ITEMS)
    ]
    return np.repeat((marked[0] | marked[1]).astype(bool), ends - begins)
