"""Exchange of arrays on devices by way of host memory: of ranks on cores and on GPUs, and of GPUs without NCCL.

Every call copies out what is sent, lets the host's communicator exchange it, and copies in what has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.ranks.communicator import Communicator
    from penstock.transfer.devices.device import Device, DeviceArray


class StagedCommunicator:
    """A `DeviceCommunicator` over a `Communicator`: each verb is one of the host's, so that ranks on cores may join."""

    def __init__(self, ranks: Communicator, device: Device) -> None:
        self._ranks, self._device = ranks, device
        self.rank, self.size = ranks.rank, ranks.size

    def gather_equal(self, part: DeviceArray, found: DeviceArray) -> None:
        """Fill `found`, shape (size, *part.shape), with every rank's part, which are of one shape."""
        self._in(found, self._ranks.gather_numbers(self._out(part)))

    def gather_parts(self, part: DeviceArray, lengths: NDArray[np.int64], found: DeviceArray) -> None:
        """Fill `found` with all ranks' parts, one after another; lengths: of each rank's part, int64 (size,)."""
        self._in(found, self._ranks.gather_parts(self._out(part), lengths))

    def gather_slices(self, whole: DeviceArray, bounds: NDArray[np.int64]) -> None:
        """Fill `whole` with every rank's slice of it; rank r has items bounds[r] to bounds[r + 1] - 1."""
        first, last = int(bounds[self.rank]), int(bounds[self.rank + 1])
        host = np.empty(whole.shape, dtype=whole.dtype)
        if first < last:
            host[first:last] = self._out(whole[first:last])
        self._ranks.gather_slices(host, bounds)
        for others in (slice(0, first), slice(last, len(host))):
            if others.start < others.stop:
                self._in(whole[others], host[others])

    def exchange_slices(self, whole: DeviceArray, bounds: NDArray[np.int64], found: DeviceArray) -> None:
        """Fill `found`, shape (size, items of this rank's slice, ...), with what every rank has in that slice."""
        self._in(found, self._ranks.exchange_slices(self._out(whole), bounds))

    def broadcast(self, array: DeviceArray, root: int) -> None:
        """Fill `array` with that of rank `root`."""
        if self.rank == root:
            self._ranks.broadcast(self._out(array), root)
            return
        host = np.empty(array.shape, dtype=array.dtype)
        self._ranks.broadcast(host, root)
        self._in(array, host)

    def close(self) -> None:
        """Do nothing: nothing is kept on the device."""

    def _out(self, array: DeviceArray) -> NDArray[Any]:
        """A copy in host memory, after all kernels launched so far."""
        self._device.finish()
        return np.ascontiguousarray(self._device.to_host(array))

    def _in(self, array: DeviceArray, values: NDArray[Any]) -> None:
        """Copy values of host memory to the device, before kernels launched from now on."""
        if array.size:
            self._device.copy_in(array, np.ascontiguousarray(values).reshape(array.shape), None)
            self._device.finish()
