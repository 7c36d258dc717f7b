"""Few messages of all ranks: ids and messages in one gather between the memories of hosts, GPUs' too.

A call of NCCL takes longer than so few bytes, and the host has them as soon as it knows how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator

Listed = tuple[NDArray[Any], NDArray[Any]]
"""Vertices and their messages, of the host, contiguous."""


def gather_few(ranks: Communicator, ours: Listed, counts: NDArray[np.int64], found: Listed) -> None:
    """Fill `found` with what all ranks have listed, one after another; counts: messages of each rank, int64 (size,)."""
    sizes = [_item_bytes(array) for array in ours]
    every = ranks.gather_parts(np.concatenate([_bytes(array) for array in ours]), counts * sum(sizes))
    whole = [_bytes(array) for array in found]
    first = at = 0
    for count in counts.tolist():
        for target, size in zip(whole, sizes, strict=True):
            target[first * size : (first + count) * size] = every[at : at + count * size]
            at += count * size
        first += count


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _item_bytes(array: NDArray[Any]) -> int:
    """Bytes of an item along the first axis."""
    return int(array.itemsize * np.prod(array.shape[1:], dtype=np.int64))
