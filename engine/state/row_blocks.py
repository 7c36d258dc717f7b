"""Blocks of whole rows: as many neighboring vertices as have room for all their messages at once.

Partitions split rows; a program that needs a row's neighbors together gets them gathered into a buffer, block by block.
Owns the arithmetic: pure functions of the row indexes. A vertex's messages lie side by side, those of the first walk
before those of the second (where messages go both ways).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from penstock.storage.format.index import Index

MESSAGES = 1 << 22
"""Messages that a buffer has room for on the host; more where one row is longer."""
SHARE = 16
"""On a device behind a link messages of 8 bytes may take this part of the memory."""
ROWS = 1 << 20
"""Rows of a block at most on the host, where the beginning of each row's messages takes memory too."""
OFFSET_BYTES = 16
"""Bytes for each of these rows, while `offsets` computes them."""


@dataclass(frozen=True)
class RowBlock:
    """Rows [first, last) of each walk's adjacency; indexes: one or two."""

    first: int
    last: int
    indexes: tuple[Index, ...]

    def edges(self, walk: int) -> tuple[int, int]:
        """First and past-the-last edge of these rows in the adjacency of a walk."""
        return start(self.indexes[walk], self.first), start(self.indexes[walk], self.last)

    @property
    def messages(self) -> int:
        """How many messages these rows get."""
        return sum(last - first for first, last in map(self.edges, range(len(self.indexes))))


def start(index: Index, row: int) -> int:
    """Number of a row's first edge."""
    return int(index.starts(row, row + 1)[0])


def message_capacity(device_bytes: int | None) -> int:
    """Messages that a buffer should have room for; device_bytes: memory of a device behind a link, None without one.

    A partition travels over the link once for every block with rows of it, so blocks should be longer than partitions.
    """
    return MESSAGES if device_bytes is None else max(MESSAGES, device_bytes // SHARE // 8)


def block_capacity(indexes: Sequence[Index], most: int) -> int:
    """Messages that the buffer must have room for: all, or `most`, but at least the longest row's."""
    total = sum(index.edges for index in indexes)
    if total <= most:
        return max(1, total)
    longest = 0
    for first in range(0, indexes[0].vertices, ROWS):
        last = min(first + ROWS, indexes[0].vertices)
        degrees = np.zeros(last - first, dtype=np.int64)
        for index in indexes:
            index.add_lengths(first, degrees)
        longest = max(longest, int(degrees.max()))
    return max(most, longest)


def blocks(indexes: Sequence[Index], capacity: int, rows: int = ROWS) -> Iterator[RowBlock]:
    """Cut all rows into blocks of at most `capacity` messages and so many rows, as long as possible.

    No row may be longer.
    """
    indexes = tuple(indexes)
    count, first = indexes[0].vertices, 0
    while first < count:
        origin = sum(start(index, first) for index in indexes)
        low, high = first + 1, min(count, first + rows)
        while low < high:
            middle = (low + high + 1) // 2
            if sum(start(index, middle) for index in indexes) - origin <= capacity:
                low = middle
            else:
                high = middle - 1
        found = RowBlock(first, low, indexes)
        assert found.messages <= capacity, "a row is longer than the buffer"
        yield found
        first = low


def offsets(block: RowBlock, room: Sequence[NDArray[np.int64]] = ()) -> NDArray[np.int64]:
    """Where each row's messages begin in the buffer, int64 (rows + 1,).

    room: where these are put, and the rows' starts of a second index; by default in new arrays.
    """
    found = block.indexes[0].starts(block.first, block.last + 1, *room[:1])
    found -= int(found[0])
    for index in block.indexes[1:]:
        starts = index.starts(block.first, block.last + 1, *room[1:])
        found += starts
        found -= int(starts[0])
    return found


class RowOffsets:
    """The `offsets` of one block at a time, in memory that is kept until `release`.

    Arrays of these sizes, made anew for each view, leave holes in the heap, which grows by up to a fifth of a run's
    memory meanwhile (`decisions/footprint.md`).
    """

    def __init__(self) -> None:
        self._room: tuple[NDArray[np.int64], ...] = ()
        self._block: RowBlock | None = None
        self._found: NDArray[np.int64] | None = None

    def of(self, block: RowBlock) -> NDArray[np.int64]:
        """The block's offsets, valid until another block's are asked for."""
        if self._found is None or block is not self._block:
            rows = max(block.last - block.first, min(block.indexes[0].vertices, ROWS))
            if len(self._room) < len(block.indexes) or len(self._room[0]) <= rows:
                self._room = tuple(np.empty(rows + 1, np.int64) for _ in block.indexes[:2])
            self._block, self._found = block, offsets(block, self._room)
        return self._found

    def release(self) -> None:
        """Give the memory back."""
        self._room, self._block, self._found = (), None, None


def offset_bytes(vertices: int) -> int:
    """Bytes that `offsets` takes at most."""
    return OFFSET_BYTES * min(vertices, ROWS)
