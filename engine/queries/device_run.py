"""Random walks on a device: walkers of a batch advance there until all walks have ended, which then come to the host.

Where the device keeps all rows, that is one launch, and while the walks of a batch come to the host in blocks the next
batch is on its way. Else batches sweep the rows that are not kept, as on the cores: the device keeps the first rows,
the host keeps the next ones, page-locked, and reads the others from disk. Partitions travel through two slabs on the
device: while walkers advance in one, the next is copied. Where walkers are so few that their reads of single edges take
less than the copies, rows of the host are read in place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.cuda.driver import blocks_for, forget, use
from penstock.engine.kernels.cuda.walks import advance_walkers, begin_walks, end_walks, mark_chunks
from penstock.engine.kernels.walk_arrays import Rule, Walkers, Window
from penstock.engine.queries.row_windows import RowPartition, RowWindows
from penstock.engine.queries.walk_memory import WalkMemory
from penstock.engine.queries.walk_run import Report, WalkProgress, timed
from penstock.transfer.devices.device import Device
from penstock.transfer.values.rates import SECTOR_BYTES, Rates

SEARCHED_LINES = 12
"""Lines that a step touches of a row that is searched, for a weight or for the vertex before."""
WHOLE = 1 << 62
"""Edges of a chunk, where all rows of a window are there."""
Arrays = tuple[NDArray[Any], NDArray[Any]]
"""Neighbors, and sums of weights, or none."""


def in_place_is_cheaper(rates: Rates, walkers: int, edge_bytes: int, *, searched: bool) -> bool:
    """Return whether one step of so many walkers takes less time over a link than copying rows of so many bytes.

    rates: of the link; searched: whether steps search rows.
    """
    lines = walkers * (SEARCHED_LINES if searched else 1)
    seconds = rates.line_seconds(np.float64(lines), np.float64(SECTOR_BYTES))
    return bool(seconds < edge_bytes / rates.copy_bytes)


class DeviceWindows:
    """Rows on a device and on their way to it.

    host: rows that the host keeps and reads. slab_edges: of each of two slabs on the device. index: row index there.
    in_place: whether walkers, so many, read rows of so many bytes in place (`in_place_is_cheaper`).
    """

    def __init__(
        self,
        device: Device,
        host: RowWindows,
        slab_edges: int,
        index: tuple[Any, Any, Any],
        in_place: Callable[[int, int], bool],
    ) -> None:
        self._device, self._host, self._rows, self._in_place = device, host, host.rows, in_place
        self._index, self._chunk = index, host.chunk_edges
        self.copied = self.read_in_place = 0
        self._stream = device.stream()
        self._pinned: list[NDArray[Any]] = []
        self._kept = self._arrays(host.start_of(host.first_row))
        self._slabs = [self._arrays(slab_edges) for _ in range(2)]
        self._flags = [device.array(slab_edges // self._chunk + 1, np.uint8) for _ in range(2)]
        self._ones = device.to_device(np.ones(1, np.uint8))
        self._staged = slab_edges > 0
        self._parts = host.cut((host.first_row, host.kept_rows), slab_edges) if self._staged else []
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release what was page-locked, and let go of the edges on the device."""
        self._device.finish(self._stream)
        self._device.finish()
        for array in self._pinned:
            self._device.unregister(array)
        for arrays in (self._kept, *self._slabs, self._flags, (self._ones,)):
            for array in arrays:
                self._device.free(array)

    @property
    def whole(self) -> bool:
        """Whether all rows are kept on the device."""
        return self._host.first_row == self._host.vertices

    @property
    def bytes_read(self) -> int:
        """Bytes of edges read from disk."""
        return self._host.bytes_read

    def kept_window(self) -> Window:
        """The rows that the device keeps alone."""
        return self._window((0, 0), 0, self._slabs[0], self._ones, self._chunk)

    def sweep(self, wanted: NDArray[np.uint8], walkers: int) -> Iterator[tuple[tuple[int, int], Window]]:
        """Yield the rows that are not kept, ascending, as vertices [first, last) and what walkers there read.

        wanted: of each chunk, not 0. walkers: how many are under way. Walkers must have been launched by the next one.
        """
        host = self._host
        parts = [part for part in self._parts if wanted[part.c0 : part.c1].any()]
        size = sum(part.c1 - part.c0 for part in parts) * self._chunk * self._edge_bytes
        if not self._staged or self._in_place(walkers, size):
            parts = []
            mapped = [
                self._device.mapped(array) if len(array) else none
                for array, none in zip(host.kept, self._slabs[0], strict=True)
            ]
            rows = host.first_row, host.kept_rows
            self.read_in_place += 1
            yield rows, self._window(rows, host.kept_edge, mapped, self._ones, WHOLE)
        before: tuple[tuple[int, int], Window, Any] | None = None
        launched: list[Any] = [None, None]
        for number, (part, arrays, here) in enumerate(self._coming(parts, wanted)):
            slab = number % 2
            if launched[slab] is not None:
                self._device.behind(self._stream, launched[slab])
            arrived = self._copy(slab, arrays, here)
            if before is not None:
                self._device.follow(before[2])
                yield before[:2]
                launched[1 - slab] = self._device.launched()
            window = self._window(
                (part.v0, part.v1), part.c0 * self._chunk, self._slabs[slab], self._flags[slab], self._chunk
            )
            before = (part.v0, part.v1), window, arrived
            self._device.wait(arrived)  # a slab of the host is read into again next
        if before is not None:
            self._device.follow(before[2])
            yield before[:2]

    def _coming(
        self, parts: list[RowPartition], wanted: NDArray[np.uint8]
    ) -> Iterator[tuple[RowPartition, Arrays, NDArray[np.uint8]]]:
        """Yield partitions in host memory, and which of their chunks are there: kept ones, then those from disk."""
        kept, base = self._host.kept, self._host.kept_edge
        for part in parts:
            first, last = part.c0 * self._chunk - base, self._end(part) - base
            yield part, (kept[0][first:last], kept[1][first:last]), np.ones(part.c1 - part.c0, np.uint8)
        for part, window in self._host.sweep(wanted):
            count = self._end(part) - part.c0 * self._chunk
            yield part, (window.loaded[:count], window.loaded_sums[:count]), window.here

    def _copy(self, slab: int, arrays: Arrays, here: NDArray[np.uint8]) -> Any:
        """Begin to copy a partition into a slab; return the event of its arrival."""
        for target, source in zip((*self._slabs[slab], self._flags[slab]), (*arrays, here), strict=True):
            if len(source):
                self._device.copy_in(target[: len(source)], source, self._stream)
        self.copied += sum(source.nbytes for source in arrays)
        return self._device.event(self._stream)

    def _load(self) -> None:
        """Bring the rows that the device keeps, and page-lock what it copies from later."""
        host, count = self._host, len(self._kept[0])
        if self._rows.arrays is not None:
            for target, source in zip(self._kept, host.kept, strict=True):
                if count and len(source):
                    self._device.copy_in(target, source[:count], None)
            self._device.finish()
        elif count:
            self._lock(array for arrays in host.slabs for array in arrays)
            wanted = np.ones(host.chunks, np.uint8)
            for part, window in host.sweep(wanted, host.cut((0, host.first_row), len(host.slabs[0][0]))):
                first, last = host.start_of(part.v0), host.start_of(part.v1)  # sums are of these rows alone
                here = slice(first - part.c0 * self._chunk, last - part.c0 * self._chunk)
                for target, source in zip(self._kept, (window.loaded, window.loaded_sums), strict=True):
                    if len(source):
                        self._device.copy_in(target[first:last], source[here], None)
                self._device.finish()
        if not self.whole:
            self._lock(array for arrays in (host.kept, *host.slabs) for array in arrays)

    def _lock(self, arrays: Iterator[NDArray[Any]]) -> None:
        for array in arrays:
            if array.nbytes and all(array is not one for one in self._pinned):
                self._device.register(array)
                self._pinned.append(array)

    @property
    def _edge_bytes(self) -> int:
        return self._rows.neighbor_dtype.itemsize + (8 if self._host.weighted else 0)

    def _end(self, part: RowPartition) -> int:
        return min(part.c1 * self._chunk, self._rows.edges)

    def _arrays(self, count: int) -> tuple[Any, Any]:
        """So many edges on the device."""
        sums = count if self._host.weighted else 0
        return self._device.array(count, self._rows.neighbor_dtype), self._device.array(sums, np.float64)

    def _window(self, rows: tuple[int, int], e0: int, loaded: Any, here: Any, chunk: int) -> Window:
        bases, offsets, shift = self._index
        kept_rows, first, last = (np.uint64(row) for row in (self._host.first_row, *rows))
        (kept, kept_sums), (neighbors, sums) = self._kept, loaded
        return Window(
            bases, offsets, shift, kept_rows, kept, kept_sums, first, last, np.int64(e0), neighbors, sums,
            np.int64(chunk), here,
        )  # fmt: skip


class _Batch:
    """Room for a batch on a device: the arrays of `Walkers`, walks in one dimension, and steps made so far."""

    def __init__(self, device: Device, size: int, width: int, dtype: Any, *, second: bool) -> None:
        apart = size if second else 0
        self.at, self.step = device.array(size, dtype), device.array(size, np.uint32)
        self.previous, self.candidate = device.array(apart, dtype), device.array(apart, dtype)
        self.trial = device.array(apart, np.uint32)
        self.walks = device.array(size * width, dtype)
        self.steps = device.to_device(np.zeros(1, np.int64))


class DeviceWalkRun:
    """Walks from the sources, as `WalkRun` makes them.

    rows: on the host. memory: of the host and of the device. sources: vertices, or none for all, and how many there
    are. rates: of the link.
    """

    def __init__(
        self,
        rows: RowWindows,
        memory: WalkMemory,
        rule: Rule,
        sources: tuple[NDArray[Any], int, NDArray[np.float64]],
        device: Device,
        rates: Rates,
    ) -> None:
        use(device)
        self._device, self._memory = device, memory
        self._rule = Rule(*(np.asarray(value)[()] for value in rule))
        self._sources, self._count, limits = sources
        self._width, dtype = rule.length + 1, self._sources.dtype
        self._on_device, self._limits = device.to_device(self._sources), device.to_device(limits)
        bases, offsets, shift = rows.rows.index().arrays()
        index = device.to_device(bases), device.to_device(offsets), np.uint64(shift)
        self._vertices = len(offsets) - 1
        in_place = partial(in_place_is_cheaper, rates, searched=bool(rule.weighted or rule.second))
        self._windows = DeviceWindows(device, rows, memory.device_slab_edges, index, in_place)
        self._batches = [
            _Batch(device, self._memory.batch, self._width, dtype, second=rule.second) for _ in range(self._memory.sets)
        ]
        self._stream = device.stream()
        self._blocks = [device.host_array(self._memory.block * self._width, dtype) for _ in range(2)]
        self._told = device.host_array(512, np.int64)
        self._told[:] = 0
        self._nothing: tuple[NDArray[Any], ...] = np.zeros(rows.chunks + 1, np.uint8), np.zeros(1, np.int64)
        self._marks = device.to_device(self._nothing[0]), device.to_device(self._nothing[1])
        self.progress = WalkProgress()

    def blocks(self, walks: int, report: Report) -> Iterator[NDArray[Any]]:
        """Yield so many walks, as `WalkRun.blocks` does; then give back what the run has on the device."""
        try:
            yield from timed(self._made(walks, report), self.progress)
        finally:
            self._device.finish(self._stream)
            self._windows.close()
            for array in (*self._blocks, self._told):
                self._device.unregister(array)
            self._batches.clear()
            forget()

    def _made(self, walks: int, report: Report) -> Iterator[NDArray[Any]]:
        under_way: deque[tuple[int, int, Any]] = deque()
        for number, first in enumerate(range(0, walks, self._memory.batch)):
            count = min(self._memory.batch, walks - first)
            under_way.append((number % self._memory.sets, count, self._launch(number, first, count, report)))
            if len(under_way) == self._memory.sets:
                yield from self._brought(*under_way.popleft(), report)
        while under_way:
            yield from self._brought(*under_way.popleft(), report)

    def _launch(self, number: int, first: int, count: int, report: Report) -> Any:
        """Let the walks of a batch be made; return the event that they are."""
        batch = self._batches[number % self._memory.sets]
        apart = count if self._rule.second else 0
        walkers = Walkers(
            batch.at[:count],
            batch.step[:count],
            batch.previous[:apart],
            batch.candidate[:apart],
            batch.trial[:apart],
            np.uint64(first),
            self._on_device,
            np.uint64(self._count),
            self._limits,
        )
        walks = batch.walks[: count * self._width].reshape(count, self._width)
        begin_walks(blocks_for(count), walkers, walks)
        self._advance(walkers, (0, self._vertices), self._windows.kept_window(), walks)
        if not self._windows.whole:
            self._sweep(walkers, walks, report)
        end_walks(blocks_for(count), walkers, walks, batch.steps)
        return self._device.launched()

    def _sweep(self, walkers: Walkers, walks: Any, report: Report) -> None:
        """Let all walks of a batch end, sweep by sweep."""
        windows, everywhere = self._windows, (0, self._vertices)
        wanted, going = self._wanted(walkers)
        while going:
            if wanted[-1]:
                self._advance(walkers, everywhere, windows.kept_window(), walks)
            for rows, window in windows.sweep(wanted, going):
                self._advance(walkers, rows, window, walks)
            wanted, going = self._wanted(walkers)
            self.progress.sweeps += 1
            self._tell(report)

    def _wanted(self, walkers: Walkers) -> tuple[NDArray[np.uint8], int]:
        """Which chunks walkers need next, as `mark_chunks` says, and how many walks go on; waits for all kernels."""
        for place, nothing in enumerate(self._nothing):
            self._device.copy_in(self._marks[place], nothing, None)
        mark_chunks(blocks_for(len(walkers.at)), walkers, self._windows.kept_window(), *self._marks)
        wanted, going = (self._device.to_host(marks) for marks in self._marks)
        return wanted, int(going[0])

    def _advance(self, walkers: Walkers, rows: tuple[int, int], window: Window, walks: Any) -> None:
        first, last = (np.uint64(row) for row in rows)
        advance_walkers(blocks_for(len(walkers.at)), walkers, window, self._rule, first, last, walks)

    def _brought(self, place: int, count: int, made: Any, report: Report) -> Iterator[NDArray[Any]]:
        """Yield the walks of a batch when they are made, in blocks that are copied one ahead."""
        device, batch, step = self._device, self._batches[place], self._memory.block * self._width
        device.behind(self._stream, made)
        device.copy_out(self._told[place : place + 1], batch.steps, self._stream)
        coming: deque[tuple[NDArray[Any], Any]] = deque()
        for number, start in enumerate(range(0, count * self._width, step)):
            size = min(step, count * self._width - start)
            target = self._blocks[number % 2][:size]
            device.copy_out(target, batch.walks[start : start + size], self._stream)
            coming.append((target, device.event(self._stream)))
            if len(coming) == 2:
                yield self._arrived(*coming.popleft(), report)
        while coming:
            yield self._arrived(*coming.popleft(), report)

    def _arrived(self, block: NDArray[Any], event: Any, report: Report) -> NDArray[Any]:
        """Return a block of walks that has arrived, in memory of its own."""
        self._device.wait(event)
        self.progress.steps = int(self._told.sum())
        self._tell(report)
        return block.reshape(-1, self._width).copy()

    def _tell(self, report: Report) -> None:
        windows = self._windows
        self.progress.bytes_read, self.progress.bytes_copied = windows.bytes_read, windows.copied
        self.progress.in_place = windows.read_in_place
        report(self.progress)
