"""The rows of a graph in memory while walkers advance: those that are kept, and one partition after another.

Rows before `kept_rows` stay. The others are cut into partitions of whole rows, which go through two slabs: while
walkers advance in one, the next is read. Of a partition only wanted chunks are read, unless most of them are. Where
walkers advance on a GPU, it keeps rows before those that are kept here (`device_run.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.walks import sum_weights
from penstock.engine.kernels.walk_arrays import Window
from penstock.engine.queries.walk_memory import WalkMemory
from penstock.storage.base.slot_pool import HUGE_PAGE, aligned_empty
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.index import Index
from penstock.storage.format.read_plan import MOST_BYTES
from penstock.storage.read.pending_read import PendingRead
from penstock.storage.read.reader import Reader

IN_MEMORY_CHUNK = 1 << 12
"""Edges of what is a chunk of a graph in memory: partitions of its rows, which go to a device, are whole ones."""


@dataclass(frozen=True)
class RowPartition:
    """Rows [v0, v1), whose edges are in chunks [c0, c1)."""

    v0: int
    v1: int
    c0: int
    c1: int


def chunk_of(rows: Adjacency) -> int:
    """Edges of the chunks that partitions of an adjacency are made of."""
    return IN_MEMORY_CHUNK if rows.arrays is not None else rows.chunk_edges


def rows_before(index: Index, edge: int) -> int:
    """How many of the first rows end at an edge or before it."""
    return index.vertices if edge >= index.edges else index.row_of(edge)


def cut(index: Index, chunk: int, rows: tuple[int, int], most: int) -> list[RowPartition]:
    """Cut rows [first, last) into partitions whose chunks have at most so many edges; a row may have no more."""
    found, (v0, last) = [], rows
    while v0 < last:
        e0 = int(index.starts(v0, v0 + 1)[0])
        v1 = min(last, rows_before(index, e0 // chunk * chunk + most))
        end = int(index.starts(v1, v1 + 1)[0])
        assert v1 > v0, "the longest row fits"
        found.append(RowPartition(v0, v1, e0 // chunk, -(-end // chunk)))
        v0 = v1
    return found


def longest_span(index: Index, chunk: int) -> int:
    """Edges of the chunks that hold the row whose edges are in most chunks."""
    longest, step = chunk, 1 << 16
    for first in range(0, index.vertices, step):
        starts = index.starts(first, min(first + step, index.vertices) + 1)
        spans = -(-starts[1:] // chunk) - starts[:-1] // chunk
        longest = max(longest, int(spans.max(initial=1)) * chunk)
    return longest


MOST = 0.5
"""The share of the chunks of a partition that is wanted from which on all are read."""


class RowWindows:
    """Kept rows, and partitions of the others; a context manager. Raises RunError where reading fails.

    Attributes
    ----------
    rows : Adjacency
        All of them.
    first_row, kept_rows : int
        Rows from the one to the other are kept here, those before `first_row` on a device.
    kept, kept_edge : ndarrays and int
        Neighbors and sums of weights (timed: weights as they are) of the edges from `kept_edge` on, kept here.
    partitions : list of RowPartition
        Of the rows from `kept_rows` on, which are read into `slabs`.
    """

    def __init__(
        self, graph: Graph, memory: WalkMemory, *, weighted: bool, timed: bool, threads: int, direct_io: bool
    ) -> None:
        rows = graph.out
        self.rows, self._threads, self.weighted, self._apart = rows, threads, weighted or timed, timed
        self._index = rows.index(threads)
        self._reader: Reader | None = None
        self._none = np.empty(0, rows.neighbor_dtype), np.empty(0, np.float64)
        self.bytes_read = 0
        self.vertices, self.chunk_edges = graph.vertices, chunk_of(rows)
        self.chunks = -(-rows.edges // self.chunk_edges)
        self.first_row = rows_before(self._index, memory.device_edges)
        self.slabs: list[Any] = []
        if rows.arrays is not None:
            self.kept_rows, self.kept_edge = graph.vertices, 0
            self.partitions: list[RowPartition] = []
            self.kept = rows.arrays[0], self._none[1]
            if self.weighted:
                self._sum_in_memory(rows)
            return
        slots = memory.slab_edges
        self.kept_edge = self.start_of(self.first_row) // self.chunk_edges * self.chunk_edges
        count = min(memory.kept_edges, rows.edges - self.kept_edge)
        if self.kept_edge + count < rows.edges:
            count = count // self.chunk_edges * self.chunk_edges
        self.kept_rows = max(self.first_row, rows_before(self._index, self.kept_edge + count))
        self.partitions = self.cut((self.kept_rows, graph.vertices), slots)
        self.kept = aligned_empty(count, rows.neighbor_dtype, HUGE_PAGE), self._sums(count)
        self.slabs = [(aligned_empty(slots, rows.neighbor_dtype, HUGE_PAGE), self._sums(slots)) for _ in range(2)]
        self._weights: list[Any] = [None, None]
        if self.weighted and rows.weight_dtype is not None:
            size = max(slots, memory.piece_edges)
            self._weights = [aligned_empty(size, rows.weight_dtype, HUGE_PAGE) for _ in range(2 if slots else 1)]
        self._reader = Reader(
            graph,
            decode_threads=1 if memory.one_by_one else threads,
            reads_in_flight=memory.reads,
            most_bytes=0 if memory.one_by_one else MOST_BYTES,
            direct_io=direct_io,
        )
        try:
            self._load_kept(memory.piece_edges)
        except BaseException:
            self._reader.close()
            raise

    def __enter__(self) -> RowWindows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reader is not None:
            self._reader.close()

    def start_of(self, row: int) -> int:
        """The first edge of a row; of the row past the last, how many edges there are."""
        return int(self._index.starts(row, row + 1)[0])

    def cut(self, rows: tuple[int, int], most: int) -> list[RowPartition]:
        """Cut rows [first, last) into partitions of at most so many edges."""
        return cut(self._index, self.chunk_edges, rows, most)

    def _sums(self, count: int) -> NDArray[np.float64]:
        return aligned_empty(count, np.float64, HUGE_PAGE) if self.weighted else self._none[1]

    def kept_window(self) -> Window:
        """The kept rows alone."""
        return self._window(RowPartition(0, 0, 0, 0), self._none, np.zeros(0, np.uint8))

    def sweep(
        self, wanted: NDArray[np.uint8], partitions: list[RowPartition] | None = None
    ) -> Iterator[tuple[RowPartition, Window]]:
        """Yield partitions of which chunks are wanted, ascending, each with the rows that are in memory then.

        wanted: of each chunk of the graph, not 0. partitions: others than those of the rows that are not kept.
        """
        among = self.partitions if partitions is None else partitions
        parts = [part for part in among if wanted[part.c0 : part.c1].any()]
        under_way: list[tuple[RowPartition, NDArray[np.uint8], PendingRead]] = []
        try:
            for number in range(len(parts) + 1):
                if number < len(parts):
                    under_way.append(self._begin(parts[number], wanted, number % 2))
                if number > 0:
                    part, here, pending = under_way[0]
                    self.bytes_read += pending.result().bytes
                    under_way.pop(0)
                    neighbors, sums = self.slabs[(number - 1) % 2]
                    window = self._window(part, (neighbors, sums), here)
                    if self.weighted:
                        weights = self._weights[(number - 1) % 2]
                        count = part.v1 - part.v0
                        e0 = part.c0 * self.chunk_edges
                        sum_weights(self._threads, count, np.uint64(part.v0), e0, window, weights, sums, self._apart)
                    yield part, window
        finally:
            for _, _, pending in under_way:
                with suppress(Exception):
                    pending.cancel()

    def _begin(
        self, part: RowPartition, wanted: NDArray[np.uint8], slab: int
    ) -> tuple[RowPartition, NDArray[np.uint8], PendingRead]:
        """Begin to read a partition into a slab; its flags say which chunks."""
        assert self._reader is not None, "rows in memory have no partitions"
        here = (wanted[part.c0 : part.c1] != 0).astype(np.uint8)
        if here.sum() >= MOST * len(here):
            here[:] = 1
        chunks = part.c0 + np.flatnonzero(here)
        e0 = part.c0 * self.chunk_edges
        pending = self._reader.fetch(self.rows, chunks, e0, self.slabs[slab][0], self._weights[slab])
        return part, here, pending

    def _window(self, part: RowPartition, loaded: Any, here: NDArray[np.uint8]) -> Window:
        bases, offsets, shift = self._index.arrays()
        chunk = self.chunk_edges
        v0, v1, e0 = np.uint64(part.v0), np.uint64(part.v1), part.c0 * chunk
        kept_rows, (kept, kept_sums), (neighbors, sums) = np.uint64(self.kept_rows), self.kept, loaded
        return Window(
            bases, offsets, np.uint64(shift), kept_rows, kept, kept_sums, v0, v1, e0, neighbors, sums, chunk, here
        )

    def _sum_in_memory(self, rows: Adjacency) -> None:
        assert rows.arrays is not None, "in memory"
        self.kept = rows.arrays[0], self._sums(rows.edges)
        weights = rows.arrays[1]
        window = self.kept_window()
        sum_weights(self._threads, rows.vertices, np.uint64(0), 0, window, weights, self.kept[1], self._apart)

    def _load_kept(self, piece: int) -> None:
        """Read the kept rows, and sum up their weights."""
        assert self._reader is not None, "rows in memory are not loaded"
        neighbors, sums = self.kept
        weights = self._weights[0]
        chunk, base = self.chunk_edges, self.kept_edge
        last = -(-(base + len(neighbors)) // chunk)
        for part in self.cut((self.first_row, self.kept_rows), piece):
            e0, end = part.c0 * chunk, min(part.c1 * chunk, self.rows.edges)
            chunks = np.arange(part.c0, min(part.c1, last))
            pending = self._reader.fetch(self.rows, chunks, e0, neighbors[e0 - base : end - base], weights)
            self.bytes_read += pending.result().bytes
            if self.weighted:
                window, rows = self.kept_window(), part.v1 - part.v0
                found = sums[e0 - base :]
                sum_weights(self._threads, rows, np.uint64(part.v0), e0, window, weights, found, self._apart)
