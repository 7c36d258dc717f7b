"""The rows of a graph as a device reads them while walkers advance: kept ones, copied partitions, host memory in place.

A device keeps the first rows; where these are not all, the host keeps the next ones, page-locked, and reads the others
from disk. Partitions travel through two slabs on the device: while walkers advance in one, the next is copied. Where
walkers are so few that their reads of single edges take less than the copies, rows of the host are read in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.walk_arrays import Window
from penstock.engine.queries.row_windows import RowPartition, RowWindows
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
        self._device.wait(self._device.event(self._stream))
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
