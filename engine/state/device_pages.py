"""Values of vertices of which a device has some pages: all are in host memory or, where that has no room, in a file.

    file <- `StatePages` of the host -> over the link -> pages of the device, in reserved address space there
    degrees of the graph's file, packed -> over the link -> the same pages, where they become rows of an index

Owns the two ways; rows are read only. A page is as long as one of the host, or as several of them where the device
gives memory in larger pieces.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from penstock.storage.base.stage_clock import BusyTimer
from penstock.storage.base.threads import PerThread
from penstock.storage.checkpoint.state_pages import PagedArray, PagedValues, StatePages, Unit
from penstock.storage.format.row_pages import OFFSET_BYTES
from penstock.transfer.devices.device import UnpackRequest

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from penstock.storage.base.timeline import Timeline
    from penstock.storage.checkpoint.state_pages import Page
    from penstock.storage.format.index import Index
    from penstock.storage.format.row_pages import RowPages
    from penstock.transfer.devices.device import Device, Unpacker


def device_page_rows(grain: int, together: int) -> int:
    """Vertices of a page of a device: whole ranges of rows that come together, one byte of each being whole grains."""
    return math.lcm(grain, together)


KeptRows: TypeAlias = "weakref.WeakKeyDictionary[RowPages, dict[tuple[int, int], NDArray[np.uint32]]]"
"""Packed degrees in host memory, of each index, by the first row of a page of the device and its rows."""


class LockedPages(StatePages):
    """Pages in host memory that are page-locked while they are there: a device copies from and to them at full speed.

    Where memory is not page-locked the driver holds its lock for as long as a copy takes.
    """

    def __init__(self, device: Device, *given: Any) -> None:
        super().__init__(*given)
        self._device = device
        self._locked: dict[Unit, NDArray[np.uint8]] = {}
        weakref.finalize(self, _unlock, device, self._locked).atexit = False

    def fill(self, unit: Unit, *, reads: bool) -> None:
        """As `StatePages.fill`."""
        super().fill(unit, reads=reads)
        self._locked[unit] = np.frombuffer(self._bytes(unit), np.uint8)
        self._device.register(self._locked[unit])

    def give_back(self, unit: Unit) -> None:
        """As `StatePages.give_back`."""
        if unit in self._locked:
            self._device.unregister(self._locked.pop(unit))
        super().give_back(unit)


@dataclass(slots=True)
class Mover:
    """Of a thread that moves pages: its stream of copies, and bytes of values that it moved.

    room: of the device, for packed rows.
    """

    stream: Any
    moved: int = 0
    room: Any = None


class HostSide:
    """What a device's pages are read from and written to, as a `PageFile` is by pages of the host.

    pages: of the host. rows: vertices of a page of the device. unpacker: makes offsets of packed degrees there. kept:
    where these stay in host memory, None: nowhere. mover: a thread's own; the device is the thread's current one from
    then on.
    """

    def __init__(
        self, device: Device, pages: LockedPages, rows: int, unpacker: Unpacker, *, kept: KeptRows | None
    ) -> None:
        self._device, self._pages, self._rows, self._unpacker = device, pages, rows, unpacker
        self.indexes: dict[str, Index] = {}
        self._kept = kept
        self.movers: list[Mover] = []
        self.mover, self._moving = PerThread(partial(_new_mover, device, self.movers)), BusyTimer()

    @property
    def bytes_moved(self) -> int:
        """Bytes of values that went over the link so far, both ways."""
        return sum(mover.moved for mover in self.movers)

    @property
    def busy_seconds(self) -> float:
        """Seconds so far in which at least one page was on its way."""
        return self._moving.seconds

    def __contains__(self, unit: object) -> bool:
        return True

    def forget(self, units: Iterable[object]) -> None:
        """Do nothing: the host's pages are forgotten there."""

    def read(self, unit: Unit, page: Any) -> None:
        """Fill a page of the device. Raises RunError where the host's cannot be read."""
        if unit[0] in self.indexes:
            with self._moving:
                self._read_rows(unit, page)
            return
        with self._moving, self._at_hand(unit, page) as parts:
            for here, there in parts:
                self._device.copy_in(there, here, self.mover().stream)
            self._arrive(page.nbytes)

    def write(self, unit: Unit, page: Any) -> None:
        """Keep a page of the device. Raises RunError where the host has to make room and cannot."""
        with self._moving, self._at_hand(unit, page, changed=(unit[0],)) as parts:
            for here, there in parts:
                self._device.copy_out(here, there, self.mover().stream)
            self._arrive(page.nbytes)

    def _arrive(self, size: int) -> None:
        """Wait until copies of values are done, and count them."""
        mover = self.mover()
        self._device.finish(mover.stream)
        mover.moved += size

    @contextmanager
    def _at_hand(
        self, unit: Unit, page: Any, *, changed: tuple[str, ...] = ()
    ) -> Iterator[Iterator[tuple[NDArray[Any], Any]]]:
        """The values of a page while they are in host memory, and their places in it, by pages of the host."""
        name, first = unit[0], unit[1] * self._rows
        last, values = first + len(page), self._pages.values(name)
        with self._pages.held(self._pages.of((name,), first, last), changed, changed):
            yield ((values[v0:v1], page[v0 - first : v1 - first]) for v0, v1 in self._pages.spans(first, last))

    def _read_rows(self, unit: Unit, page: Any) -> None:
        """Bring the packed degrees of rows to the device, and make offsets of them there."""
        index, first, mover = self.indexes[unit[0]], unit[1] * self._rows, self.mover()
        assert index.pages is not None, "rows come with the values"
        kept = {} if self._kept is None else self._kept.setdefault(index.pages, {})
        packed = kept.get((first, len(page)))
        if packed is None:
            packed = kept[first, len(page)] = _packed_rows(index.pages, first, first + len(page))
        if mover.room is None or len(mover.room) < len(packed):
            mover.room = self._device.array(len(packed), np.uint32)
        there, chunks = mover.room[: len(packed)], len(index.pages.chunks_of(first, first + len(page)))
        self._device.copy_in(there, packed, mover.stream)
        request = UnpackRequest(
            words=there[2 * (chunks + 1) :],
            first_word=0,
            starts=there[: 2 * (chunks + 1)].view(np.int64),
            first_chunk=0,
            last_chunk=chunks,
            chunk_edges=index.pages.chunk_rows,
            edges=min(len(page), index.vertices - first),
            out=page,
            first_edge=0,
            limit=0,
            values=True,
            marks=None,
            summed=1 << index.shift,
        )
        self._unpacker.unpack(request, mover.stream)
        self._device.finish(mover.stream)


def _new_mover(device: Device, movers: list[Mover]) -> Mover:
    """A thread's own; not a method, so that the memory of the host goes with its last user."""
    device.use()
    movers.append(Mover(device.stream()))
    return movers[-1]


def _packed_rows(pages: RowPages, v0: int, v1: int) -> NDArray[np.uint32]:
    """The payloads of the degrees of rows v0..v1-1, whole chunks; before them where each begins, int64 (chunks + 1)."""
    payloads = [pages.packed(chunk) for chunk in pages.chunks_of(v0, v1)]
    starts = np.cumsum([0, *map(len, payloads)], dtype=np.int64)
    return np.concatenate([starts.view(np.uint32), *payloads])


class DevicePages(StatePages):
    """Arrays of all vertices on a device, of which pages take so many bytes there; `StatePages` says the rest.

    host: pages of the same arrays in host memory. together: rows of a range that comes at once. room: bytes of the
    device. kept_rows: where host memory keeps all rows of indexes, packed, if so. placed: indexes whose offsets are
    among the pages, by `id` (`DeviceIndex`).
    """

    row_bytes, ahead, carrier = OFFSET_BYTES, 4, "link"

    def __init__(
        self, device: Device, host: LockedPages, together: int, room: int, unpacker: Unpacker,
        timeline: Timeline | None = None, *, kept_rows: KeptRows | None,
    ) -> None:  # fmt: skip
        self._device, self.host = device, host
        rows = device_page_rows(device.grain, together)
        self.side = HostSide(device, host, rows, unpacker, kept=kept_rows)
        super().__init__(host.vertices, rows, room, self.side, timeline)
        self.placed: dict[int, Any] = {}

    def add(self, name: str, dtype: DTypeLike, first: Any) -> Any:
        """Return a new array of the device, as `StatePages.add`; the host has one, too."""
        self.host.add(name, dtype, first)
        return super().add(name, dtype, first)

    def on_host(self, name: str) -> PagedValues:
        """An array in host memory, for when the device has no page of it (`flush`)."""
        return self.host.on_host(name)

    def keep(self, names: Collection[str]) -> None:
        """Have only these arrays from now on, and the rows of indexes; as `StatePages.keep`."""
        super().keep({*names, *self.side.indexes})
        self.host.keep(names)

    def read_often(self, names: Collection[str]) -> None:
        """As `StatePages.read_often`, on the host, too."""
        super().read_often(names)
        self.host.read_often(names)

    def add_rows(self, index: Index) -> Any:
        """Return the offsets of an index on the device."""
        name = _rows_name(index)
        if name not in self.side.indexes:
            self.side.indexes[name] = index
            self._arrays[name] = PagedArray(self._device.reserved(index.vertices + 1, np.uint32), 0)
        return self.values(name)

    def of_rows(self, index: Index | None, v0: int, v1: int) -> list[Unit]:
        """The pages of an index that kernels read for rows v0..v1-1: with where the row behind them begins."""
        if index is None:
            return []
        self.add_rows(index)
        return [(_rows_name(index), page) for page in range(v0 // self.rows, v1 // self.rows + 1)]

    def flush(self) -> None:
        """Write what has changed, and have no page on the device; none is held."""
        with self._free:
            leave = self._make_room(self.room)
            left = self._movers.submit(self._write, leave)
            self._note_leaving(leave, left)
        left.result()

    def _reserved(self, dtype: DTypeLike) -> Any:
        return self._device.reserved(self.vertices, dtype)

    def _make_room(self, size: int) -> list[tuple[Unit, Page]]:
        leave = super()._make_room(size)
        if leave:
            event = self._device.event(None)
            for _, page in leave:
                page.used = event
        return leave

    def _write(self, leave: list[tuple[Unit, Page]]) -> None:
        """Write what leaves once the kernels that were launched on it are done."""
        self.side.mover()
        for _, page in leave:
            self._device.wait(page.used)
        super()._write(leave)

    def _bytes(self, unit: Unit) -> Any:
        first, last = self._vertices_of(unit)
        return self.values(unit[0])[first:last]


def _rows_name(index: Index) -> str:
    return f"rows of {id(index)}"


def _unlock(device: Device, locked: dict[Unit, NDArray[np.uint8]]) -> None:
    for page in locked.values():
        device.unregister(page)
