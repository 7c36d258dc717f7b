"""Owns handing sorted rows to the graph writer: edges as they come, degrees without gaps, vertices without edges.

Pieces of rows arrive in order; a row may arrive in several. Rows without edges arrive not at all,
and are filled in, a bounded number at a time.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.jit import jit
from penstock.storage.convert.sort.sort_groups import SortedRows
from penstock.storage.convert.sort.spill_filler import SpillFiller
from penstock.storage.format.adjacency_writer import AdjacencyWriter
from penstock.storage.format.csr_input import Csr

_ZEROS = np.zeros(1 << 16, np.uint32)


class EdgelessCount:
    """Counts the vertices without an edge: a bit for every vertex, set where an edge begins or, with ``ends``, ends.

    There are no bits, and no count, where they are more than ``memory_bytes``.
    """

    def __init__(self, vertices: int, memory_bytes: int, *, ends: bool) -> None:
        self._vertices, self._ends = vertices, ends
        size = (vertices + 7) // 8
        self._bits = np.zeros(size, np.uint8) if size <= memory_bytes else None

    def note(self, rows: SortedRows) -> None:
        """Note the vertices that have an edge in some rows."""
        if self._bits is not None:
            set_rows(self._bits, rows.first, rows.degrees)
            if self._ends:
                set_ends(self._bits, rows.neighbors)

    @property
    def count(self) -> int | None:
        """Vertices without an edge; None where they were not counted."""
        return None if self._bits is None else self._vertices - int(np.bitwise_count(self._bits).sum(dtype=np.int64))


class RowSink:
    """One adjacency being written: takes sorted rows, ascending, and writes their edges and degrees.

    ``edgeless`` counts vertices without an edge, ``backward`` takes the edges with their ends exchanged, where the rows
    have them. Call `finish` at the end.
    """

    def __init__(
        self,
        writer: AdjacencyWriter,
        vertices: int,
        edgeless: EdgelessCount | None,
        backward: SpillFiller | None = None,
    ) -> None:
        self.edges = 0
        self._writer, self._vertices, self._edgeless, self._backward = writer, vertices, edgeless, backward
        self._row = self._pending = self._held_rows = 0
        self._held: list[NDArray[Any]] = []

    def put(self, rows: SortedRows) -> None:
        """Write the next rows; their arrays are the writer's then."""
        self._put_degrees(rows.first, rows.degrees)
        self._writer.append(rows.neighbors, rows.weights, rows.columns)
        self.edges += len(rows.neighbors)
        if self._edgeless is not None:
            self._edgeless.note(rows)
        if self._backward is not None and rows.reverse is not None:
            self._backward.add(rows.reverse)

    def finish(self) -> None:
        """Write what is left."""
        if self._vertices:
            self._advance(self._vertices)
        self._flush()
        self._writer.finish()
        if self._backward is not None:
            self._backward.finish()

    def _put_degrees(self, first: int, degrees: NDArray[np.uint32]) -> None:
        """Take the degrees of rows from ``first`` on; the first may continue the last one, which waits for its rest."""
        if first > self._row:
            self._advance(first)
        self._pending += int(degrees[0])
        if len(degrees) > 1:
            self._hand_pending()
            self._hand(degrees[1:-1])
            self._pending = int(degrees[-1])
            self._row += len(degrees) - 1

    def _advance(self, row: int) -> None:
        """Go to a row; those between have no edges."""
        self._hand_pending()
        missing = row - self._row - 1
        while missing > 0:
            self._hand(_ZEROS[: min(missing, len(_ZEROS))])
            missing -= len(_ZEROS)
        self._row = row

    def _hand_pending(self) -> None:
        self._hand(np.array([self._pending], np.uint64 if self._pending >> 32 else np.uint32))
        self._pending = 0

    def _hand(self, degrees: NDArray[Any]) -> None:
        """Give degrees to the writer, many at a time."""
        self._held.append(degrees)
        self._held_rows += len(degrees)
        if self._held_rows >= len(_ZEROS) or len(self._held) >= 1000:
            self._flush()

    def _flush(self) -> None:
        if self._held_rows:
            self._writer.degrees(np.concatenate(self._held))
        self._held, self._held_rows = [], 0


def csr_of(pieces: Iterable[SortedRows], vertices: int, vertex_dtype: DTypeLike, weight_dtype: DTypeLike | None) -> Csr:
    """Sorted rows, ascending, as an adjacency in memory. weight_dtype: None where they have no weights."""
    offsets = np.zeros(vertices + 1, np.int64)
    neighbors, weights = [np.empty(0, vertex_dtype)], [np.empty(0, weight_dtype)]
    for rows in pieces:
        offsets[rows.first + 1 : rows.first + 1 + len(rows.degrees)] += rows.degrees
        neighbors.append(rows.neighbors)
        if rows.weights is not None:
            weights.append(rows.weights.copy())  # not the memory that they were sorted in
    np.cumsum(offsets, out=offsets)
    return offsets, np.concatenate(neighbors), None if weight_dtype is None else np.concatenate(weights)


@jit
def set_rows(bits: NDArray[np.uint8], first: int, degrees: NDArray[Any]) -> None:
    """Set the bit of every row with a degree."""
    for i in range(len(degrees)):
        if degrees[i] != 0:
            v = first + i
            bits[v >> 3] |= np.uint8(1 << (v & 7))


@jit
def set_ends(bits: NDArray[np.uint8], neighbors: NDArray[Any]) -> None:
    """Set the bit of every neighbor."""
    for i in range(len(neighbors)):
        v = np.int64(neighbors[i])
        bit = np.uint8(1 << (v & 7))
        if bits[v >> 3] & bit == 0:
            bits[v >> 3] |= bit
