"""A host device behind an emulated link: every route's code runs, is counted and can be slowed, without a GPU.

Owns an arena of its own: what a kernel reads on the "device" was copied there, or is host memory that it reads in
place (`mapped`), as zero-copy does. Counts the bytes that are copied each way. `link_bytes` per second, when given,
makes copies, and reading in place (`reading`), take as long as they would. Refuses allocations above its ceiling.
"""

from __future__ import annotations

import time
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.slot_pool import aligned_empty
from penstock.transfer.devices.device import Kind


class EmulatedDevice:
    """The CPU cores as a device with `memory_bytes` of its own behind a link.

    Attributes: `bytes_in`, `bytes_out`: bytes copied to and from the device; `used_bytes`: allocated now.
    """

    kind: Kind = "emulated"
    reads_host = False

    def __init__(
        self,
        name: str = "emulated:0",
        threads: int = 1,
        memory_bytes: int = 1 << 62,
        link_bytes: float | None = None,
    ) -> None:
        self.name = name
        self.threads = threads
        self.memory_bytes = memory_bytes
        self.bytes_in = 0
        self.bytes_out = 0
        self._link_bytes = link_bytes
        self._sizes: dict[int, int] = {}
        self._busy_until = 0.0

    @property
    def used_bytes(self) -> int:
        """Bytes allocated by `array` and not freed."""
        return sum(self._sizes.values())

    def facts(self) -> dict[str, Any]:
        """Return that it is emulated, and its link's rate."""
        return {"kind": self.kind, "link_bytes": self._link_bytes}

    def host_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items of host memory."""
        return aligned_empty(count, dtype)

    def array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items; RunError above the ceiling."""
        size = count * np.dtype(dtype).itemsize
        if self.used_bytes + size > self.memory_bytes:
            raise RunError(
                f"device {self.name} was asked for {size} bytes with {self.used_bytes} of {self.memory_bytes} in use: "
                "raise --device-memory"
            )
        array = aligned_empty(count, dtype)
        self._sizes[array.ctypes.data] = size
        weakref.finalize(array.base, self._sizes.pop, array.ctypes.data, None)
        return array

    def free(self, array: NDArray[Any]) -> None:
        """Forget an array made by `array`."""
        self._sizes.pop(array.ctypes.data, None)

    def stream(self) -> None:
        """Return None: copies happen at once, but take as long as the link says."""

    def copy_in(self, target: NDArray[Any], source: NDArray[Any], stream: None) -> None:
        """Copy now; the link is busy for as long as so many bytes take."""
        np.copyto(target, source)
        self.bytes_in += source.nbytes
        self._travel(source.nbytes)

    def copy_out(self, target: NDArray[Any], source: NDArray[Any], stream: None) -> None:
        """Copy now."""
        np.copyto(target, source)
        self.bytes_out += source.nbytes
        self._travel(source.nbytes)

    def _travel(self, size: int) -> None:
        if self._link_bytes is not None:
            self._busy_until = max(self._busy_until, time.perf_counter()) + size / self._link_bytes

    def event(self, stream: None) -> float:
        """Return when the link will have carried what was given to it so far."""
        return max(self._busy_until, time.perf_counter())

    def done(self, event: float) -> bool:
        """Return whether that time has come."""
        return time.perf_counter() >= event

    def wait(self, event: float) -> None:
        """Sleep until that time."""
        time.sleep(max(0.0, event - time.perf_counter()))

    def seconds(self, first: float, last: float) -> float:
        """Return the seconds between two events."""
        return last - first

    def use(self) -> None:
        """Do nothing: there is only one."""

    def finish(self) -> None:
        """Do nothing: kernels run at once."""

    def follow(self, event: float) -> None:
        """Wait, for kernels run when they are called."""
        self.wait(event)

    def behind(self, stream: None, event: float | None = None) -> None:
        """Do nothing: kernels launched so far are done."""

    def shared_array(self, count: int, dtype: DTypeLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return one array twice."""
        array = np.zeros(count, dtype=dtype)
        return array, array

    def to_device(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a counted copy."""
        self.bytes_in += array.nbytes
        return array.copy()

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a counted copy."""
        self.bytes_out += array.nbytes
        return array.copy()

    def mapped(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return host memory as it is: kernels read it in place."""
        return array

    def reading(self, size: int) -> tuple[float, float] | None:
        """Let the link carry `size` bytes while kernels read them: from when to when; None without a rate."""
        if self._link_bytes is None:
            return None
        began = self.event(None)
        self._travel(size)
        return began, self._busy_until

    def register(self, array: NDArray[Any]) -> None:
        """Do nothing: nothing is page-locked here."""

    def unregister(self, array: NDArray[Any]) -> None:
        """Do nothing: nothing is page-locked here."""

    def close(self) -> None:
        """Forget every array."""
        self._sizes.clear()
