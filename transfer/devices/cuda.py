"""One GPU as a device: memory under a hard ceiling, page-locked host memory, streams and events, through CuPy.

Owns every allocation on the GPU that is ours, and what host memory is page-locked for it. Arrays come from one CuPy
pool with the ceiling as its limit; kernels and CuPy's own operations share the default stream, copies have streams of
their own, and events order the two. Refuses, in one sentence, to be made where there is no CuPy or no such device.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base import hardware_info
from penstock.storage.base.errors import InputError, RunError, brief, installing
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.base.stage_clock import stage
from penstock.transfer.devices.cuda_memory import GRAIN, ReservedDeviceArray
from penstock.transfer.devices.device import Device, Idle, Kind
from penstock.transfer.values.rates import Rates

INSTALL = f"install it with: {installing('cuda')}"


def count() -> int:
    """How many CUDA devices there are; 0 where CuPy is not installed or sees none."""
    if importlib.util.find_spec("cupy") is None or not _driver_sees():
        return 0
    with stage("imports"):
        import cupy

    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def may_be_here() -> bool:
    """Whether there may be a device: CuPy and the driver are installed. Neither is asked, which would take a second."""
    if importlib.util.find_spec("cupy") is None:
        return False
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _driver_sees() -> int:
    """How many devices the driver sees. Asked without CuPy, whose import takes 190 MiB of a process without a GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    found = ctypes.c_int()
    return found.value if driver.cuInit(0) == driver.cuDeviceGetCount(ctypes.byref(found)) == 0 else 0


def addresses() -> tuple[str, ...]:
    """Where on the bus each CUDA device is that this process sees, by number; none where there are none."""
    found = range(count())
    if not found:
        return ()
    import cupy

    return tuple(str(cupy.cuda.runtime.deviceGetPCIBusId(number)) for number in found)


def number_of(name: str) -> int:
    """The number in `cuda:N` (0 for plain `cuda`). Raises InputError where there is no such device."""
    _, _, text = name.partition(":")
    if name.split(":")[0] != "cuda" or not (text or "0").isdigit():
        raise InputError(f"device {name!r} is not known; choose auto, cpu, or cuda:0, cuda:1 ...")
    if importlib.util.find_spec("cupy") is None:
        raise InputError(f"device {name} needs CuPy, which is not installed: {INSTALL}, or use --device cpu")
    found = count()
    if int(text or 0) >= found:
        there = "CUDA sees no device" if not found else f"there are {found}, numbered from 0"
        raise InputError(f"device {name} is not here: {there}; use --device cpu, or check the driver with nvidia-smi")
    return int(text or 0)


def nvtx() -> Any:
    """CuPy's ranges on the calling thread's timeline in NVIDIA's tools; None where it was built without them."""
    if importlib.util.find_spec("cupy") is None:
        return None
    import cupy

    found = getattr(cupy.cuda, "nvtx", None)
    return found if getattr(found, "available", found is not None) else None


class CudaDevice(Device):
    """GPU number `number`, of which `memory_bytes` (default: nine tenths of what is free) may be used."""

    kind: Kind = "cuda"
    reads_host = False
    ceiling = "--device-memory"
    idle: Idle = ("emulated",), "a GPU's link is as fast as it is", "emulated"
    glance = 0.25
    runs_ahead = measurable = True
    grain = GRAIN

    def __init__(self, number: int = 0, memory_bytes: int | None = None) -> None:
        import cupy

        self._cupy = cupy
        self._device = cupy.cuda.Device(number)
        self.name = f"cuda:{number}"
        self.threads = 1
        self._ranges = nvtx()
        with self._device:
            free = int(cupy.cuda.runtime.memGetInfo()[0])
            self.memory_bytes = memory_bytes if memory_bytes is not None else free * 9 // 10
            self.own_bytes: int | None = self.memory_bytes
            self._pool = cupy.cuda.MemoryPool()
            self._pool.set_limit(size=self.memory_bytes)
        self._pinned: dict[int, Any] = {}
        self._registered: dict[int, int] = {}
        self.bytes_in = 0
        self.bytes_out = 0

    @property
    def capability(self) -> tuple[int, int] | None:
        """Its compute capability."""
        text = self._device.compute_capability
        return int(text[:-1]), int(text[-1])

    def kernels(self, asked: str) -> str:
        """Return a GPU's."""
        return "cuda"

    def rates(self, threads: int) -> Rates:
        """Return those of an H200 behind PCIe 5."""
        return Rates.pcie5(threads)

    @contextmanager
    def range(self, label: str) -> Iterator[None]:
        """Show the calls in NVIDIA's tools, where CuPy was built with their ranges."""
        if self._ranges is None:
            yield
            return
        self._ranges.RangePush(label)
        try:
            yield
        finally:
            self._ranges.RangePop()

    @property
    def used_bytes(self) -> int:
        """Bytes that our pool holds on the device, freed arrays included until `close`."""
        return int(self._pool.total_bytes())

    @property
    def address(self) -> str:
        """Where it is on the bus."""
        return str(self._cupy.cuda.runtime.deviceGetPCIBusId(self._device.id))

    def facts(self) -> dict[str, Any]:
        """Return the GPU's name, memory, driver, and the best link between it and the host."""
        runtime = self._cupy.cuda.runtime
        found = runtime.getDeviceProperties(self._device.id)
        cuda = runtime.driverGetVersion()
        name = found["name"].decode() if isinstance(found["name"], bytes) else str(found["name"])
        return {
            "kind": self.kind,
            "name": name,
            "memory_bytes": int(found["totalGlobalMem"]),
            "driver": hardware_info.module_version("nvidia") or f"CUDA {cuda // 1000}.{cuda % 1000 // 10}",
            "link": hardware_info.bus_link(self.address),
        }

    def host_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate page-locked host memory: plain memory, touched, then registered (15 times faster than its own)."""
        array = aligned_empty(count, dtype)
        with stage("page_locking"):
            array.view(np.uint8)[::4096] = 0
        self.register(array)
        return array

    def register(self, array: NDArray[Any]) -> None:
        """Page-lock memory that was allocated elsewhere; `close` releases it. Raises RunError if the driver refuses."""
        at = array.ctypes.data
        if array.nbytes and self._registered.get(at, 0) < array.nbytes:
            with stage("page_locking") as meter, self._device:
                try:
                    self._cupy.cuda.runtime.hostRegister(at, array.nbytes, 2)
                except self._cupy.cuda.runtime.CUDARuntimeError as error:
                    raise RunError(
                        f"device {self.name} cannot page-lock {array.nbytes} bytes of host memory beside "
                        f"{sum(self._registered.values())} bytes ({brief(str(error))}): lower --host-memory"
                    ) from error
                meter.bytes += array.nbytes
            self._registered[at] = array.nbytes
            self._pinned[at] = array

    def unregister(self, array: NDArray[Any]) -> None:
        """Release page-locked memory; nothing that runs may touch it."""
        at = array.ctypes.data
        if self._registered.pop(at, None) is not None:
            with self._device:
                self._cupy.cuda.runtime.hostUnregister(at)
            del self._pinned[at]

    def mapped(self, array: NDArray[Any]) -> Any:
        """Return registered host memory as an array that kernels read over the link, in place."""
        memory = self._cupy.cuda.UnownedMemory(array.ctypes.data, array.nbytes, array, self._device.id)
        return self._cupy.ndarray(array.shape, array.dtype, memptr=self._cupy.cuda.MemoryPointer(memory, 0))

    def reading(self, size: int) -> None:
        """Do nothing: the hardware takes the time that it takes."""

    def shared_array(self, count: int, dtype: DTypeLike) -> tuple[NDArray[Any], Any]:
        """Allocate page-locked memory that kernels write, for what the host reads after them."""
        array = self.host_array(max(count, 512), dtype)
        array[:] = 0
        return array[:count], self.mapped(array)[:count]

    def array(self, count: int, dtype: DTypeLike) -> Any:
        """Allocate `count` items on the device; RunError when the ceiling does not allow it."""
        kind = np.dtype(dtype)
        try:
            with self._device:
                memory = self._pool.malloc(max(1, count) * kind.itemsize)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise RunError(
                f"device {self.name} was asked for {count * kind.itemsize} bytes with {self._pool.used_bytes()} of "
                f"{self.memory_bytes} in use: raise --device-memory, or lower --device-edge-memory"
            ) from error
        return self._cupy.ndarray((count,), kind, memptr=memory)

    def reserved(self, count: int, dtype: DTypeLike) -> ReservedDeviceArray:
        """Reserve address space on the device."""
        with self._device:
            return ReservedDeviceArray(self._cupy, self._device.id, count, dtype)

    def free(self, array: Any) -> None:
        """Forget an array: its memory returns to the pool with its last user."""

    def stream(self, *, of_kernels: bool = False) -> Any:
        """Make a stream, which waits for kernels of the default stream only where `behind` orders it."""
        with self._device:
            return self._cupy.cuda.Stream(non_blocking=True)

    def launched(self) -> Any:
        """Mark the kernels launched so far on the default stream."""
        return self.event(None)

    def copy_within(self, target: Any, source: Any, stream: Any) -> None:
        """Start copying bytes of the device on a stream."""
        self._copy(target.data.ptr, source.data.ptr, target.nbytes, 3, stream)

    def copy_in(self, target: Any, source: NDArray[Any], stream: Any) -> None:
        """Start copying to the device; page-locked sources run at the link's speed."""
        self._copy(target.data.ptr, source.ctypes.data, source.nbytes, 1, stream)
        self.bytes_in += source.nbytes

    def copy_out(self, target: NDArray[Any], source: Any, stream: Any) -> None:
        """Start copying to the host."""
        self._copy(target.ctypes.data, source.data.ptr, target.nbytes, 2, stream)
        self.bytes_out += target.nbytes

    def _copy(self, target: int, source: int, size: int, way: int, stream: Any) -> None:
        if size:
            with self._device:
                place = 0 if stream is None else stream.ptr
                self._cupy.cuda.runtime.memcpyAsync(target, source, size, way, place)

    def event(self, stream: Any) -> Any:
        """Mark this point of a stream (None: of the kernels)."""
        with self._device:
            event = self._cupy.cuda.Event()
            event.record(self._cupy.cuda.Stream.null if stream is None else stream)
        return event

    def done(self, event: Any) -> bool:
        """Return whether the stream has passed the event."""
        return bool(event.done)

    def wait(self, event: Any) -> None:
        """Block until the stream has passed the event."""
        event.synchronize()

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds between two passed events."""
        return float(self._cupy.cuda.get_elapsed_time(first, last)) / 1000.0

    def use(self) -> None:
        """Make it the current device, and its pool the one that CuPy's own operations take memory from."""
        self._device.use()
        self._cupy.cuda.set_allocator(self._pool.malloc)

    def finish(self, stream: Any = None) -> None:
        """Block until what a stream was given so far is done; None: every kernel."""
        (self._cupy.cuda.Stream.null if stream is None else stream).synchronize()

    def overlap(self, read: Callable[[], None], launch: Callable[[], None]) -> None:
        """Launch first: kernels run while the host plans and reads."""
        launch()
        read()

    def follow(self, event: Any) -> None:
        """Let kernels launched from now on start after the event."""
        self._cupy.cuda.Stream.null.wait_event(event)

    def behind(self, stream: Any, event: Any = None) -> None:
        """Let the stream go on only after the event; None: after every kernel launched so far."""
        stream.wait_event(self.event(None) if event is None else event)

    def to_device(self, array: Any) -> Any:
        """Return a copy on the device; what is there already is returned as it is."""
        if not isinstance(array, np.ndarray):
            return array
        flat = np.ascontiguousarray(array)
        placed = self.array(flat.size, flat.dtype)
        self._copy(placed.data.ptr, flat.ctypes.data, flat.nbytes, 1, None)
        self.finish()
        return placed

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy in host memory."""
        self.bytes_out += array.nbytes
        return np.asarray(array.get())

    def running_sums(self, array: Any) -> Any:
        """Return them by CuPy."""
        with self._device:
            return self._cupy.cumsum(array)

    def close(self) -> None:
        """Wait for what runs, release page-locked memory, and give the pool's memory back."""
        with self._device:
            self._cupy.cuda.runtime.deviceSynchronize()
            for at in self._registered:
                self._cupy.cuda.runtime.hostUnregister(at)
            self._pool.free_all_blocks()
        self._registered.clear()
        self._pinned.clear()
        self._cupy.cuda.set_allocator(None)
