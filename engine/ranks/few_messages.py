"""Few messages of all ranks: with their ids, from host to host, also between GPUs.

A call of NCCL takes longer than so few bytes, and the host has them as soon as it knows how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.ranks.communicator import bytes_of, item_bytes

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator

AT_ONCE = 128
"""So many messages of a rank travel with their number: 1 to 2 KiB, which take no longer than a number alone."""
NUMBER = 8  # bytes
Listed = tuple[NDArray[Any], NDArray[Any]]
"""Vertices and their messages, of the host, contiguous."""


def gather_few(ranks: Communicator, count: int, ours: Listed, found: Listed) -> NDArray[np.int64]:
    """Return how many messages each rank has; found: filled with them, rank by rank, if it has room for all.

    ours: this rank's, if found has room for them.
    """
    room, sizes = len(found[0]), [item_bytes(array) for array in found]
    each = sum(sizes)
    told = np.zeros(NUMBER + AT_ONCE * each, dtype=np.uint8)
    told[:NUMBER].view(np.int64)[0] = count
    fits = count <= room
    part = np.concatenate([bytes_of(array) for array in ours]) if fits else told[:0]
    if fits and count <= AT_ONCE:
        told[NUMBER : NUMBER + len(part)] = part
    every = ranks.gather_numbers(told)
    counts = np.ascontiguousarray(every[:, :NUMBER]).view(np.int64).ravel()
    if not 0 < counts.sum() <= room:
        return counts
    if counts.max() <= AT_ONCE:
        parts = [told[NUMBER : NUMBER + number * each] for told, number in zip(every, counts.tolist(), strict=True)]
        whole = np.concatenate(parts)
    else:
        whole = ranks.gather_parts(part, counts * each)
    _lay_out(whole, counts.tolist(), sizes, [bytes_of(array) for array in found])
    return counts


def _lay_out(whole: NDArray[np.uint8], counts: list[int], sizes: list[int], found: list[NDArray[np.uint8]]) -> None:
    """Put what comes rank by rank, ids before messages, into lists of ids and of messages."""
    first = at = 0
    for count in counts:
        for target, size in zip(found, sizes, strict=True):
            target[first * size : (first + count) * size] = whole[at : at + count * size]
            at += count * size
        first += count
