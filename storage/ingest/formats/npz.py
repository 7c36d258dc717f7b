"""Sparse matrices of scipy (csr, csc, coo): an entry (row, column) is an edge.

Values are weights unless ``--no-weights`` (a matrix of booleans has none); entries that are stored count,
zeros and repeats too. A rectangular matrix has as many vertices as its longer side. The members of
the archive are read side by side in bounded pieces. Refuses pickled objects, complex values, and
the layouts bsr and dia, which scipy turns into csr.
"""

import struct
import zipfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.places import Place, local
from penstock.storage.ingest.bytes.stream import DAMAGE
from penstock.storage.ingest.core.edges import EdgeBatch, as_ids, as_weights, edge_batch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.csr import cut_rows, sources_of
from penstock.storage.ingest.formats.npy import MOST_BYTES, ArrayStream

MOST_WHOLE = 64
"""Items of a small array: the layout's name, the matrix's shape."""
ROWS_AT_ONCE = 1 << 16
_MEMBERS = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "coo": ("row", "col")}


class NpzSource:
    """One sparse matrix. See `core/source.Source`."""

    undirected = False

    def __init__(self, path: Place, options: IngestOptions) -> None:
        self.name = str(path)
        if not local(path).is_file():
            raise InputError(f"{path} is not a file; an archive cannot be read from a pipe")
        if options.columns is not None:
            raise InputError(f"{path}: a matrix has no columns to choose; --no-weights drops its values")
        self._options = options
        self.total_bytes = local(path).stat().st_size
        self.bytes_done = 0
        with ExitStack() as stack:
            members = _Members(self.name, stack)
            kind, size = members.whole("format"), members.whole("shape")
        if kind.shape != () or kind.dtype.kind not in "SU" or size.shape != (2,) or size.dtype.kind not in "iu":
            raise InputError(f"{self.name} is no sparse matrix of scipy: its format or shape is none; save it again")
        layout = kind.astype("S").item().decode("latin-1") if kind.dtype.kind == "S" else str(kind.item())
        if layout not in _MEMBERS:
            raise InputError(
                f"{self.name}: the sparse layout {brief(layout)!r} is not supported; save matrix.tocsr() with "
                "scipy.sparse.save_npz"
            )
        self._layout = layout
        self._rows, self._columns = int(size[0]), int(size[1])
        if not 0 <= min(self._rows, self._columns) <= max(self._rows, self._columns) < MOST_BYTES:
            raise InputError(f"{self.name}: no matrix has shape {self._rows} x {self._columns}; save it again")
        self.known_vertices = max(self._rows, self._columns)

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the entries as edges, in stored order.

        Raises:
            InputError: the archive is damaged, a value is no weight, or indices do not fit the shape.
        """
        with ExitStack() as stack:
            members = _Members(self.name, stack)
            first, second = (members.stream(name) for name in _MEMBERS[self._layout])
            values = None if self._options.weights is False else members.stream("data")
            entries = self._entries(first, second, values)
            if values is not None and values.dtype.kind == "b":
                values = None
            if values is not None and values.dtype.kind not in "iuf":
                raise InputError(f"{self.name}: values of {values.dtype} cannot be weights; --no-weights drops them")
            done = 0
            for major in self._coordinates(first, entries) if self._layout == "coo" else self._rows_of(first, entries):
                weights = None if values is None else as_weights(values.read(len(major)), "data", self.name, done)
                yield self._edges([major, second.read(len(major))], weights, done)
                done += len(major)
                self.bytes_done = self.total_bytes * done // entries
        self.bytes_done = self.total_bytes

    def _entries(self, first: ArrayStream, second: ArrayStream, values: ArrayStream | None) -> int:
        """How many entries there are: so many values, and rows and columns of each."""
        same = [second] + ([] if values is None else [values]) + ([first] if self._layout == "coo" else [])
        shapes = {array.shape for array in same}
        if len(shapes) != 1 or len(second.shape) != 1:
            raise InputError(f"{self.name}: entries, their indices and values are not equally many; save it again")
        return int(second.shape[0])

    def _coordinates(self, rows: ArrayStream, entries: int) -> Iterator[NDArray[Any]]:
        """The row of every entry, a bounded piece at a time."""
        step = max(1, self._options.block_bytes // 16)
        for start in range(0, entries, step):
            yield rows.read(min(step, entries - start))

    def _rows_of(self, offsets: ArrayStream, entries: int) -> Iterator[NDArray[Any]]:
        """As `_coordinates`, from where the rows (of csc: the columns) end."""
        rows = self._columns if self._layout == "csc" else self._rows
        if offsets.shape != (rows + 1,):
            raise InputError(f"{self.name}: indptr has shape {offsets.shape}, and {rows} rows need {rows + 1}")
        last = offsets.read(1).astype(np.uint64)
        self._check_rising(int(last[0]) == 0, entries, 0)
        for first in range(0, rows, ROWS_AT_ONCE):
            ends = np.append(last, offsets.read(min(ROWS_AT_ONCE, rows - first)).astype(np.uint64))
            wrong = (ends[1:] < ends[:-1]) | (ends[1:] > np.uint64(entries))
            self._check_rising(not wrong.any(), entries, first + int(np.argmax(wrong)))
            for piece in cut_rows(first, ends.astype(np.int64), max(1, self._options.block_bytes // 16)):
                yield sources_of(piece, ends.dtype)
            last = ends[-1:]
        self._check_rising(int(last[0]) == entries, entries, rows)

    def _check_rising(self, rising: bool, entries: int, row: int) -> None:
        if not rising:
            raise InputError(
                f"{self.name}: indptr does not rise from 0 to the {entries} entries near row {row}; save the "
                "matrix again"
            )

    def _edges(self, ends: list[NDArray[Any]], weights: NDArray[Any] | None, start: int) -> EdgeBatch:
        if self._layout == "csc":
            ends.reverse()
        sources = self._inside(as_ids(ends[0], "row", self.name, start), self._rows, "row")
        targets = self._inside(as_ids(ends[1], "column", self.name, start), self._columns, "column")
        return edge_batch(sources, targets, weights)

    def _inside(self, ids: NDArray[Any], size: int, what: str) -> NDArray[Any]:
        if len(ids) and int(ids.max()) >= size:
            raise InputError(
                f"{self.name}: {what} {int(ids.max())} is outside the matrix of {size} {what}s; save it again"
            )
        return ids


class _Members:
    """The arrays of an archive, each opened as it is asked for and closed with ``stack``."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self._path, self._stack = path, stack
        with _sound(path):
            self._archive = stack.enter_context(zipfile.ZipFile(path))

    def stream(self, name: str) -> ArrayStream:
        """An array to read front to back."""
        if f"{name}.npy" not in self._archive.namelist():
            listed = brief(", ".join(self._archive.namelist()[:8]))
            raise InputError(
                f"{self._path} is no sparse matrix of scipy: it has no array {name!r}, only {listed}; "
                "scipy.sparse.save_npz writes one, numpy.save an edge array"
            )
        with _sound(self._path):
            file = self._stack.enter_context(closing(self._archive.open(f"{name}.npy")))

        def read(count: int) -> bytes:
            with _sound(self._path):
                return file.read(count)

        array = ArrayStream(read, f"{self._path}: {name}")
        if len(array.shape) > 1:
            raise InputError(f"{self._path}: {name} has shape {array.shape}, and must be one list; save it again")
        return array

    def whole(self, name: str) -> NDArray[Any]:
        """A small array, all of it."""
        array = self.stream(name)
        count = prod(array.shape)
        if count > MOST_WHOLE:
            raise InputError(f"{self._path}: {name} has {count} items, and must be one or two; save it again")
        return array.read(count).reshape(array.shape)


@contextmanager
def _sound(path: str) -> Iterator[None]:
    """Turn what a damaged archive raises into an InputError."""
    try:
        yield
    except (zipfile.BadZipFile, RuntimeError, struct.error, ValueError, *DAMAGE) as error:
        raise InputError(f"{path} is damaged or truncated: {brief(str(error))}; fetch it again") from error
