"""The verbs of a device: memory, copies, streams and events, as the CPU cores have them, for which every copy is plain.

A GPU (`cuda.py`) and cores behind an emulated link (`emulated.py`) have their own of them. Streams and events are
opaque: only the device that made them reads them.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.slot_pool import ALIGNMENT, ReservedArray, aligned_empty
from penstock.transfer.values.rates import Rates

Kind = Literal["host", "emulated", "cuda"]
Idle = tuple[tuple[str, ...], str, str]
Stream = Any
Event = Any
DeviceArray = Any


class Device:
    """One machine that runs kernels. This one is the CPU cores, or a share of them: they read host memory in place.

    name: in options and records, such as `cpu`. kind: the family it belongs to. threads: CPU threads that its kernels
    may use. memory_bytes: ceiling on what is allocated on it; ceiling: the option that sets it. reads_host: whether its
    kernels read host memory in place at full speed, so that nothing needs to be copied. own_bytes: the ceiling where it
    does not, else None. capability: a GPU's compute capability, for which its kernels are compiled; None for what is
    none. idle: where options apply that change nothing on it, why not, and on which devices they would. glance: what a
    pull's look at a vertex takes, in edges of a kernel: to count which accept, and to serve them (measured: 12 to 14 ns
    against 5 on a CPU core; on a GPU 12 bytes of its memory, read twice). runs_ahead: whether kernels still run when
    their call returns, so that only events tell their seconds. measurable: whether times of its link correct the rates;
    a link that is emulated without a rate takes none. grain: bytes of which memory in reserved address space is a
    multiple.
    """

    kind: Kind = "host"
    reads_host = True
    ceiling = "--host-memory"
    own_bytes: int | None = None
    idle: Idle = ("link", "emulated"), "the CPU reads edges where they are", "emulated or cuda:0"
    glance = 2.5
    runs_ahead = False
    measurable = True
    grain = ALIGNMENT

    def __init__(self, name: str = "cpu", threads: int = 1, memory_bytes: int = 1 << 62) -> None:
        self.name = name
        self.threads = threads
        self.memory_bytes = memory_bytes
        self._sizes: dict[int, int] = {}

    @property
    def used_bytes(self) -> int:
        """Bytes that are allocated on it now."""
        return sum(self._sizes.values())

    @property
    def capability(self) -> tuple[int, int] | None:
        """A GPU's compute capability; None for what is none."""
        return None

    @property
    def address(self) -> str | None:
        """Where it is on the bus: the same for two processes only if they share it, on one host; None: nowhere."""
        return None

    def kernels(self, asked: str) -> str:
        """Return the kind of compiled kernels that it runs, `host` or `cuda`; asked: by the option."""
        return "host"

    def rates(self, threads: int) -> Rates:
        """Return the built-in rates, with so many threads of the host."""
        return Rates.host(threads)

    def range(self, label: str) -> AbstractContextManager[None]:
        """Show what is called within under this label in the tools of the device's vendor, if there are any."""
        return nullcontext()

    def facts(self) -> dict[str, Any]:
        """Return what its speed depends on, as JSON has it: measurements are kept under these facts."""
        return {"kind": self.kind}

    def host_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items of host memory that the device copies from at full speed; here pages come later."""
        return aligned_empty(count, dtype)

    def array(self, count: int, dtype: DTypeLike) -> DeviceArray:
        """Allocate `count` items on the device; RunError above its ceiling."""
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

    def reserved(self, count: int, dtype: DTypeLike) -> Any:
        """Reserve address space for `count` items, of which none has memory: as a `ReservedArray`."""
        return ReservedArray(count, dtype, huge=False)

    def free(self, array: DeviceArray) -> None:
        """Return an array made by `array`; it may not be used again."""
        self._sizes.pop(array.ctypes.data, None)

    def stream(self, *, of_kernels: bool = False) -> Stream:
        """Make a stream: work given to it happens in order. of_kernels: kernels run on it, beside the other ones.

        None here, where everything is done at once and in order.
        """
        return None

    def launched(self) -> Event:
        """Mark the kernels launched so far, those on streams of their own apart; here they are done: the clock."""
        return time.perf_counter()

    def copy_within(self, target: DeviceArray, source: DeviceArray, stream: Stream) -> None:
        """Start copying the bytes of `source` to `target`, both on the device and of one size."""
        np.copyto(target.view(np.uint8), source.view(np.uint8))

    def copy_in(self, target: DeviceArray, source: NDArray[Any], stream: Stream) -> None:
        """Start copying `source` (host) to `target` (device, same length and dtype)."""
        np.copyto(target, source)

    def copy_out(self, target: NDArray[Any], source: DeviceArray, stream: Stream) -> None:
        """Start copying `source` (device) to `target` (host, same length and dtype)."""
        np.copyto(target, source)

    def event(self, stream: Stream) -> Event:
        """Mark this point of a stream; here what was asked for before is done: the clock."""
        return time.perf_counter()

    def done(self, event: Event) -> bool:
        """Return whether the stream has passed the event."""
        return True

    def wait(self, event: Event) -> None:
        """Block until the stream has passed the event."""

    def seconds(self, first: Event, last: Event) -> float:
        """Return the time between two passed events."""
        return float(last - first)

    def use(self) -> None:
        """Make it the device that kernels are launched on from now on."""

    def finish(self, stream: Stream = None) -> None:
        """Block until what a stream was given so far is done; None: every kernel."""
        if stream is not None:
            self.wait(self.event(stream))

    def overlap(self, read: Callable[[], None], launch: Callable[[], None]) -> None:
        """Start reading and launch kernels, so that both go on at once; these kernels are done when they return."""
        read()
        launch()

    def follow(self, event: Event) -> None:
        """Let kernels launched from now on start only after the event."""
        self.wait(event)

    def behind(self, stream: Stream, event: Event = None) -> None:
        """Let the stream go on only after the event; None: after every kernel launched so far."""

    def shared_array(self, count: int, dtype: DTypeLike) -> tuple[NDArray[Any], DeviceArray]:
        """Allocate host memory that kernels write too: the host's array of it, and the device's."""
        array = np.zeros(count, dtype=dtype)
        return array, array

    def to_device(self, array: Any) -> DeviceArray:
        """Return a copy on the device of an array of the host (one of the device is returned as it is)."""
        return array

    def to_host(self, array: DeviceArray) -> NDArray[Any]:
        """Return a copy in host memory, or the array itself, if it is there."""
        here: NDArray[Any] = array
        return here

    def running_sums(self, array: DeviceArray) -> DeviceArray:
        """Return the sums of the first items of an int64 array of the device, of each with those before it."""
        return np.cumsum(array)

    def mapped(self, array: NDArray[Any]) -> DeviceArray:
        """Return host memory made by `host_array` or given to `register` as kernels read it in place."""
        return array

    def reading(self, size: int) -> tuple[Event, Event] | None:
        """Announce that the kernels launched next read `size` bytes of host memory in place.

        Returns the events between which a modelled link carries them; None where the hardware takes its own time.
        """
        return None

    def register(self, array: NDArray[Any]) -> None:
        """Page-lock host memory that was allocated elsewhere, so that copies run at full speed."""

    def unregister(self, array: NDArray[Any]) -> None:
        """Release host memory made by `host_array` or given to `register`, once nothing runs that touches it."""

    def close(self) -> None:
        """Free everything."""
        self._sizes.clear()


@dataclass(frozen=True, slots=True)
class UnpackRequest:
    """Chunks [first_chunk, last_chunk) of one array of an adjacency, to be decoded.

    words: uint32; item 0 is word `first_word` of the array's payloads. starts: on the device, int64[chunks + 1]: the
    word at which the payload of each chunk begins. chunk_edges: edges of a chunk; edges: of the whole adjacency, whose
    last chunk may be shorter. out: ids (uint32, uint64) or values (uint8, uint16, uint32); item 0 is edge `first_edge`.
    limit: ids must be below it; 0 for values. values: whether these are weights (`bits`) and not ids (`packed`). marks:
    bitmap of the adjacency's blocks of 256 edges that are wanted, uint32 words; None: all. in_place: whether the words
    are host memory, read over the link, while other kernels are at work. summed: items of a block of `out` in which
    each value then becomes the sum of those before it, those behind the last edge counting as 0; 0: values stay.
    """

    words: DeviceArray
    first_word: int
    starts: DeviceArray
    first_chunk: int
    last_chunk: int
    chunk_edges: int
    edges: int
    out: DeviceArray
    first_edge: int
    limit: int
    values: bool
    marks: DeviceArray | None
    in_place: bool = False
    summed: int = 0


class Unpacker(Protocol):
    """What decodes packed edges, or packed degrees, on one device."""

    def unpack(self, request: UnpackRequest, stream: Stream) -> None:
        """Start decoding on a stream; a device without streams decodes at once."""

    def check(self) -> None:
        """Raise RunError if what was decoded so far was malformed, or had an id that is not below its limit.

        It looks at what the device has passed; it does not wait.
        """
