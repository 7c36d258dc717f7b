"""Owns raw binary input: pairs of ids, and CSR arrays, all little-endian, read in bounded pieces.

`binary32` and `binary64` are source, target, source, target, ... as uint32 or uint64, plain or
compressed. `csr` is three files: uint64 offsets, uint32 or uint64 neighbors, and weights if any;
which of the two, and which weights, follows from the files' sizes. Refuses a size that is no
multiple of the record, and offsets that do not fit the neighbors.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.edges import EdgeBatch
from penstock.storage.errors import InputError
from penstock.storage.ingest.options import IngestOptions
from penstock.storage.ingest.raw import STANDARD_INPUT
from penstock.storage.ingest.stream import Stream
from penstock.storage.native import native

_WEIGHTS = {1: "u1", 2: "<u2", 4: "<u4", 8: "<f8"}


class PairSource:
    """Files of (source, target) pairs, one after another. See `options.Source`."""

    known_vertices: int | None = None
    undirected = False

    def __init__(self, paths: Sequence[str | Path], dtype: np.dtype[Any], options: IngestOptions) -> None:
        self.name = ", ".join(map(str, paths))
        self._paths = list(paths)
        self._dtype = dtype.newbyteorder("<")
        self._block_bytes = options.block_bytes // 16 * 16
        if options.columns is not None or options.weights:
            raise InputError(f"{self.name}: binary pairs have no columns and no weights to choose")
        sizes = [_plain_size(path) for path in paths]
        self.total_bytes = None if None in sizes else sum(size or 0 for size in sizes)
        self.bytes_done = 0

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the pairs, in order.

        Raises:
            InputError: a file's length is no multiple of a pair's, or the file is absent.
        """
        record = 2 * self._dtype.itemsize
        for path in self._paths:
            before = self.bytes_done
            total = 0
            with Stream(path) as stream:
                while True:
                    block = np.empty(self._block_bytes, np.uint8)
                    count = stream.read_into(memoryview(block))
                    total += count
                    self.bytes_done = before + stream.raw_done
                    if count % record:
                        raise InputError(
                            f"{stream.name}: {total} bytes are no whole number of {record}-byte "
                            f"pairs of {self._dtype.name}; the file is truncated, or --format "
                            "names another record"
                        )
                    pairs = block[:count].view(self._dtype)
                    if count:
                        yield EdgeBatch(pairs[::2].copy(), pairs[1::2].copy())
                    if count < len(block):
                        break


class CsrSource:
    """OFFSETS NEIGHBORS [WEIGHTS]. See `options.Source`."""

    undirected = False

    def __init__(self, paths: Sequence[str | Path], options: IngestOptions) -> None:
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
        self._offsets = _Column(paths[0], np.dtype("<u8"))
        self._edges = int(self._offsets.read(self.known_vertices, self.known_vertices + 1)[0])
        width = self._width(paths[1], sizes[1], (4, 8), "neighbors")
        self._neighbors = _Column(paths[1], np.dtype(f"<u{width}"))
        self._weights = None
        if len(paths) == 3 and options.weights is not False:
            width = self._width(paths[2], sizes[2], (1, 2, 4, 8), "weights")
            self._weights = _Column(paths[2], _weight_dtype(paths[2], width))
        elif options.weights:
            raise InputError("--format csr: --weights needs a third file, WEIGHTS")
        self._piece_edges = max(1, options.block_bytes // 16)

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the edges row by row, in order.

        Raises:
            InputError: offsets fall, or a neighbor is no vertex.
        """
        if int(self._offsets.read(0, 1)[0]) != 0:
            raise InputError(f"{self.name}: the first offset must be 0")
        vertex = 0
        for start in range(0, self._edges, self._piece_edges):
            stop = min(start + self._piece_edges, self._edges)
            neighbors = self._neighbors.read(start, stop)
            if int(neighbors.max()) >= self.known_vertices:
                at = start + int(np.argmax(neighbors >= neighbors.dtype.type(self.known_vertices)))
                raise InputError(
                    f"{self.name}: neighbor {neighbors[at - start]} (number {at}) is no vertex: "
                    f"the offsets state {self.known_vertices} vertices"
                )
            sources, vertex = self._rows(start, stop, vertex, neighbors.dtype)
            weights = None if self._weights is None else self._weights.read(start, stop)
            yield EdgeBatch(sources, neighbors, weights)
            self.bytes_done = int(self.total_bytes * (stop / self._edges))
        self._check_last_rows(vertex)

    def _rows(self, start: int, stop: int, vertex: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
        """The sources of edges [start, stop), the first of which is in row ``vertex`` or later."""
        sources = np.empty(stop - start, dtype)
        at = start
        while at < stop:
            ends = self._ends(vertex)
            at, passed, falls = fill_rows(ends, at, stop, vertex, sources[at - start :])
            vertex += passed
            if falls or (len(ends) and ends.max() > self._edges):
                raise self._falling(vertex)
        return sources, vertex

    def _check_last_rows(self, vertex: int) -> None:
        """After the last edge every row must be empty."""
        while vertex < self.known_vertices:
            ends = self._ends(vertex)
            wrong = ends != np.uint64(self._edges)
            if wrong.any():
                raise self._falling(vertex + int(np.argmax(wrong)))
            vertex += len(ends)

    def _ends(self, vertex: int) -> NDArray[np.uint64]:
        """Where the rows from ``vertex`` on end, as many as are read at once."""
        last = min(vertex + max(1 << 12, self._piece_edges), self.known_vertices)
        return self._offsets.read(vertex + 1, last + 1)

    def _falling(self, vertex: int) -> InputError:
        return InputError(
            f"{self.name}: the offset after vertex {vertex} is smaller than the one before, or "
            "larger than the last; offsets must rise from 0 to the number of edges"
        )

    def _width(self, path: str | Path, size: int, widths: tuple[int, ...], what: str) -> int:
        for width in widths:
            if size == width * self._edges:
                return width
        raise InputError(
            f"{path}: {size} bytes do not hold {self._edges} {what} (the last offset) of "
            f"{' or '.join(map(str, widths))} bytes; the file is truncated, or not these offsets'"
        )


@native
def fill_rows(
    ends: NDArray[np.uint64], at: int, stop: int, vertex: int, sources: NDArray[Any]
) -> tuple[int, int, bool]:
    """Write the row of each edge [at, stop) into ``sources`` as far as ``ends`` reach.

    Returns:
        the next edge, the rows passed completely, and whether an end fell below the one before.
    """
    start = at
    for row in range(len(ends)):
        end = np.int64(ends[row])
        if end < at:
            return at, row, True
        while at < stop and at < end:
            sources[at - start] = vertex + row
            at += 1
        if end >= stop:
            return at, row, False
    return at, len(ends), False


class _Column:
    """One array in a file, read by position (reading is not mapping: pages are not ours to keep)."""

    def __init__(self, path: str | Path, dtype: np.dtype[Any]) -> None:
        self._path = path
        self._dtype = dtype

    def read(self, start: int, stop: int) -> NDArray[Any]:
        array = np.fromfile(self._path, self._dtype, stop - start, offset=start * self._dtype.itemsize)
        if len(array) < stop - start:
            raise InputError(f"{self._path} became shorter while it was read")
        return array


def _weight_dtype(path: str | Path, width: int) -> np.dtype[Any]:
    """By width; four bytes are floats if the file is named so (``.f32``, ``.float32``)."""
    floats = any(part in (".f32", ".float32", ".float") for part in Path(path).suffixes)
    return np.dtype("<f4" if width == 4 and floats else _WEIGHTS[width])


def _plain_size(path: str | Path) -> int | None:
    return Path(path).stat().st_size if Path(path).is_file() else None


def _file_size(path: str | Path) -> int:
    if str(path) == STANDARD_INPUT:
        raise InputError("--format csr reads files, not standard input")
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder; name the files in it")
    size = _plain_size(path)
    if size is None:
        raise InputError(f"{path} does not exist; check the name")
    return size
