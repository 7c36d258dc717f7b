"""Owns handing sorted rows to the graph writer: edges as they come, degrees without gaps.

Pieces of rows arrive in order; a row may arrive in several. Rows without edges arrive not at all,
and are filled in, a bounded number at a time.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.sort.sort_groups import SortedRows

_ZEROS = np.zeros(1 << 16, np.uint32)


class RowSink(Protocol):
    """What `GraphWriter.adjacency` returns."""

    def append(self, neighbors: NDArray[Any], weights: NDArray[Any] | None) -> None:
        """Take the next edges in CSR order."""
        ...

    def degrees(self, degrees: NDArray[Any]) -> None:
        """Take the degrees of the next vertices."""
        ...

    def finish(self) -> None:
        """Say that all was given."""
        ...


class DegreeStream:
    """Degrees of all vertices in order, from pieces of rows. The last row waits for its rest."""

    def __init__(self, writer: RowSink, vertices: int) -> None:
        self._writer = writer
        self._vertices = vertices
        self._row = 0
        self._pending = 0
        self._held: list[NDArray[Any]] = []
        self._held_rows = 0

    def put(self, first: int, degrees: NDArray[np.uint32]) -> None:
        """Take the degrees of rows from ``first`` on; the first may continue the last one."""
        if first > self._row:
            self._advance(first)
        self._pending += int(degrees[0])
        if len(degrees) > 1:
            self._one(self._pending)
            self._hand(degrees[1:-1])
            self._pending = int(degrees[-1])
            self._row += len(degrees) - 1

    def finish(self) -> None:
        """Fill up to the last vertex."""
        if self._vertices:
            self._advance(self._vertices)
        self._flush()

    def _advance(self, row: int) -> None:
        self._one(self._pending)
        self._pending = 0
        missing = row - self._row - 1
        while missing > 0:
            self._hand(_ZEROS[: min(missing, len(_ZEROS))])
            missing -= len(_ZEROS)
        self._row = row

    def _one(self, degree: int) -> None:
        self._hand(np.array([degree], np.uint64 if degree >> 32 else np.uint32))

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


def write_rows(writer: RowSink, rows: Iterable[SortedRows], vertices: int) -> Iterator[SortedRows]:
    """Write rows as they come, and yield each when it is written; finish when they end."""
    degrees = DegreeStream(writer, vertices)
    for piece in rows:
        degrees.put(piece.first, piece.degrees)
        writer.append(piece.neighbors, piece.weights)
        yield piece
    degrees.finish()
    writer.finish()
