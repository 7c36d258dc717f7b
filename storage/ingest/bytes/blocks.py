"""Owns the cutting of content into blocks of whole lines. Refuses lines that no edge list has."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.bytes.stream import Stream

Bytes = NDArray[np.uint8]
LONGEST_LINE = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(stream: Stream, block_bytes: int) -> Iterator[Bytes]:
    """Yield the content as writable uint8 arrays of whole lines, each ending in a newline.

    A byte-order mark is dropped and a missing last newline added. Each array is new, of about
    ``block_bytes``, and its owner's to keep.

    Raises:
        InputError: a line longer than 1 MiB (binary data?), or damaged compressed data.
    """
    block_bytes = max(block_bytes, len(BYTE_ORDER_MARK))
    tail = np.empty(0, np.uint8)
    first = True
    while True:
        block = np.empty(len(tail) + block_bytes + 1, np.uint8)
        block[: len(tail)] = tail
        room = memoryview(block)[len(tail) : len(tail) + block_bytes]
        filled = len(tail) + stream.read_into(room)
        ended = filled < len(tail) + block_bytes
        if first and block[: min(3, filled)].tobytes() == BYTE_ORDER_MARK:
            block, filled = block[3:], filled - 3
        first = False
        if ended:
            if filled and block[filled - 1] != 10:
                block[filled] = 10
                filled += 1
            if filled:
                yield block[:filled]
            return
        cut = last_newline(block, filled) + 1
        if filled - cut > LONGEST_LINE:
            raise InputError(
                f"{stream.name}: a line is longer than {LONGEST_LINE} bytes, so this is no edge "
                "list in text; --format names what it is"
            )
        tail = block[cut:filled].copy()
        if cut:
            yield block[:cut]


def last_newline(block: Bytes, filled: int) -> int:
    """Where the last newline of ``block[:filled]`` is, or -1."""
    window = 4096
    while True:
        start = max(0, filled - window)
        at = block[start:filled].tobytes().rfind(b"\n")
        if at >= 0:
            return start + at
        if start == 0:
            return -1
        window *= 8
