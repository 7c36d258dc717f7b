"""A host device behind an emulated link: every route's code runs, is counted and can be slowed, without a GPU.

Owns an arena of its own: what a kernel reads on the "device" was copied there, or is host memory that it reads in
place (`mapped`), as zero-copy does. Counts the bytes that are copied each way. `link_bytes` per second, when given,
makes copies, and reading in place (`reading`), take as long as they would.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.devices.device import Device, Idle, Kind
from penstock.transfer.values.rates import Rates

KERNELS = nullcontext()
"""A stream of kernels, entered to launch some: they run at once, after what they wait for, so its events are past."""


class EmulatedDevice(Device):
    """The CPU cores as a device with `memory_bytes` of its own behind a link.

    Attributes: `bytes_in`, `bytes_out`: bytes copied to and from the device; `used_bytes`: allocated now.
    """

    kind: Kind = "emulated"
    reads_host = False
    idle: Idle = (), "", ""
    ceiling = "--device-memory"

    def __init__(
        self,
        name: str = "emulated:0",
        threads: int = 1,
        memory_bytes: int = 1 << 62,
        link_bytes: float | None = None,
    ) -> None:
        super().__init__(name, threads, memory_bytes)
        self.own_bytes = memory_bytes
        self.bytes_in = self.bytes_out = 0
        self._link_bytes = link_bytes
        self.measurable = link_bytes is not None
        self._busy_until = 0.0

    def kernels(self, asked: str) -> str:
        """Return those that are asked for: a GPU's run under Numba's simulator."""
        return asked

    def rates(self, threads: int) -> Rates:
        """Return those of as many cores behind the link."""
        return Rates.emulated(threads, self._link_bytes)

    def facts(self) -> dict[str, Any]:
        """Return that it is emulated, and its link's rate."""
        return {"kind": self.kind, "link_bytes": self._link_bytes}

    def stream(self, *, of_kernels: bool = False) -> Any:
        """Return a stream of copies, or of kernels."""
        return KERNELS if of_kernels else None

    def behind(self, stream: Any, event: float | None = None) -> None:
        """Wait for the event before kernels run; copies are modelled by the link's time."""
        if stream == KERNELS and event is not None:
            self.wait(event)

    def copy_in(self, target: NDArray[Any], source: NDArray[Any], stream: Any) -> None:
        """Copy now; the link is busy for as long as so many bytes take."""
        np.copyto(target, source)
        self.bytes_in += source.nbytes
        self._travel(source.nbytes)

    def copy_out(self, target: NDArray[Any], source: NDArray[Any], stream: Any) -> None:
        """Copy now; the link is busy for as long as so many bytes take."""
        super().copy_out(target, source, stream)
        self.bytes_out += source.nbytes
        self._travel(source.nbytes)

    def _travel(self, size: int) -> None:
        if self._link_bytes is not None:
            self._busy_until = max(self._busy_until, time.perf_counter()) + size / self._link_bytes

    def event(self, stream: Any) -> float:
        """Return when the link will have carried what was given to it so far; of kernels: now."""
        if stream == KERNELS:
            return time.perf_counter()
        return max(self._busy_until, time.perf_counter())

    def done(self, event: float) -> bool:
        """Return whether that time has come."""
        return time.perf_counter() >= event

    def wait(self, event: float) -> None:
        """Sleep until that time."""
        left = event - time.perf_counter()
        if left > 0:
            time.sleep(left)

    def to_device(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a counted copy."""
        self.bytes_in += array.nbytes
        return array.copy()

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return a counted copy."""
        self.bytes_out += array.nbytes
        return array.copy()

    def overlap(self, read: Callable[[], None], launch: Callable[[], None]) -> None:
        """Launch first, as a GPU."""
        launch()
        read()

    def reading(self, size: int) -> tuple[float, float] | None:
        """Let the link carry `size` bytes while kernels read them: from when to when; None without a rate."""
        if self._link_bytes is None:
            return None
        began = self.event(None)
        self._travel(size)
        return began, self._busy_until
