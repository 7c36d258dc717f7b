"""What the ranks of one run can say to each other: the seam between the engine and MPI, and between it and NCCL.

Every method but `abort` and `close` is collective: all ranks call it, in the same order, with arrays of the same dtype.
"""

from __future__ import annotations

import json
import platform
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.codec import checksum

if TYPE_CHECKING:
    from penstock.engine.kernels.interface import SharedLists
    from penstock.transfer.devices.device import DeviceArray


class ArrayRanks(Protocol):
    """The ranks of one run, for arrays where they compute: of the host, or of each rank's device.

    Arrays are contiguous, of any dtype that fields and messages have; bounds are the host's. On a device a call is in
    order with its kernels: it reads what kernels launched before it wrote, and kernels launched after it read what it
    wrote (on a GPU, all are on the default stream). It need not wait for that.
    rank: this process' number, from 0. size: how many there are.
    """

    rank: int
    size: int

    def gather_slices(self, whole: DeviceArray, bounds: NDArray[np.int64]) -> None:
        """Fill `whole` with every rank's slice of it; rank r has items bounds[r] to bounds[r + 1] - 1, others stay."""

    def exchange_slices(self, whole: DeviceArray, bounds: NDArray[np.int64], found: DeviceArray) -> None:
        """Fill `found`, shape (size, items of this rank's slice, ...), with what every rank has in that slice."""

    def close(self, *, failed: bool = False) -> None:
        """Give back what is held on a device, if anything; no rank calls it again. failed: others may never come."""
        return


class Communicator(ArrayRanks, Protocol):
    """The ranks of one run, for arrays in host memory."""

    def gather_numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return every rank's few numbers, of one shape: shape (size, *shape)."""

    def wait(self) -> None:
        """Return once all ranks are here; meanwhile sleep."""

    def abort(self, code: int) -> None:
        """End the processes of all ranks, with this exit code."""


def number_of(value: Any) -> int:
    """A number that is the same for the same value in every process, for `gather_numbers`."""
    return checksum(json.dumps(value, sort_keys=True, default=str).encode())


def ranks_of_host(ranks: Communicator) -> tuple[int, ...]:
    """The ranks that are on this host, ascending; collective."""
    hosts = ranks.gather_numbers(np.array([number_of(platform.node())], dtype=np.uint64)).ravel()
    return tuple(np.flatnonzero(hosts == hosts[ranks.rank]).tolist())


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where parts of so many items begin one after another, and the last one ends, int64 (parts + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)])


def gather_parts(ranks: Communicator, part: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[Any]:
    """Return all ranks' parts one after another; lengths: of each rank's part, int64 (size,)."""
    bounds = starts_of(lengths)
    found = np.empty((int(bounds[-1]), *part.shape[1:]), dtype=part.dtype)
    found[bounds[ranks.rank] : bounds[ranks.rank + 1]] = part
    ranks.gather_slices(found, bounds)
    return found


def broadcast(ranks: ArrayRanks, array: DeviceArray, root: int) -> None:
    """Fill `array` with that of rank `root`, whose slice is all of it."""
    ranks.gather_slices(array, np.where(np.arange(ranks.size + 1) > root, len(array), 0))


def gather_bytes(ranks: Communicator, ours: bytes) -> list[bytes]:
    """Return what each rank has, of any length; collective."""
    lengths = ranks.gather_numbers(np.array([len(ours)], dtype=np.int64)).ravel()
    whole = gather_parts(ranks, np.frombuffer(ours, dtype=np.uint8), lengths).tobytes()
    ends = np.cumsum(lengths).tolist()
    return [whole[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of a contiguous array of the host."""
    return array.reshape(-1).view(np.uint8)


def item_bytes(array: NDArray[Any] | DeviceArray) -> int:
    """Bytes of an item along the first axis."""
    return int(array.itemsize) * prod(array.shape[1:])


AT_ONCE = 128
"""So many messages of a rank travel with their number: 1 to 2 KiB, which take no longer than a number alone."""
NUMBER = 8  # bytes


def gather_few(ranks: Communicator, count: int, ours: SharedLists, found: SharedLists) -> NDArray[np.int64]:
    """Return how many messages each rank has; found: filled with them, rank by rank, if it has room for all.

    ours: this rank's first, if there is room for them.
    """
    lists = found.ids, found.values
    room, sizes = len(found.ids), [array.itemsize for array in lists]
    each = sum(sizes)
    told = np.zeros(NUMBER + AT_ONCE * each, dtype=np.uint8)
    told[:NUMBER].view(np.int64)[0] = count
    fits = count <= room
    part = np.concatenate([bytes_of(array[:count]) for array in (ours.ids, ours.values)]) if fits else told[:0]
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
        whole = gather_parts(ranks, part, counts * each)
    _lay_out(whole, counts.tolist(), sizes, [bytes_of(array) for array in lists])
    return counts


def _lay_out(whole: NDArray[np.uint8], counts: list[int], sizes: list[int], found: list[NDArray[np.uint8]]) -> None:
    """Put what comes rank by rank, ids before messages, into lists of ids and of messages."""
    first = at = 0
    for count in counts:
        for target, size in zip(found, sizes, strict=True):
            target[first * size : (first + count) * size] = whole[at : at + count * size]
            at += count * size
        first += count
