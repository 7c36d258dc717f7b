"""Random walks on a device: walkers of a batch advance there until all walks have ended, which then come to the host.

Where the device keeps all rows, that is one launch, and while the walks of a batch come to the host in blocks the next
batch is on its way. Else batches sweep the rows that are not kept, as on the cores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.cuda.driver import blocks_for, forget, use
from penstock.engine.kernels.cuda.walks import advance_walkers, begin_walks, end_walks, mark_chunks
from penstock.engine.kernels.walk_arrays import Rule, Walkers, Window
from penstock.engine.queries.device_windows import DeviceWindows, in_place_is_cheaper
from penstock.engine.queries.row_windows import RowWindows
from penstock.engine.queries.walk_memory import WalkMemory
from penstock.engine.queries.walk_run import Report, WalkProgress, timed
from penstock.transfer.devices.device import Device
from penstock.transfer.values.rates import Rates


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
        sources: tuple[NDArray[Any], int],
        device: Device,
        rates: Rates,
    ) -> None:
        use(device)
        self._device, self._memory = device, memory
        self._rule = Rule(*(np.asarray(value)[()] for value in rule))
        self._sources, self._count = sources
        self._width, dtype = rule.length + 1, self._sources.dtype
        self._on_device = device.to_device(self._sources)
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
            self._device.wait(self._device.event(self._stream))
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
