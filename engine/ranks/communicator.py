"""What the ranks of one run can say to each other: the seam between the engine and MPI, and between it and NCCL.

Every method but `abort` and `close` is collective: all ranks call it, in the same order, with arrays of the same dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.transfer.devices.device import DeviceArray


class Communicator(Protocol):
    """The ranks of one run, as one of them has them.

    rank: this process' number, from 0. size: how many there are.
    """

    rank: int
    size: int

    def gather_numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return every rank's few numbers, of one shape: shape (size, *shape)."""

    def gather_parts(self, part: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[Any]:
        """Return all ranks' parts one after another; lengths: of each rank's part, int64 (size,)."""

    def gather_slices(self, whole: NDArray[Any], bounds: NDArray[np.int64]) -> None:
        """Fill `whole` with every rank's slice of it; rank r has items bounds[r] to bounds[r + 1] - 1."""

    def exchange_slices(self, whole: NDArray[Any], bounds: NDArray[np.int64]) -> NDArray[Any]:
        """Return what every rank has in this rank's slice, shape (size, items of the slice, ...)."""

    def broadcast(self, array: NDArray[Any], root: int) -> None:
        """Fill `array` with that of rank `root`."""

    def wait(self) -> None:
        """Return once all ranks are here; meanwhile sleep."""

    def abort(self, code: int) -> None:
        """End the processes of all ranks, with this exit code."""


class DeviceCommunicator(Protocol):
    """The ranks of one run, for arrays on the devices on which they compute.

    Arrays are this rank's device's, contiguous, of any dtype that fields and messages have; bounds and lengths are the
    host's. A call is in order with the kernels of the device: it reads what kernels launched before it wrote, and
    kernels launched after it read what it wrote (on a GPU, all are on the default stream). It need not wait for that.
    rank: this process' number, from 0. size: how many there are.
    """

    rank: int
    size: int

    def gather_equal(self, part: DeviceArray, found: DeviceArray) -> None:
        """Fill `found`, shape (size, *part.shape), with every rank's part, which are of one shape."""

    def gather_parts(self, part: DeviceArray, lengths: NDArray[np.int64], found: DeviceArray) -> None:
        """Fill `found` with all ranks' parts, one after another; lengths: of each rank's part, int64 (size,)."""

    def gather_slices(self, whole: DeviceArray, bounds: NDArray[np.int64]) -> None:
        """Fill `whole` with every rank's slice of it; rank r has items bounds[r] to bounds[r + 1] - 1."""

    def exchange_slices(self, whole: DeviceArray, bounds: NDArray[np.int64], found: DeviceArray) -> None:
        """Fill `found`, shape (size, items of this rank's slice, ...), with what every rank has in that slice."""

    def broadcast(self, array: DeviceArray, root: int) -> None:
        """Fill `array` with that of rank `root`."""

    def close(self) -> None:
        """Give back what the communicator holds on the device; no rank calls it again."""


def gather_bytes(ranks: Communicator, ours: bytes) -> list[bytes]:
    """Return what each rank has, of any length; collective."""
    lengths = ranks.gather_numbers(np.array([len(ours)], dtype=np.int64)).ravel()
    whole = ranks.gather_parts(np.frombuffer(ours, dtype=np.uint8), lengths).tobytes()
    ends = np.cumsum(lengths).tolist()
    return [whole[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of a contiguous array of the host."""
    return array.reshape(-1).view(np.uint8)


def item_bytes(array: NDArray[Any] | DeviceArray) -> int:
    """Bytes of an item along the first axis."""
    return int(array.itemsize * np.prod(array.shape[1:], dtype=np.int64))
