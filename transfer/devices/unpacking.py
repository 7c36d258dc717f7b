"""Decoding packed edges on a device: what is wanted of it, and the protocol of what does it.

Packed edges are the payloads of chunks (`storage/encoding/bitpack.py`), one after another. The engine implements the
protocol, because kernels are its own; transfer decides what is decoded, where to, and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.transfer.devices.device import DeviceArray, Stream


@dataclass(frozen=True, slots=True)
class UnpackRequest:
    """Chunks [first_chunk, last_chunk) of one array of an adjacency, to be decoded.

    words: uint32; item 0 is word `first_word` of the array's payloads. starts: on the device, int64[chunks + 1]: the
    word at which the payload of each chunk begins. chunk_edges: edges of a chunk; edges: of the whole adjacency, whose
    last chunk may be shorter. out: ids (uint32, uint64) or values (uint8, uint16, uint32); item 0 is edge `first_edge`.
    limit: ids must be below it; 0 for values. values: whether these are weights (`bits`) and not ids (`packed`). marks:
    bitmap of the adjacency's blocks of 256 edges that are wanted, uint32 words; None: all. in_place: whether the words
    are host memory, read over the link, while other kernels are at work.
    """

    words: DeviceArray
    first_word: int
    starts: DeviceArray
    first_chunk: int
    last_chunk: int
    chunk_edges: int
    edges: int
    out: DeviceArray
    first_edge: int
    limit: int
    values: bool
    marks: DeviceArray | None
    in_place: bool = False


class Unpacker(Protocol):
    """What decodes packed edges on one device."""

    def unpack(self, request: UnpackRequest, stream: Stream) -> None:
        """Start decoding on a stream; a device without streams decodes at once."""

    def check(self) -> None:
        """Raise RunError if what was decoded so far was malformed, or had an id that is not below its limit.

        It looks at what the device has passed; it does not wait.
        """
