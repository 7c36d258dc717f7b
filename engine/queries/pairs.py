"""Pairs whose shared neighbors are counted: given ones, on cores or a GPU, and the K best of each vertex, on cores.

The best are sought among those that share a neighbor with a vertex:

    vertices -> blocks that fit memory -> of each: lists, which vertices of the block have x as a neighbor
    for every block: the rows of all sources, piece by piece -> their neighbors' lists -> counts -> the best K so far

What is counted of a pair is counted in the block of its second vertex, so that nothing but the best K is kept from one
block to the next: a graph is read as often as there are blocks, and once more. Where all rows fit memory there is one
block, and the lists of an undirected graph are its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.whole_rows import similarity as kernels
from penstock.engine.kernels.host.whole_rows.best_similar import (
    count_lists,
    fill_lists,
    shift_starts,
    sum_lists,
    take_similar,
)
from penstock.engine.program.vertex_ids import VertexReferences, original_ranks, surely_in_original_order, vertices_of
from penstock.engine.queries.pair_table import PairTable
from penstock.engine.queries.row_sets import ROW_BYTES, RowSets, Runs, even_cuts, load_rows, runs
from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph
from penstock.transfer.devices import cuda
from penstock.transfer.devices.cuda import CudaDevice
from penstock.transfer.devices.device import Device
from penstock.transfer.planning.host_budget import HostBudgetRequest

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
    graph: Graph, ends: Integers, room: HostBudgetRequest, threads: int, counter: PairCounter
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
        _check(room, 2 * int(held.max()), f"the longest row of {len(vertices):,} vertices, twice,")
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


def _check(room: HostBudgetRequest, least: int, what: str) -> None:
    """Raise BudgetError, with the least budget that works, where `least` bytes for `what` are not left."""
    if least > room.left:
        raise room.refusal("vertices, pairs and the answer", what, least, ", or ask for fewer vertices or pairs")


def _rows(ends: Integers, picked: Integers, sets: tuple[RowSets, RowSets], places: Integers) -> Integers:
    """The rows of the picked pairs, of which one is in each of the sets, int64 (picked, 2)."""
    ones, others = sets
    turned = places[picked, 0] > places[picked, 1]
    some = np.where(turned[:, None], ends[picked, ::-1], ends[picked])
    return np.stack([ones.rows_of(some[:, 0]), others.rows_of(some[:, 1])], axis=1)


STEPS = 64
"""Steps of each thread: how much of a row's lists is walked is not known before."""
VERTEX_BYTES = 32
"""Of each vertex: the size of its set, its list's start, its rank by ids, and bytes of its row."""
Asked = tuple[int, int, bool]
"""K, the number of the measure, whether neighbors are left out."""


@dataclass(frozen=True)
class VertexLists:
    """Of every vertex x the vertices [first, last) that have x as a neighbor, less `first`, ascending."""

    first: int
    last: int
    starts: Integers
    members: NDArray[Any]


@dataclass
class Counting:
    """What all blocks share. longest: neighbors of the longest row. sizes: of every vertex' set, as far as known."""

    graph: Graph
    asked: Asked
    threads: int
    longest: int
    sizes: Integers
    order: Integers

    def take(self, ones: RowSets, block: VertexLists, found: tuple[Any, ...]) -> None:
        """Add the block's vertices to the best of rows: numbers (rows,), vertices and common neighbors (rows, k)."""
        rows, threads = len(ones.vertices), self.threads
        reach = np.zeros(rows, np.int64)
        sum_lists(threads, rows, ones.offsets, ones.neighbors, block.starts, reach)
        cuts = even_cuts(reach, max(1, min(rows, STEPS * threads)))
        take_similar(
            threads, len(cuts) - 1, cuts, (ones.vertices, ones.offsets, ones.neighbors),
            (block.first, block.starts, block.members), self.sizes, self.order,
            (self.asked[1], self.asked[2], block.last - block.first, self.longest), found,
        )  # fmt: skip


def best_pairs(
    graph: Graph, sources: Integers | None, asked: Asked, room: HostBudgetRequest, threads: int
) -> PairTable:
    """The most similar vertices of the sources, or of all. Raises BudgetError."""
    item, k = graph.vertex_dtype.itemsize, asked[0]
    held = _held(graph)
    longest = (int(held.max(initial=ROW_BYTES)) - ROW_BYTES) // graph.out.neighbor_dtype.itemsize
    vertices = np.arange(graph.vertices) if sources is None else sources
    answer = len(vertices) * (k * (2 * item + 24) + 16)
    taken = answer + graph.vertices * VERTEX_BYTES + threads * longest * item
    room = replace(room, fixed=room.fixed + taken)
    ranked = np.empty(0, np.int64) if surely_in_original_order(graph) else original_ranks(graph).astype(np.int64)
    counting = Counting(graph, asked, threads, longest, np.zeros(graph.vertices, np.int64), ranked)
    found = (
        np.zeros(len(vertices), np.int64),
        np.zeros((len(vertices), k), graph.out.neighbor_dtype),
        np.zeros((len(vertices), k), np.uint32),
    )
    counters = threads * (4 + item)
    together = int(held.sum()) + graph.vertices * counters
    again = 0 if sources is None else int(held[sources].sum())
    if together + again + (int(held.sum()) if graph.directed else 0) <= room.left:
        _all_at_once(counting, sources, found)
    else:
        _check(room, 4 * int(held.max(initial=0)) + 4 * counters, "the longest row, four times,")
        blocks = runs(held - ROW_BYTES + counters, room.left * 3 // 4)
        _by_blocks(counting, vertices, blocks, (held, room.left // 4), found)
    return _table(counting, vertices, found)


def _held(graph: Graph) -> Integers:
    """Bytes of each row in memory."""
    held = graph.out.index().degrees(0, graph.vertices)
    held *= graph.out.neighbor_dtype.itemsize
    held += ROW_BYTES
    return held


def _all_at_once(counting: Counting, sources: Integers | None, found: tuple[Any, ...]) -> None:
    """Where all rows fit memory."""
    graph = counting.graph
    ones = load_rows(graph.out, np.arange(graph.vertices), counting.threads)
    counting.sizes[:] = ones.sizes
    if graph.directed:
        block = _lists(counting, 0, graph.vertices, lambda: iter([ones]))
    else:
        block = VertexLists(0, graph.vertices, ones.offsets, ones.neighbors)
    if sources is not None:
        ones = load_rows(graph.out, sources, counting.threads)
    counting.take(ones, block, found)


def _by_blocks(
    counting: Counting, vertices: Integers, blocks: Runs, pieces: tuple[Integers, int], found: tuple[Any, ...]
) -> None:
    """Where they do not. pieces: bytes of each row, and how many may be read at once."""
    graph, (held, most) = counting.graph, pieces
    cut = runs(held[vertices], most)
    kept = load_rows(graph.out, vertices, counting.threads) if len(cut) == 1 else None
    for first, last in blocks:

        def rows(first: int = first, last: int = last) -> Iterator[RowSets]:
            for low, high in runs(held[first:last], most - (0 if kept is None else int(held[vertices].sum()))):
                yield load_rows(graph.out, np.arange(first + low, first + high), counting.threads)

        block = _lists(counting, first, last, rows)
        for low, high in cut:
            ones = kept or load_rows(graph.out, vertices[low:high], counting.threads)
            counting.take(ones, block, tuple(part[low:high] for part in found))
        del block


def _lists(counting: Counting, first: int, last: int, rows: Any) -> VertexLists:
    """The lists of a block, whose rows `rows` gives twice, and the sizes of its sets."""
    starts, at = np.zeros(counting.graph.vertices + 1, np.int64), first
    for part in rows():
        counting.sizes[at : at + len(part.vertices)] = part.sizes
        count_lists(part.neighbors, starts)
        at += len(part.vertices)
    np.cumsum(starts, out=starts)
    members, at = np.empty(int(starts[-1]), counting.graph.out.neighbor_dtype), 0
    for part in rows():
        fill_lists(at, part.offsets, part.neighbors, starts, members)
        at += len(part.vertices)
    shift_starts(starts)
    return VertexLists(first, last, starts, members)


def _table(counting: Counting, vertices: Integers, found: tuple[Any, ...]) -> PairTable:
    """The answer, vertex by vertex in the order of the original ids, the most similar first."""
    numbers, best, common = found
    if len(counting.order):
        order = np.argsort(counting.order[vertices])
        vertices, numbers, best, common = vertices[order], numbers[order], best[order], common[order]
    taken = np.arange(best.shape[1]) < numbers[:, None]
    ends = np.stack([np.repeat(vertices, numbers), best[taken].astype(np.int64)], axis=1)
    return PairTable(counting.graph, ends, common[taken].astype(np.int64), counting.sizes[ends])
