"""Owns the cutting of content into blocks of whole lines. Refuses lines that no edge list has."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.source import LONGEST_VALUE

Bytes = NDArray[np.uint8]
LONGEST_LINE = LONGEST_VALUE
NEWLINE = 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(stream: Stream, block_bytes: int) -> Iterator[Bytes]:
    """Yield the content as writable uint8 arrays of whole lines, each ending in a newline.

    A byte-order mark is dropped and a missing last newline added. Each array is new, of about
    ``block_bytes``, and its owner's to keep.

    Raises:
        InputError: a line longer than 1 MiB (binary data?), or damaged compressed data.
    """
    tail = np.empty(0, np.uint8)
    first = True
    while True:
        block, filled, ended = next_block(stream, tail, max(block_bytes, len(BYTE_ORDER_MARK)))
        if first:
            block, filled = without_mark(block, filled)
        first = False
        if ended:
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


def next_block(stream: Stream, tail: Bytes, block_bytes: int) -> tuple[Bytes, int, bool]:
    """The tail and more content; how many bytes, and whether that was all (then it ends in a newline)."""
    block = np.empty(len(tail) + block_bytes + 1, np.uint8)
    block[: len(tail)] = tail
    filled = len(tail) + stream.read_into(memoryview(block)[len(tail) : -1])
    ended = filled < len(block) - 1
    if ended and filled and block[filled - 1] != NEWLINE:
        block[filled] = NEWLINE
        filled += 1
    return block, filled, ended


def without_mark(block: Bytes, filled: int) -> tuple[Bytes, int]:
    """The first block of some content, and how many bytes it has, without a byte-order mark."""
    marked = block[: min(3, filled)].tobytes() == BYTE_ORDER_MARK
    return (block[3:], filled - 3) if marked else (block, filled)


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


def lines_of(block: Bytes, at: int = 0) -> Iterator[tuple[int, str, int]]:
    """The number (from 1), the text, and the end in bytes of every line that ends in the block, from byte ``at`` on."""
    number = 0
    while (end := _next_newline(block, at)) >= 0:
        number += 1
        yield number, block[at:end].tobytes().decode("utf-8", "replace"), end + 1
        at = end + 1


def line_at(block: Bytes, at: int) -> str:
    """The text of the line that begins at byte ``at``."""
    return next(lines_of(block, at))[1]


def _next_newline(block: Bytes, at: int) -> int:
    """Where the first newline from ``at`` on is, or -1."""
    window = 256
    while True:
        end = block[at : at + window].tobytes().find(b"\n")
        if end >= 0:
            return at + end
        if at + window >= len(block):
            return -1
        window *= 8
