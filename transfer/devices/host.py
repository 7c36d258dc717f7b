"""The host as a device: its kernels read host memory in place, so every copy is a plain one.

Owns the trivial implementation of the device verbs; a device that is emulated (`emulated.py`) differs in its link.
"""

from __future__ import annotations

import time
import weakref
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.slot_pool import aligned_empty
from penstock.transfer.devices.device import Idle, Kind
from penstock.transfer.values.rates import Rates


class HostDevice:
    """The CPU cores of this machine, or a share of them.

    `threads` is how many cores its kernels use, `memory_bytes` the ceiling on what `array`
    allocates. `ceiling`: the option that sets it.
    """

    kind: Kind = "host"
    reads_host = True
    ceiling = "--host-memory"
    own_bytes: int | None = None
    idle: Idle = ("link", "emulated"), "the CPU reads edges where they are", "emulated or cuda:0"
    glance = 2.5
    runs_ahead = False
    capability = None
    measurable = True

    def __init__(self, name: str = "cpu", threads: int = 1, memory_bytes: int = 1 << 62) -> None:
        self.name = name
        self.threads = threads
        self.memory_bytes = memory_bytes
        self._sizes: dict[int, int] = {}

    @property
    def used_bytes(self) -> int:
        """Bytes allocated by `array` and not freed."""
        return sum(self._sizes.values())

    def kernels(self, asked: str) -> str:
        """Return those of the cores."""
        return "host"

    def rates(self, threads: int) -> Rates:
        """Return those of as many cores."""
        return Rates.host(threads)

    def range(self, label: str) -> AbstractContextManager[None]:
        """Do nothing: no tool shows them."""
        return nullcontext()

    def facts(self) -> dict[str, Any]:
        """Return that it is the host."""
        return {"kind": self.kind}

    def host_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items; pages are touched when written."""
        return aligned_empty(count, dtype)

    def array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items; RunError above the ceiling."""
        size = count * np.dtype(dtype).itemsize
        if self.used_bytes + size > self.memory_bytes:
            raise RunError(
                f"device {self.name} was asked for {size} bytes with {self.used_bytes} of {self.memory_bytes} in use: "
                f"raise {self.ceiling}"
            )
        array = aligned_empty(count, dtype)
        self._sizes[array.ctypes.data] = size
        weakref.finalize(array.base, self._sizes.pop, array.ctypes.data, None)
        return array

    def free(self, array: NDArray[Any]) -> None:
        """Forget an array made by `array`."""
        self._sizes.pop(array.ctypes.data, None)

    def stream(self, *, of_kernels: bool = False) -> Any:
        """Return None: the host does everything at once and in order."""
        return None

    def launched(self) -> float:
        """Return the clock: kernels are done when their call returns."""
        return time.perf_counter()

    def copy_within(self, target: NDArray[Any], source: NDArray[Any], stream: Any) -> None:
        """Copy now."""
        np.copyto(target.view(np.uint8), source.view(np.uint8))

    def copy_in(self, target: NDArray[Any], source: NDArray[Any], stream: Any) -> None:
        """Copy now."""
        np.copyto(target, source)

    def copy_out(self, target: NDArray[Any], source: NDArray[Any], stream: Any) -> None:
        """Copy now."""
        np.copyto(target, source)

    def event(self, stream: Any) -> float:
        """Return the clock: what was asked for before it is done."""
        return time.perf_counter()

    def done(self, event: float) -> bool:
        """Return True."""
        return True

    def wait(self, event: float) -> None:
        """Return at once."""

    def seconds(self, first: float, last: float) -> float:
        """Return the seconds between two events."""
        return last - first

    def use(self) -> None:
        """Do nothing: the host is always current."""

    def finish(self) -> None:
        """Do nothing: kernels are done when their call returns."""

    def follow(self, event: float) -> None:
        """Wait, for kernels run when they are called."""
        self.wait(event)

    def behind(self, stream: Any, event: float | None = None) -> None:
        """Do nothing: kernels are done when their call returns."""

    def shared_array(self, count: int, dtype: DTypeLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return one array twice."""
        array = np.zeros(count, dtype=dtype)
        return array, array

    def to_device(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return array

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return array

    def mapped(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return array

    def reading(self, size: int) -> tuple[float, float] | None:
        """Return None: there is no link."""
        return None

    def unregister(self, array: NDArray[Any]) -> None:
        """Do nothing: nothing is page-locked here."""

    def register(self, array: NDArray[Any]) -> None:
        """Do nothing: the host copies from any memory at full speed."""

    def close(self) -> None:
        """Forget every array."""
        self._sizes.clear()
