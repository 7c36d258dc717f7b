"""Given pairs: their ids are looked up, and the neighbors counted that the two vertices of each share.

Cores count, or a GPU, to which the rows are copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.whole_rows import similarity as kernels
from penstock.engine.program.vertex_ids import VertexReferences, vertices_of
from penstock.engine.queries.row_sets import ROW_BYTES, Room, RowSets, load_rows, runs
from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph
from penstock.transfer.devices import cuda
from penstock.transfer.devices.cuda import CudaDevice
from penstock.transfer.devices.device import Device

PAIR_BYTES = 24
"""Of a pair on the device: both rows and the count."""
PAIRS = 1 << 20
"""Most pairs that are on the device at once."""

Integers = NDArray[np.int64]


class PairCounter:
    """Counts shared neighbors on CPU cores."""

    row_bytes: int | None = None
    """Bytes for rows at once beside the budget of the host; None: no further limit."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def check(self, least: int) -> None:
        """Raise BudgetError where rows of so many bytes do not fit: on cores what fits the host does."""

    def count(self, ones: RowSets, others: RowSets, rows: Integers) -> Integers:
        """Count for pairs, rows int64 (n, 2): of `ones` and of `others`."""
        found = np.zeros(len(rows), np.int64)
        sides = (ones.offsets, ones.neighbors), (others.offsets, others.neighbors)
        kernels.count_common(self._threads, len(rows), *sides, rows, found)
        return found

    def close(self) -> None:
        """Give back what it took: nothing, on cores."""


class DeviceCounter(PairCounter):
    """On a device: three quarters of its memory for rows, an eighth for pairs."""

    def __init__(self, device: Device) -> None:
        from penstock.engine.kernels.cuda import driver
        from penstock.engine.kernels.cuda.whole_rows import similarity as device_kernels
        from penstock.engine.kernels.cuda.whole_rows.triangles import GROUP

        self._device, self._driver, self._kernel, self._group = device, driver, device_kernels, int(GROUP)
        self.row_bytes = device.memory_bytes * 3 // 4
        self._placed: list[tuple[RowSets, tuple[Any, Any]]] = []

    def check(self, least: int) -> None:
        """Raise BudgetError where rows of so many bytes do not fit."""
        assert self.row_bytes is not None, "a device has an end"
        if least > self.row_bytes:
            why = f"the longest row, twice, takes {format_bytes(least)} of three quarters of it"
            raise too_small("--device-memory", self._device.memory_bytes, why, -(-4 * least // 3))

    def count(self, ones: RowSets, others: RowSets, rows: Integers) -> Integers:
        """Count for pairs."""
        self._driver.use(self._device)
        self._placed = [entry for entry in self._placed if entry[0] is ones or entry[0] is others]
        sides = self._rows(ones), self._rows(others)
        found = np.zeros(len(rows), np.int64)
        step = max(1, min(PAIRS, self._device.memory_bytes // 8 // PAIR_BYTES))
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            one, other = (self._device.to_device(part[:, side].copy()) for side in (0, 1))
            common = self._device.to_device(np.zeros(len(part), np.int64))
            pairs = one, other, np.int64(len(part))
            self._kernel.count_common(self._blocks(len(part)), *sides, pairs, common)
            self._device.finish()
            self._kernel.count_common.forget()
            found[first : first + step] = self._device.to_host(common)
        return found

    def close(self) -> None:
        """Give its memory back."""
        self._placed.clear()
        self._device.close()

    def _rows(self, rows: RowSets) -> tuple[Any, Any]:
        """A set of rows on the device, copied unless it is there."""
        for known, arrays in self._placed:
            if known is rows:
                return arrays
        arrays = self._device.to_device(rows.offsets), self._device.to_device(rows.neighbors)
        self._placed.append((rows, arrays))
        return arrays

    def _blocks(self, pairs: int) -> int:
        return self._driver.blocks_for(pairs * self._group, self._driver.many_blocks())


def counter_on(name: str, device_memory: int | None, threads: int) -> PairCounter:
    """What counts on `cpu`, or on a GPU by its name. Raises InputError for one that is not here."""
    if name == "cpu":
        return PairCounter(threads)
    return DeviceCounter(CudaDevice(cuda.number_of(name), device_memory))


def internal_pairs(graph: Graph, pairs: Iterable[Any] | NDArray[Any] | VertexReferences) -> Integers:
    """Pairs of original ids as internal ones, int64 (n, 2). Raises InputError for no pairs, and for strangers."""
    if isinstance(pairs, VertexReferences):
        return pairs.numbers
    given = pairs if isinstance(pairs, np.ndarray) else list(pairs)
    if len(given) == 0:
        return np.empty((0, 2), np.int64)
    for at, pair in enumerate(given) if not isinstance(given, np.ndarray) else ():
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"pairs[{at}] is {pair!r}; write two ids, (one, other)")
    if isinstance(given, np.ndarray) and (given.ndim != 2 or given.shape[1] != 2):
        raise InputError(f"pairs have the shape {given.shape}; give two columns, (n, 2)")
    flat = given.ravel().tolist() if isinstance(given, np.ndarray) else [one for pair in given for one in pair]
    return vertices_of(graph, flat).reshape(-1, 2)


def common_of(
    graph: Graph, ends: Integers, room: Room, threads: int, counter: PairCounter
) -> tuple[NDArray[np.int64], Integers]:
    """Shared neighbors of pairs of internal ids, int64 (n,), and the sizes of both sets, int64 (n, 2).

    Rows that do not fit together are read in runs, and every run once more with each later one. Raises BudgetError.
    """
    vertices = np.unique(ends)
    held = graph.out.index().lengths_of(vertices) * graph.out.neighbor_dtype.itemsize + ROW_BYTES
    common, sizes = np.zeros(len(ends), np.int64), np.zeros((len(ends), 2), np.int64)
    if not len(ends):
        return common, sizes
    left = room.left if counter.row_bytes is None else min(room.left, counter.row_bytes)
    whole = int(held.sum()) <= left
    if not whole:
        counter.check(2 * int(held.max()))
        room.check(2 * int(held.max()), f"the longest row of {len(vertices):,} vertices, twice,")
    cut = [(0, len(vertices))] if whole else runs(held, left // 2)
    places = np.searchsorted(np.array([first for first, _ in cut]), np.searchsorted(vertices, ends), side="right") - 1
    for number, (first, last) in enumerate(cut):
        ones = load_rows(graph.out, vertices[first:last], threads)
        for side in (0, 1):
            here = places[:, side] == number
            sizes[here, side] = ones.sizes[ones.rows_of(ends[here, side])]
        for other in range(number, len(cut)):
            picked = np.flatnonzero((places.min(axis=1) == number) & (places.max(axis=1) == other))
            if len(picked):
                others = ones if other == number else load_rows(graph.out, vertices[slice(*cut[other])], threads)
                common[picked] = counter.count(ones, others, _rows(ends, picked, (ones, others), places))
    return common, sizes


def _rows(ends: Integers, picked: Integers, sets: tuple[RowSets, RowSets], places: Integers) -> Integers:
    """The rows of the picked pairs, of which one is in each of the sets, int64 (picked, 2)."""
    ones, others = sets
    turned = places[picked, 0] > places[picked, 1]
    some = np.where(turned[:, None], ends[picked, ::-1], ends[picked])
    return np.stack([ones.rows_of(some[:, 0]), others.rows_of(some[:, 1])], axis=1)
