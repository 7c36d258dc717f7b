"""The edges of a graph once more, window by window of the vertices that they lead to.

Runs whose values of vertices are in a file hold one window of them, and so read every edge once. One pass over each
adjacency, when it is written, hands the edges of each chunk to as many writers as there are windows.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.base.threads import ordered_map
from penstock.storage.format.adjacency_writer import AdjacencyWriter
from penstock.storage.format.graph import Adjacency, adjacency_of
from penstock.storage.format.row_pages import page_rows
from penstock.storage.format.schema import CHUNK_EDGES, CHUNK_VERTICES, DIRECTIONS, MOST_WINDOWS, NEIGHBORS, STRIPE_RUN
from penstock.storage.format.writer import GraphWriter

VALUE_BYTES = 8
"""Of the values of a vertex, for which windows are made by themselves."""
HELD_CHUNKS = 3
"""Raw chunks of a window that are in memory: one being filled, one waiting, and what is left of the last piece."""
SHARE = 2
"""One part in so many of the budget is for windows: of their values in a run, and of their chunks while written."""


def most_windows(edge_bytes: int, stripes: int, host_memory: int) -> int:
    """How many windows are written at once in so much memory, one at least."""
    chunk = edge_bytes * CHUNK_EDGES
    return max(1, host_memory // (chunk * (HELD_CHUNKS + STRIPE_RUN * max(1, stripes))))


def window_vertices(windows: int | str | None, vertices: int, host_memory: int, most: int) -> int:
    """Return the vertices of a window, whole pages of the row index; 0: there are none.

    windows: how many; "auto": as few as have room for values in so much memory, none where one would do. most: as many
    as can be written. Raises InputError for more.
    """
    if windows is None or vertices == 0:
        return 0
    page = page_rows(CHUNK_VERTICES)
    pages = -(-vertices // page)
    if windows == "auto":
        room = max(1, host_memory // SHARE // (VALUE_BYTES * page), -(-pages // MOST_WINDOWS))
        count = min(-(-pages // room), most)
        return 0 if count == 1 else -(-pages // count) * page
    count = min(int(windows), pages)
    if count > most:
        raise InputError(
            f"--windows: {count} windows are written at once, for which --host-memory {format_bytes(host_memory)} is "
            f"too small; give more, or at most {most} windows"
        )
    return -(-pages // count) * page


def write_windows(writer: GraphWriter, size: int, pool: Executor, threads: int, say: Callable[[int], None]) -> None:
    """Write the windows, of so many vertices each, of all adjacencies, which are finished.

    say: told how many edges are done.
    """
    opened, done = writer.written(), 0
    for direction in DIRECTIONS:
        if f"{direction}/{NEIGHBORS}" in opened.frames:
            adjacency = adjacency_of(opened, direction)
            for edges in _split(writer, adjacency, size, pool, threads):
                done += edges
                say(done)


def _split(writer: GraphWriter, adjacency: Adjacency, size: int, pool: Executor, threads: int) -> Iterator[int]:
    """Write the windows of one adjacency; yield how many edges were handed to them, chunk by chunk."""
    assert adjacency.degrees is not None, "it is one of a file"
    count, step = -(-adjacency.vertices // size), adjacency.chunk_edges
    split = _Split([writer.window(adjacency.direction, w, adjacency.degrees.kind) for w in range(count)], size)
    rows = adjacency.degrees.load()

    def read(chunk: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        return adjacency.edges_in(chunk * step, min((chunk + 1) * step, adjacency.edges))

    for neighbors, weights in ordered_map(pool, read, range(adjacency.chunks), threads + 1):
        at = 0
        while at < len(neighbors):
            if not split.left:
                split.begin(next(rows))
                continue
            part = slice(at, at + split.left)
            at += split.take(neighbors[part], None if weights is None else weights[part])
        yield len(neighbors)
    for degrees in rows:
        split.begin(degrees)
    split.finish()


class _Split:
    """The windows of one adjacency, and a chunk of its rows at a time, whose edges come in pieces."""

    def __init__(self, windows: list[AdjacencyWriter], size: int) -> None:
        self._windows, self._size = windows, size
        self._counts = np.zeros((len(windows), 0), np.uint8)
        self._ends = np.zeros(0, np.int64)
        self._row = self._done = self.left = 0

    def begin(self, degrees: NDArray[Any]) -> None:
        """Go on to the next rows, when all edges of those before were taken."""
        for window, found in zip(self._windows, self._counts, strict=True):
            window.degrees(found)
        self._counts = np.zeros((len(self._windows), len(degrees)), degrees.dtype)
        self._ends = np.cumsum(degrees, dtype=np.int64)
        self._row, self._done, self.left = 0, 0, int(degrees.sum(dtype=np.int64))

    def take(self, neighbors: NDArray[Any], weights: NDArray[Any] | None) -> int:
        """Hand the next edges of these rows to their windows; return how many."""
        totals = np.zeros(len(self._windows), np.int64)
        self._row = _count(neighbors, self._ends, self._row, self._done, self._size, self._counts, totals)
        starts = np.cumsum(totals) - totals
        arrays = [neighbors] if weights is None else [neighbors, weights]
        ordered = [_ordered(neighbors, self._size, starts, items) for items in arrays]
        for window, first, length in zip(self._windows, starts.tolist(), totals.tolist(), strict=True):
            if length:  # copies, for the writer keeps what it gets until a chunk is full
                own = [items[first : first + length].copy() for items in ordered]
                window.append(own[0], own[1] if own[1:] else None)
        self._done += len(neighbors)
        self.left -= len(neighbors)
        return len(neighbors)

    def finish(self) -> None:
        """Write what is left."""
        self.begin(np.zeros(0, np.uint8))
        for window in self._windows:
            window.finish()


def _ordered(neighbors: NDArray[Any], size: int, starts: NDArray[np.int64], items: NDArray[Any]) -> NDArray[Any]:
    """The items of edges by window, in their order within each."""
    out = np.empty_like(items)
    _order(neighbors, size, starts.copy(), items, out)
    return out


@jit
def _count(neighbors: Any, ends: Any, row: int, first: int, size: Any, counts: Any, totals: Any) -> int:
    """Count the edges of each row, and of all, that lead to each window; return the row of the last.

    ends: of the rows' edges; first: the number of the first edge among these. Neighbors of a row ascend.
    """
    low = high = np.int64(0)
    window = low
    for i in range(len(neighbors)):
        while ends[row] <= first + i:
            row += 1
        u = np.int64(neighbors[i])
        if u < low or u >= high:
            window = u // size
            low = window * size
            high = low + size
        counts[window, row] += 1
        totals[window] += 1
    return row


@jit
def _order(neighbors: Any, size: Any, places: Any, items: Any, out: Any) -> None:
    """Write each item to the next place of its neighbor's window."""
    low = high = np.int64(0)
    window = low
    for i in range(len(neighbors)):
        u = np.int64(neighbors[i])
        if u < low or u >= high:
            window = u // size
            low = window * size
            high = low + size
        out[places[window]] = items[i]
        places[window] += 1
