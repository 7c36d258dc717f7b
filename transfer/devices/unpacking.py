"""Decoding payloads on a device: what is asked for, and the protocol of what answers.

A *payload* is what a chunk's frame holds: 32-bit words, in blocks of 256 values (`storage/encoding/bitpack.py` has the
layout). The *packed store* of an adjacency is the payloads of its chunks one after another, without padding: payload c
is words[starts[c]:starts[c + 1]]. The engine implements the protocol (a kernel on a GPU, the host's decoder elsewhere);
transfer asks for the plain edges of the chunks that it has brought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.transfer.devices.device import DeviceArray, Stream


@dataclass(frozen=True, slots=True)
class UnpackRequest:
    """Chunks first_chunk .. last_chunk - 1 of an adjacency, to be decoded into an array of the device.

    words: uint32; item 0 is word `first_word` of the adjacency's packed store. starts: int64[chunks + 1] on the device,
    where every payload of the store begins. edges: of the whole adjacency, whose last chunk may be shorter than
    `chunk_edges`. out: uint32 or uint64 ids, or uint8, uint16 or uint32 values; item 0 is edge `first_edge`. limit: ids
    must be below it (the number of vertices); 0 for values: any. values: a `bits` payload (weights) instead of a
    `packed` one. marks: a bitmap of wanted blocks of the adjacency, block edge // 256 at bit (block & 31) of word
    block >> 5; None: all.
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


class Unpacker(Protocol):
    """Decodes payloads for one device."""

    def unpack(self, request: UnpackRequest, stream: Stream) -> None:
        """Start decoding on the stream (a Device stream; the host and the emulated device decode at once)."""

    def check(self) -> None:
        """Raise RunError if a payload decoded so far was malformed, or held an id that is not below its limit.

        May wait for the device only if asked after an iteration (one small word in shared host memory is looked at).
        """
