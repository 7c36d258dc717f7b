"""Vertex state of which some pages are in memory: the others are in a file, and come when their vertices are wanted.

Every array has its place in reserved address space, which takes memory only where it is written, so that kernels find
a vertex as they do where all state is in memory. A page is a range of vertices of one array, as long as a page of the
row index (`row_pages.py`), or a part of it where values are long. What is wanted next comes meanwhile, in the place of
what was wanted last.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from penstock.storage.base.slot_pool import HUGE_PAGE, ReservedArray
from penstock.storage.base.stage_clock import BusyTimer
from penstock.storage.base.threads import ThreadPool
from penstock.storage.base.timeline import Timeline, Work, during
from penstock.storage.checkpoint.page_file import PageFile, slot_bytes
from penstock.storage.format.row_pages import RowPages, places_by_page

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray
    from penstock.storage.format.index import Index

Unit = tuple[str, int]
"""The name of an array, and the number of a page."""
FILE_ROWS = 1 << 15
"""Vertices of a range (`vertex_ranges.py`): of a page of values that a program keeps in a file itself."""
MOVERS = 4
"""Threads that read and write pages beside the kernels."""


@dataclass(slots=True)
class PagedArray:
    """An array, and what each item is at first, or what returns this of the vertices from one to before another."""

    space: ReservedArray
    first: Any


@dataclass(slots=True)
class Page:
    """A page in memory.

    wanted: by how many; changed: whether the file has older values; arrives: when it is there; used: after which event
    a device's kernels no longer read it.
    """

    wanted: int = 0
    changed: bool = False
    arrives: Future[None] | None = None
    used: Any = None


class PageStore(Protocol):
    """Where pages are that are not in memory: a file (`PageFile`), or the host's memory of a device's pages."""

    @property
    def bytes_moved(self) -> int:
        """Bytes that were read and written so far."""

    @property
    def busy_seconds(self) -> float:
        """Seconds so far in which at least one page was read or written."""

    def __contains__(self, key: object) -> bool: ...

    def forget(self, keys: Iterable[object]) -> None:
        """Have no pages of these keys."""

    def write(self, key: Any, page: Any) -> None:
        """Keep a page, in the place of what the key had. Raises RunError."""

    def read(self, key: Any, page: Any) -> None:
        """Fill a page with what the key has. Raises RunError."""


class StatePages:
    """Arrays of all vertices, of which pages take so many bytes of memory; safe to use from several threads.

    vertices: of each array. rows: vertices of a page, which are those of a page of an index or a part of these. room:
    bytes of the pages that may be in memory. file: holds the others. Passes over all vertices come again and again: so
    what was used last makes room first, and the rest stays; arrays of which several passes come behind one another
    (`read_often`) make room after the others.
    timeline: where reads, writes and waiting are stamped, if anywhere. row_bytes: what comes for a row of an index
    besides, in the same room. ahead: ranges of rows that come before they are wanted, where there is room. carrier: the
    group of a timeline that pages move in. owned: the first and past the last vertex whose values are here (`own`).
    """

    row_bytes, ahead, carrier = 0, 1, "disk"

    def __init__(self, vertices: int, rows: int, room: int, file: PageStore, timeline: Timeline | None = None) -> None:
        self._timeline, self._waiting = timeline, BusyTimer()
        self.vertices, self.rows, self.room, self.file = vertices, rows, room, file
        self._arrays: dict[str, PagedArray] = {}
        self._pages: dict[Unit, Page] = {}
        self._leaving: dict[Unit, Future[None]] = {}
        self._giving: list[Future[None]] = []  # pages that leave have their memory until these are done
        self._idle: dict[Unit, None] = {}  # pages that nobody wants, what was wanted last behind
        self._often, self._names_often = dict[Unit, None](), frozenset[str]()  # the same of arrays that are read often
        self._early: dict[Unit, None] = {}  # pages that nobody has wanted yet
        self._taken = 0
        self.owned = 0, vertices
        self._holders: Counter[int] = Counter()  # by thread, how often it holds some
        self._free = threading.Condition()
        self._movers = ThreadPool(MOVERS, "penstock-state")

    def add(self, name: str, dtype: DTypeLike, first: Any) -> NDArray[Any]:
        """Return a new array (vertices,), all of whose items are `first`; only pages that are held may be touched.

        dtype: of an item, as `ReservedArray` takes it. Raises MemoryError where so much address space cannot be had.
        """
        self._arrays[name] = PagedArray(self._reserved(dtype), first)
        return self.values(name)

    def _reserved(self, dtype: DTypeLike) -> ReservedArray:
        """Address space for the values of all vertices."""
        whole = self.rows * np.dtype(dtype).itemsize % HUGE_PAGE == 0  # else a page would take memory of the next one
        return ReservedArray(self.vertices, dtype, huge=whole)

    @property
    def waited_seconds(self) -> float:
        """Seconds so far in which something waited for pages to arrive."""
        return self._waiting.seconds

    def keep(self, names: Collection[str]) -> None:
        """Have only these arrays from now on; no page of another one is held. Raises RunError as `held`."""
        others = self._arrays.keys() - names
        self.reset(others)
        for name in others:
            del self._arrays[name]

    def reset(self, names: Collection[str]) -> None:
        """Let the items of these arrays be what they were at first; no page of them is held. Raises RunError."""
        self._drop(lambda unit: unit[0] in names)
        self.file.forget(self.of(names, 0, self.vertices))

    def begin_anew(self, name: str, first: Any) -> None:
        """As `reset`, with other items at first."""
        self.reset((name,))
        self._arrays[name].first = first

    def own(self, first: int, last: int, alone: Collection[str] = ()) -> None:
        """Read pages with some of the vertices first..last-1 alone from now on. Raises RunError.

        Values of others are elsewhere: their pages hold anything when they come. alone: arrays of which the file
        forgets them.
        """
        begin, end = self.owned
        before, self.owned = range(begin // self.rows, -(-end // self.rows)), (first, last)
        others = (0, first // self.rows * self.rows), (-(-last // self.rows) * self.rows, self.vertices)
        forgotten = {unit for part in others for unit in self.of(alone, *part)}
        self._drop(lambda unit: unit in forgotten or (unit[1] not in before and not self._pages[unit].changed))
        self.file.forget(sorted(forgotten))

    def _drop(self, is_dropped: Callable[[Unit], bool]) -> None:
        """Forget some pages that are in memory, and wait until none of them is on its way."""
        with self._free:
            units = [unit for unit in self._pages if is_dropped(unit)]
            moving = list(self._leaving.values())
            for unit in units:
                page = self._pages.pop(unit)
                moving += [page.arrives] if page.arrives is not None else []
                self._taken -= self._size(unit)
                for taken in (self._idle, self._often, self._early, self._leaving):
                    taken.pop(unit, None)
        for future in moving:
            future.result()
        for unit in units:
            self.give_back(unit)

    def read_often(self, names: Collection[str]) -> None:
        """Let pages of these arrays make room after those of others, until other arrays are given."""
        with self._free:
            self._names_often = frozenset(names)
            idle = [*self._idle, *self._often]
            self._idle.clear()
            self._often.clear()
            for unit in idle:
                self._idle_of(unit)[unit] = None

    def _idle_of(self, unit: Unit) -> dict[Unit, None]:
        return self._often if unit[0] in self._names_often else self._idle

    def values(self, name: str) -> NDArray[Any]:
        """An array by its name."""
        return self._arrays[name].space.values

    def on_host(self, name: str) -> PagedValues:
        """An array by its name, as programs and answers have it."""
        return PagedValues(self, name)

    @property
    def item_bytes(self) -> dict[str, int]:
        """Bytes of a value, by array."""
        return {name: array.space.kind.itemsize for name, array in self._arrays.items()}

    def of(self, names: Iterable[str], v0: int, v1: int) -> list[Unit]:
        """The pages of some arrays that hold the vertices v0..v1-1, by array: those that were added last are first.

        What is named last makes room first: of sweeps sums do, rather than ranks, which moves 0.75 of the bytes.
        """
        numbers, wanted = range(v0 // self.rows, -(-min(v1, self.vertices) // self.rows)), set(names)
        return [(name, page) for name in reversed(self._arrays) if name in wanted for page in numbers]

    def of_rows(self, index: Index | None, v0: int, v1: int) -> list[Unit]:
        """The pages of rows v0..v1-1 of an index, where they are among these: in memory they have their own."""
        return []

    def range_of(self, index: RowPages) -> int:
        """Rows of an index whose values come at once: of the pages that are read side by side, or of a part of one."""
        return self.rows if self.rows < index.rows else max(self.rows, index.together)

    def spans(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the vertices first..last-1 in parts, each of one page."""
        while first < last:
            end = min((first // self.rows + 1) * self.rows, last)
            yield first, end
            first = end

    @contextmanager
    def held(
        self,
        units: Iterable[Unit],
        changes: Collection[str] = (),
        fresh: Collection[str] = (),
        then: Iterable[Unit] = (),
    ) -> Iterator[None]:
        """Have these pages in memory within.

        changes: arrays whose items are written; fresh: those of which every item is, so that none need be read. then:
        pages that are wanted next, which begin to come if there is room.
        Raises RunError where the file cannot be read or written, MemoryError where there is no room for so many.
        """
        wanted, thread = list(dict.fromkeys(units)), threading.get_ident()
        with self._free:
            pages = self._want(wanted, fresh)
            self._holders[thread] += 1
        try:
            with self._free:
                self._read_ahead(then)
            for page in pages:
                if page.arrives is not None and not page.arrives.done():
                    with self._waiting, during(self._timeline, "engine", "wait"):
                        page.arrives.exception()
                if page.arrives is not None:
                    page.arrives.result()
            yield
        finally:
            with self._free:
                for unit, page in zip(wanted, pages, strict=True):
                    page.changed = page.changed or unit[0] in changes
                self._holders[thread] -= 1
                self._leave(wanted)

    def change(self, unit: Unit) -> None:
        """Note that a page that is held has been written."""
        with self._free:
            self._pages[unit].changed = True

    def _want(self, units: list[Unit], fresh: Collection[str]) -> list[Page]:
        """The pages, each of which is in memory or on its way, and stays: while some have no room, none is held."""
        while True:
            lacking = {unit for unit in units if unit not in self._pages}
            if self._has_room(sum(map(self._size, lacking)), self._idle, self._often, self._early, but={*units}):
                break
            if not self._held_by_others():
                wanted = sum(map(self._size, {*units, *(unit for unit, page in self._pages.items() if page.wanted)}))
                raise MemoryError(f"pages of {wanted} bytes are wanted, of {self.room}")
            self._free.wait()
        taken: list[Unit] = []
        try:
            for unit in sorted(units, key=lambda unit: unit in lacking):  # those that are there stay
                if unit not in self._pages:
                    self._bring(unit, reads=unit[0] not in fresh)
                self._idle_of(unit).pop(unit, None)
                self._early.pop(unit, None)
                self._pages[unit].wanted += 1
                taken.append(unit)
        except BaseException:
            self._leave(taken)
            raise
        return [self._pages[unit] for unit in units]

    def _held_by_others(self) -> bool:
        """Whether another thread holds pages, which will make room."""
        return any(times and thread != threading.get_ident() for thread, times in self._holders.items())

    def _leave(self, units: list[Unit]) -> None:
        """Want these pages no more."""
        for unit in units:
            self._pages[unit].wanted -= 1
            if not self._pages[unit].wanted:
                self._idle_of(unit)[unit] = None
        self._free.notify_all()

    def _has_room(self, size: int, *others: dict[Unit, None], but: Collection[Unit] = ()) -> bool:
        """Whether pages find room in the place of others, of which the last of the first are taken first.

        but: of the others, these stay.
        """
        left, last_first = self._taken + size - self.room, chain.from_iterable(map(reversed, others))
        sizes = (self._size(unit) for unit in last_first if unit not in but)
        return left <= 0 or any(total >= left for total in accumulate(sizes))

    def _read_ahead(self, units: Iterable[Unit]) -> None:
        for unit in units:
            if unit not in self._pages:
                if not self._has_room(self._size(unit), self._idle, self._often):
                    return
                self._bring(unit, reads=True)
                self._early[unit] = None

    @contextmanager
    def lent(self, size: int) -> Iterator[None]:
        """Have pages in so many bytes less within. Raises MemoryError where those that this thread wants take these."""
        with self._free:
            while not self._has_room(size, self._idle, self._often, self._early):
                if not self._held_by_others():
                    raise MemoryError(f"pages are wanted that leave no {size} bytes of {self.room}")
                self._free.wait()
            leave = self._make_room(size)
            self.room -= size
            left = self._movers.submit(self._write, leave)
            self._note_leaving(leave, left)
        try:
            wait(self._giving)
            left.result()
            yield
        finally:
            with self._free:
                self.room += size
                self._free.notify_all()

    def _bring(self, unit: Unit, *, reads: bool) -> None:
        """Let a page come into the place of others that nobody wants, which leave first."""
        size = self._size(unit)
        leave = self._make_room(size)
        self._taken += size
        page, left = Page(), Future[None]()
        others = self._giving if sum(self._size(one) for one, _ in leave) < size else []
        others = [*others, self._leaving[unit]] if unit in self._leaving else others
        self._pages[unit] = page
        first, last = self._vertices_of(unit)
        reads = reads and self.owned[0] < last and (first < self.owned[1] or first >= self.vertices)  # where rows end
        page.arrives = self._movers.submit(self._exchange, leave, left, others, unit, reads=reads)
        self._note_leaving(leave, left)

    def _note_leaving(self, leave: list[tuple[Unit, Page]], left: Future[None]) -> None:
        """Note that these pages leave, and have given their memory back when `left` is done."""
        self._leaving.update((one, left) for one, _ in leave)
        self._giving = [*(one for one in self._giving if not one.done()), *([left] if leave else ())]

    def _make_room(self, size: int) -> list[tuple[Unit, Page]]:
        """Forget pages that nobody wants until there is room for so many bytes; these are to be written."""
        leave = []
        while self._taken + size > self.room:
            one, _ = (self._idle or self._often or self._early).popitem()
            leave.append((one, self._pages.pop(one)))
            self._taken -= self._size(one)
        return leave

    def _write(self, leave: list[tuple[Unit, Page]]) -> None:
        """Write what leaves, and give its memory back."""
        for one, page in leave:
            if page.arrives is not None:
                page.arrives.result()
            if page.changed:
                with self._moving("write", one):
                    self.file.write(one, self._bytes(one))
            self.give_back(one)

    def _exchange(
        self, leave: list[tuple[Unit, Page]], left: Future[None], others: Sequence[Future[None]], unit: Unit,
        *, reads: bool,
    ) -> None:  # fmt: skip
        """Write what leaves, then read a page.

        left: is done when what leaves has. others: of pages that left before, whose memory this one takes, and of
        itself: then the file has it.
        """
        try:
            self._write(leave)
        except BaseException as error:
            left.set_exception(error)
            raise
        left.set_result(None)
        for other in others:
            other.result()
        self.fill(unit, reads=reads)

    def fill(self, unit: Unit, *, reads: bool) -> None:
        """Give a page memory and, if it reads, what it holds."""
        self._arrays[unit[0]].space.back(*self._vertices_of(unit))
        if reads and unit in self.file:
            with self._moving("read", unit):
                self.file.read(unit, self._bytes(unit))
        elif reads:
            array, (v0, v1) = self._arrays[unit[0]], self._vertices_of(unit)
            values, first = array.space.values[v0:v1], array.first
            values[:] = first(v0, v0 + len(values), dtype=array.space.kind) if callable(first) else first

    def _moving(self, done: str, unit: Unit) -> AbstractContextManager[None]:
        """Stamp that a page is read, or written, where its store is."""
        return during(self._timeline, self.carrier, f"{done} values", Work(bytes=self._size(unit), first=unit[1]))

    def give_back(self, unit: Unit) -> None:
        """Give the memory of a page back to the system."""
        self._arrays[unit[0]].space.forget(*self._vertices_of(unit))

    def _bytes(self, unit: Unit) -> memoryview:
        return self._arrays[unit[0]].space.memory(*self._vertices_of(unit))

    def _size(self, unit: Unit) -> int:
        begin, end = self._arrays[unit[0]].space.span(*self._vertices_of(unit))
        return end - begin

    def _vertices_of(self, unit: Unit) -> tuple[int, int]:
        return unit[1] * self.rows, (unit[1] + 1) * self.rows


class PagedValues(NDArrayOperatorsMixin):
    """One array of `StatePages`, as programs and answers have it: read and written by position, copied when read.

    shape (vertices,), of vectors (vertices, ...). Positions are one, a slice, integers or a mask. Operators are
    NumPy's: those in place go by ranges, others return an array of all vertices in memory.
    """

    def __init__(self, pages: StatePages, name: str) -> None:
        self._pages, self._name = pages, name
        self._values = pages.values(name)
        self.dtype, self.shape, self.ndim = self._values.dtype, self._values.shape, self._values.ndim
        self.width = int(np.prod(self.shape[1:]))  # numbers of a vertex

    @contextmanager
    def lent(self) -> Iterator[int]:
        """Have half of the room of all pages, so many bytes, for something else within."""
        size = self._pages.room // 2
        with self._pages.lent(size):
            yield size

    @property
    def folders(self) -> list[Path]:
        """Where the pages are that are not in memory, of those in a `PageFile`."""
        return cast(PageFile, self._pages.file).folders

    def __len__(self) -> int:
        """How many vertices there are."""
        return len(self._values)

    def __getitem__(self, rows: Any) -> Any:
        """The values in some rows, copied."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            if step != 1:
                return self[np.arange(first, last, step)]
            found = self._room(max(0, last - first))
            for v0, v1 in self._parts(first, last):
                found[v0 - first : v1 - first] = self._values[v0:v1]
            return found
        places = self._places(rows)
        found = self._room(places.size)
        for inside, some in self._grouped(places.reshape(-1)):
            found[inside] = self._values[some]
        return found.reshape(places.shape + self.shape[1:])[()]

    @property
    def page_rows(self) -> int:
        """Rows of a page, which come from the file together."""
        return self._pages.rows

    @contextmanager
    def at_hand(self, first: int, last: int) -> Iterator[NDArray[Any]]:
        """Have the values of the vertices first..last-1 in memory within, to be read where they are."""
        with self._pages.held(self._pages.of((self._name,), first, last)):
            yield self._values[first:last]

    def __setitem__(self, rows: Any, values: Any) -> None:
        """Write one value, or one for each of some rows; one for all is not written before another takes its place.

        For all rows also what returns those of the vertices from one to before another.
        """
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            assert step == 1, "ranges only"
            if np.ndim(values) == 0 and (first, last) == (0, len(self)):
                self._pages.begin_anew(self._name, values)
                return
            many = np.ndim(values) == self.ndim
            for v0, v1 in self._parts(first, last, (self._name,)):
                self._values[v0:v1] = values[v0 - first : v1 - first] if many else values
            return
        places = self._places(rows)
        given = np.broadcast_to(values, places.shape + self.shape[1:]).reshape(-1, *self.shape[1:])
        for inside, some in self._grouped(places.reshape(-1), (self._name,)):
            self._values[some] = given[inside]

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] = (), **more: Any
    ) -> Any:
        """Compute with all values; into an array of pages range by range. Not in place at positions (`add.at`)."""
        if method == "at":
            return NotImplemented
        if method != "__call__" or len(out) != 1 or not isinstance(out[0], PagedValues):
            given = [one[:] if isinstance(one, PagedValues) else one for one in inputs]
            return getattr(ufunc, method)(*given, **more, **({"out": out} if out else {}))
        target, many = out[0], [isinstance(one, PagedValues) or np.ndim(one) > 0 for one in inputs]
        for first in range(0, len(target), FILE_ROWS):
            here = slice(first, min(first + FILE_ROWS, len(target)))
            parts = [one[here] if each else one for one, each in zip(inputs, many, strict=True)]
            target[here] = ufunc(*parts, out=target._room(here.stop - first), **more)
        return target

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All values."""
        return np.asarray(self[:], dtype)

    def sum(self) -> Any:
        """The sum of all values, added up by ranges."""
        return np.sum([self._values[v0:v1].sum() for v0, v1 in self._parts(0, len(self))])

    def reshape(self, shape: int) -> PagedValues | PagedNumbers:
        """All numbers one behind the other, which is the only `shape` that may be asked for: -1."""
        assert shape == -1, "one behind the other only"
        return self if self.ndim == 1 else PagedNumbers(self)

    def _room(self, count: int) -> NDArray[Any]:
        """An array for the values of so many vertices."""
        return np.empty((count, *self.shape[1:]), self.dtype)

    def _places(self, rows: Any) -> NDArray[Any]:
        """Positions from the first vertex on, of integers, those below 0 being from behind, or of a mask."""
        places = np.asarray(rows)
        if places.dtype.kind not in "biu" and places.size:
            raise IndexError(f"positions are a range, integers or a mask, and these are {places.dtype}")
        if places.dtype == np.bool_:
            return np.flatnonzero(places)
        return np.where(places < 0, places + len(self), places).astype(np.int64)

    def _parts(self, first: int, last: int, changes: tuple[str, ...] = ()) -> Iterator[tuple[int, int]]:
        """Yield the vertices first..last-1 in parts, each in memory until the next is asked for."""
        for v0, v1 in self._pages.spans(first, last):
            with self._pages.held(self._pages.of((self._name,), v0, v1), changes):
                yield v0, v1

    def _grouped(
        self, places: NDArray[Any], changes: tuple[str, ...] = ()
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield of each page that occurs which of the places are in it, and these; it is in memory meanwhile."""
        for number, inside in zip(*places_by_page(places // self._pages.rows), strict=True):
            with self._pages.held([(self._name, int(number))], changes):
                yield inside, places[inside]


class PagedNumbers:
    """The numbers of all vectors of `PagedValues` one behind the other, read and written by ranges."""

    ndim = 1

    def __init__(self, values: PagedValues) -> None:
        self._values, self.dtype = values, values.dtype
        self._width = values.width

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self._values) * self._width

    def __getitem__(self, here: slice) -> NDArray[Any]:
        """The numbers of a range, copied."""
        vertices, inside = self._place(here)
        found: NDArray[Any] = self._values[vertices].reshape(-1)[inside]
        return found

    def __setitem__(self, here: slice, numbers: NDArray[Any]) -> None:
        """Write a range."""
        vertices, inside = self._place(here)
        whole = self._values[vertices].copy()
        whole.reshape(-1)[inside] = numbers
        self._values[vertices] = whole

    def _place(self, here: slice) -> tuple[slice, slice]:
        """The vertices whose vectors hold a range of numbers, and where it is among these."""
        first, last, _ = here.indices(len(self))
        begin = first // self._width
        return slice(begin, -(-last // self._width)), slice(first - begin * self._width, last - begin * self._width)


FILE_PAGES = 8
"""Pages of them in memory, for as many threads as pass over ranges at once."""


def values_in_file(folders: Sequence[Path], vertices: int, dtype: DTypeLike, first: Any) -> PagedValues:
    """Return numbers of all vertices, `first` each, in a file in these folders. Raises as `PageFile`."""
    size = np.dtype(dtype).itemsize
    file = PageFile(folders, slot_bytes(vertices * size))
    pages = StatePages(vertices, FILE_ROWS, FILE_PAGES * FILE_ROWS * size, file)
    pages.add("values", dtype, first)
    return PagedValues(pages, "values")
