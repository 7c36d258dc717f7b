"""The device protocol: memory, copies, streams and events.

Owns the protocol only. The host implements it trivially (`host.py`), as do a GPU (`cuda.py`) and a host with an
emulated link (`emulated.py`). Streams and events are opaque: only the device that made them reads them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from numpy.typing import DTypeLike, NDArray
from penstock.transfer.values.rates import Rates

Kind = Literal["host", "emulated", "cuda"]
Idle = tuple[tuple[str, ...], str, str]
Stream = Any
Event = Any
DeviceArray = Any


class Device(Protocol):
    """One machine that runs kernels.

    name: in options and records, such as `cpu`. kind: the family it belongs to. threads: CPU threads that its kernels
    may use. memory_bytes: ceiling on what is allocated on it. reads_host: whether its kernels read host memory in place
    at full speed, so that nothing needs to be copied. own_bytes: the ceiling where it does not, else None. idle: where
    options apply that change nothing on it, why not, and on which devices they would. glance: what a pull's look at a
    vertex takes, in edges of a kernel: to count which accept, and to serve them (measured: 12 to 14 ns against 5 on a
    CPU core; on a GPU 12 bytes of its memory, read twice). runs_ahead: whether kernels still run when their call
    returns, so that only events tell their seconds. measurable: whether times of its link correct the rates; a link
    that is emulated without a rate takes none.
    """

    name: str
    kind: Kind
    threads: int
    memory_bytes: int
    reads_host: bool
    own_bytes: int | None
    idle: Idle
    glance: float
    runs_ahead: bool
    measurable: bool

    @property
    def used_bytes(self) -> int:
        """Return the bytes that are allocated on it now."""

    @property
    def capability(self) -> tuple[int, int] | None:
        """Return a GPU's compute capability, for which its kernels are compiled; None for what is none."""

    def kernels(self, asked: str) -> str:
        """Return the kind of compiled kernels that it runs, `host` or `cuda`; asked: by the option."""

    def rates(self, threads: int) -> Rates:
        """Return the built-in rates, with so many threads of the host."""

    def range(self, label: str) -> AbstractContextManager[None]:
        """Show what is called within under this label in the tools of the device's vendor, if there are any."""

    def facts(self) -> dict[str, Any]:
        """Return what its speed depends on, as JSON has it: measurements are kept under these facts."""

    def host_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items of host memory that the device copies from at full speed."""

    def array(self, count: int, dtype: DTypeLike) -> DeviceArray:
        """Allocate `count` items on the device; RunError above its ceiling."""

    def free(self, array: DeviceArray) -> None:
        """Return an array made by `array`; it may not be used again."""

    def stream(self, *, of_kernels: bool = False) -> Stream:
        """Make a stream: work given to it happens in order. of_kernels: kernels run on it, beside the other ones."""

    def launched(self) -> Event:
        """Mark the kernels launched so far, those on streams of their own apart."""

    def copy_within(self, target: DeviceArray, source: DeviceArray, stream: Stream) -> None:
        """Start copying the bytes of `source` to `target`, both on the device and of one size."""

    def copy_in(self, target: DeviceArray, source: NDArray[Any], stream: Stream) -> None:
        """Start copying `source` (host) to `target` (device, same length and dtype)."""

    def copy_out(self, target: NDArray[Any], source: DeviceArray, stream: Stream) -> None:
        """Start copying `source` (device) to `target` (host, same length and dtype)."""

    def event(self, stream: Stream) -> Event:
        """Mark this point of a stream."""

    def done(self, event: Event) -> bool:
        """Return whether the stream has passed the event."""

    def wait(self, event: Event) -> None:
        """Block until the stream has passed the event."""

    def seconds(self, first: Event, last: Event) -> float:
        """Return the time between two passed events."""

    def close(self) -> None:
        """Free everything."""

    def use(self) -> None:
        """Make it the device that kernels are launched on from now on."""

    def finish(self) -> None:
        """Block until every kernel launched so far is done."""

    def follow(self, event: Event) -> None:
        """Let kernels launched from now on start only after the event."""

    def behind(self, stream: Stream, event: Event = None) -> None:
        """Let the stream go on only after the event; None: after every kernel launched so far."""

    def shared_array(self, count: int, dtype: DTypeLike) -> tuple[NDArray[Any], DeviceArray]:
        """Allocate host memory that kernels write too: the host's array of it, and the device's."""

    def to_device(self, array: Any) -> DeviceArray:
        """Return a copy on the device of an array of the host (one of the device is returned as it is)."""

    def to_host(self, array: DeviceArray) -> NDArray[Any]:
        """Return a copy in host memory."""

    def mapped(self, array: NDArray[Any]) -> DeviceArray:
        """Return host memory made by `host_array` or given to `register` as kernels read it in place."""

    def reading(self, size: int) -> tuple[Event, Event] | None:
        """Announce that the kernels launched next read `size` bytes of host memory in place.

        Returns the events between which a modelled link carries them; None where the hardware takes its own time.
        """

    def register(self, array: NDArray[Any]) -> None:
        """Page-lock host memory that was allocated elsewhere, so that copies run at full speed."""

    def unregister(self, array: NDArray[Any]) -> None:
        """Release host memory made by `host_array` or given to `register`, once nothing runs that touches it."""


@dataclass(frozen=True, slots=True)
class UnpackRequest:
    """Chunks [first_chunk, last_chunk) of one array of an adjacency, to be decoded.

    words: uint32; item 0 is word `first_word` of the array's payloads. starts: on the device, int64[chunks + 1]: the
    word at which the payload of each chunk begins. chunk_edges: edges of a chunk; edges: of the whole adjacency, whose
    last chunk may be shorter. out: ids (uint32, uint64) or values (uint8, uint16, uint32); item 0 is edge `first_edge`.
    limit: ids must be below it; 0 for values. values: whether these are weights (`bits`) and not ids (`packed`). marks:
    bitmap of the adjacency's blocks of 256 edges that are wanted, uint32 words; None: all. in_place: whether the words
    are host memory, read over the link, while other kernels are at work.
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


class Unpacker(Protocol):
    """What decodes packed edges on one device."""

    def unpack(self, request: UnpackRequest, stream: Stream) -> None:
        """Start decoding on a stream; a device without streams decodes at once."""

    def check(self) -> None:
        """Raise RunError if what was decoded so far was malformed, or had an id that is not below its limit.

        It looks at what the device has passed; it does not wait.
        """
