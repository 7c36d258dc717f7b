"""Raw CSR, files OFFSETS NEIGHBORS [WEIGHTS]: little-endian uint64 offsets, uint32 or uint64 neighbors, weights.

Which of the two, and which weights, follows from the files' sizes. Offsets are read in order, by whoever asks for
pieces of rows; neighbors and weights by position, in any thread. Refuses offsets that fall or do not fit the
neighbors, and neighbors that are no vertex.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.base.places import Place
from penstock.storage.base.threads import pooled_map
from penstock.storage.ingest.bytes.file import STANDARD_INPUT, PositionedFile
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions, RowPiece

_WEIGHTS = {1: "u1", 2: "<u2", 4: "<u4", 8: "<f8"}
LEAST_ROWS = 1 << 12


class CsrSource:
    """OFFSETS NEIGHBORS [WEIGHTS]: rows ascend, edges within a row are in any order. See `core/source.Source`."""

    undirected = False

    def __init__(self, paths: Sequence[Place], options: IngestOptions) -> None:
        if len(paths) not in (2, 3):
            raise InputError("--format csr takes two or three files: OFFSETS NEIGHBORS [WEIGHTS]")
        self.name = ", ".join(map(str, paths))
        sizes = [_file_size(path) for path in paths]
        self.total_bytes = sum(sizes)
        self.bytes_done = 0
        if sizes[0] % 8 or sizes[0] == 0:
            raise InputError(
                f"{paths[0]}: {sizes[0]} bytes are no whole number of uint64 offsets, one more than vertices"
            )
        self.known_vertices = sizes[0] // 8 - 1
        self._offsets = _column(paths[0], np.dtype("<u8"))
        self.edges = int(self._offsets(self.known_vertices, self.known_vertices + 1)[0])
        width = self._width(paths[1], sizes[1], (4, 8), "neighbors")
        self._neighbors = _column(paths[1], np.dtype(f"<u{width}"))
        self._weights = None
        if len(paths) == 3 and options.weights is not False:
            width = self._width(paths[2], sizes[2], (1, 2, 4, 8), "weights")
            self._weights = _column(paths[2], _weight_dtype(paths[2], width))
        elif options.weights:
            raise InputError("--format csr: --weights needs a third file, WEIGHTS")
        self._threads = options.workers
        self._piece_edges = max(1, options.block_bytes // 16)
        self._rows_at_once = max(LEAST_ROWS, options.block_bytes // 16)

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges row by row, in order.

        Raises:
            InputError: offsets fall, or a neighbor is no vertex.
        """

        def read(piece: RowPiece) -> EdgeBatch:
            neighbors, weights = self.load(piece)
            return EdgeBatch(sources_of(piece, neighbors.dtype), neighbors, weights)

        yield from pooled_map(read, self.pieces(self._piece_edges), self._threads, "csr")

    def pieces(self, limit: int) -> Iterator[RowPiece]:
        """Cut all edges into pieces of at most ``limit``, in order.

        Raises:
            InputError: offsets do not start at 0 or fall.
        """
        if int(self._offsets(0, 1)[0]) != 0:
            raise InputError(f"{self.name}: the first offset must be 0")
        end = self.known_vertices
        for first in range(0, end, self._rows_at_once):
            offsets = self._offsets(first, min(first + self._rows_at_once, end) + 1)
            self._check_offsets(first, offsets)
            for piece in cut_rows(first, offsets.astype(np.int64), limit):
                self.bytes_done = int(self.total_bytes * (piece.offsets[-1] / self.edges))
                yield piece
        self.bytes_done = self.total_bytes

    def load(self, piece: RowPiece) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Read a piece's neighbors and weights, new arrays; any thread may.

        Raises:
            InputError: a neighbor is no vertex.
        """
        start, stop = int(piece.offsets[0]), int(piece.offsets[-1])
        neighbors = self._neighbors(start, stop)
        if int(neighbors.max(initial=0)) >= self.known_vertices:
            at = start + int(np.argmax(neighbors >= neighbors.dtype.type(self.known_vertices)))
            raise InputError(
                f"{self.name}: neighbor {neighbors[at - start]} (number {at}) is no vertex: "
                f"the offsets state {self.known_vertices} vertices"
            )
        return neighbors, None if self._weights is None else self._weights(start, stop)

    @property
    def weighted(self) -> bool:
        """Whether there is a file of weights."""
        return self._weights is not None

    def weights(self) -> Iterator[NDArray[Any]]:
        """Read the weights alone, in any pieces."""
        if self._weights is not None:
            for start in range(0, self.edges, self._piece_edges):
                yield self._weights(start, min(start + self._piece_edges, self.edges))

    def _check_offsets(self, first: int, offsets: NDArray[np.uint64]) -> None:
        """Refuse offsets of the rows from ``first`` on that cannot be."""
        wrong = (offsets[1:] < offsets[:-1]) | (offsets[1:] > np.uint64(self.edges))
        if wrong.any():
            raise InputError(
                f"{self.name}: the offset after vertex {first + int(np.argmax(wrong))} is smaller than the one "
                "before, or larger than the last; offsets must rise from 0 to the number of edges"
            )

    def _width(self, path: Place, size: int, widths: tuple[int, ...], what: str) -> int:
        for width in widths:
            if size == width * self.edges:
                return width
        raise InputError(
            f"{path}: {size} bytes do not hold {self.edges} {what} (the last offset) of "
            f"{' or '.join(map(str, widths))} bytes; the file is truncated, or not these offsets'"
        )


def cut_rows(first: int, offsets: NDArray[np.int64], limit: int) -> Iterator[RowPiece]:
    """Cut the rows from vertex ``first`` on, which ``offsets`` divide, into pieces of at most ``limit`` edges.

    Rows without edges may be left out.
    """
    row, rows = 0, len(offsets) - 1
    while row < rows:
        start, end = int(offsets[row]), int(offsets[row + 1])
        if end - start > limit:
            for at in range(start, end, limit):
                yield RowPiece(first + row, np.array([at, min(at + limit, end)], np.int64), whole=False)
            row += 1
        else:
            last = int(np.searchsorted(offsets, start + limit, "right")) - 1
            if offsets[last] > start:
                yield RowPiece(first + row, offsets[row : last + 1])
            row = last


def sources_of(piece: RowPiece, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The row of each edge of a piece."""
    sources = np.empty(piece.edges, dtype)
    fill_sources(piece.offsets, piece.first, sources)
    return sources


@jit
def fill_sources(offsets: NDArray[np.int64], first: int, sources: NDArray[Any]) -> None:
    """Write the row of each edge into ``sources``, rows counted from vertex ``first``."""
    begin = offsets[0]
    for row in range(len(offsets) - 1):
        for at in range(offsets[row] - begin, offsets[row + 1] - begin):
            sources[at] = first + row


def _column(path: Place, dtype: np.dtype[Any]) -> Callable[[int, int], NDArray[Any]]:
    """What reads items start..stop-1 of an array in a file, by position."""

    def read(start: int, stop: int) -> NDArray[Any]:
        array = np.empty(stop - start, dtype)
        with PositionedFile(path) as file:
            file.read(start * dtype.itemsize, array)
        return array

    return read


def _weight_dtype(path: Place, width: int) -> np.dtype[Any]:
    """By width; four bytes are floats if the file is named so (``.f32``, ``.float32``)."""
    floats = any(part in (".f32", ".float32", ".float") for part in PurePath(path).suffixes)
    return np.dtype("<f4" if width == 4 and floats else _WEIGHTS[width])


def _file_size(path: Place) -> int:
    if str(path) == STANDARD_INPUT:
        raise InputError("--format csr reads files, not standard input")
    with PositionedFile(path) as file:
        return file.size
