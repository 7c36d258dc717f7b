"""The read plan: which bytes of which file to read for a set of chunks. No function here touches a disk.

Chunks that are next to each other in a file, page padding aside, become one read of at most ``most_bytes``; nothing
that was not asked for is read but that padding. After zarr's _coalesce.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
MOST_BYTES = 2 << 20
LEAST_SPLIT = 1 << 20
READS_IN_FLIGHT = 8
"""Of each stripe, by default."""


@dataclass(frozen=True, slots=True)
class ReadRange:
    """One read: bytes [start, start + length) of file ``shard``, page-aligned at both ends.

    It holds the frames numbered ``members`` in the caller's arrays; the last ends at ``needed``
    bytes from the start.
    """

    shard: int
    start: int
    length: int
    needed: int
    members: tuple[int, ...]


def plan_reads(
    shard: NDArray[np.int64],
    offsets: NDArray[np.int64],
    lengths: NDArray[np.int64],
    most_bytes: int = MOST_BYTES,
) -> list[ReadRange]:
    """Return the reads that cover all frames (int64 arrays of one length), each frame once.

    A single frame longer than ``most_bytes`` is a read of its own.
    """
    reads: list[ReadRange] = []
    members: list[int] = []
    begin = end = file = -1
    for i in np.lexsort((offsets, shard)).tolist():
        first, last = int(offsets[i]), int(offsets[i] + lengths[i])
        near = file == shard[i] and first - end < PAGE
        if members and not (near and last - begin <= most_bytes):
            reads.append(_aligned(file, begin, end, members))
            members = []
        if not members:
            file, begin = int(shard[i]), first
        members.append(i)
        end = last
    if members:
        reads.append(_aligned(file, begin, end, members))
    return reads


def _aligned(shard: int, begin: int, end: int, members: list[int]) -> ReadRange:
    start = begin // PAGE * PAGE
    length = -(-(end - start) // PAGE) * PAGE
    return ReadRange(shard, start, length, end - start, tuple(members))


def split_bytes(total: int, threads: int) -> int:
    """Return the largest read for a fetch of ``total`` bytes that still feeds all threads."""
    return max(LEAST_SPLIT, min(MOST_BYTES, total // max(1, threads)))


def buffer_bytes(longest: int, most_bytes: int = MOST_BYTES) -> int:
    """Return the bytes of a buffer for every read of at most ``most_bytes``, or of one frame of ``longest`` bytes."""
    return -(-max(longest, most_bytes) // PAGE) * PAGE + PAGE


def read_threads(stripes: int, decode_threads: int, reads_in_flight: int = READS_IN_FLIGHT) -> int:
    """Return how many threads a reader has, and so how many reads are under way while nothing is decoded.

    A thread that decodes does not read, so each stripe has its share of `decode_threads` more.
    """
    return stripes * (reads_in_flight + -(-decode_threads // max(1, stripes)))
