"""Owns scipy's ``.npz`` sparse matrices (csr, csc, coo): an entry (row, column) is an edge.

Values are weights unless ``--no-weights`` (a matrix of booleans has none); entries that are stored count,
zeros and repeats too. A rectangular matrix has as many vertices as its longer side. The members of
the archive are read side by side in bounded pieces. Refuses pickled objects, complex values, and
the layouts bsr and dia, which scipy turns into csr.
"""

import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest.bytes.stream import DAMAGE
from penstock.storage.ingest.core.numbers import as_ids, as_weights
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.npy import MOST_BYTES, ArrayStream

MOST_WHOLE = 64
"""Items of a small array: the layout's name, the matrix's shape."""
MAGIC = b"PK\x03\x04"
_MEMBERS = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "coo": ("row", "col")}


class NpzSource:
    """One sparse matrix. See `options.Source`."""

    undirected = False

    def __init__(self, path: str | Path, options: IngestOptions) -> None:
        self.name = str(path)
        if not Path(path).is_file():
            raise InputError(f"{path} is not a file; an archive cannot be read from a pipe")
        if options.columns is not None:
            raise InputError(f"{path}: a matrix has no columns to choose; --no-weights drops its values")
        self._options = options
        self.total_bytes = Path(path).stat().st_size
        self.bytes_done = 0
        with ExitStack() as stack:
            members = _Members(self.name, stack)
            kind, size = members.whole("format"), members.whole("shape")
        if kind.shape != () or kind.dtype.kind not in "SU" or size.shape != (2,) or size.dtype.kind not in "iu":
            raise InputError(f"{self.name} is no sparse matrix of scipy: its format or shape is none; save it again")
        layout = kind.astype("S").item().decode("latin-1") if kind.dtype.kind == "S" else str(kind.item())
        if layout not in _MEMBERS:
            raise InputError(
                f"{self.name}: the sparse layout {layout!r} is not supported; save matrix.tocsr() with "
                "scipy.sparse.save_npz"
            )
        self._layout = layout
        self._rows, self._columns = int(size[0]), int(size[1])
        if not 0 <= min(self._rows, self._columns) <= max(self._rows, self._columns) < MOST_BYTES:
            raise InputError(f"{self.name}: no matrix has shape {self._rows} x {self._columns}; save it again")
        self.known_vertices = max(self._rows, self._columns)

    def batches(self) -> Iterator[EdgeBatch]:
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
            major = self._from_rows(first, entries) if self._layout != "coo" else first.read
            step = max(1, self._options.block_bytes // 16)
            for start in range(0, entries, step):
                count = min(step, entries - start)
                ends = [major(count), second.read(count)]
                weights = None if values is None else as_weights(values.read(count), "data", self.name, start)
                yield self._edges(ends, weights, start)
                self.bytes_done = self.total_bytes * (start + count) // entries
        self.bytes_done = self.total_bytes

    def _entries(self, first: ArrayStream, second: ArrayStream, values: ArrayStream | None) -> int:
        """How many entries there are: so many values, and rows and columns of each."""
        same = [second] + ([] if values is None else [values]) + ([first] if self._layout == "coo" else [])
        shapes = {array.shape for array in same}
        if len(shapes) != 1 or len(second.shape) != 1:
            raise InputError(f"{self.name}: entries, their indices and values are not equally many; save it again")
        return int(second.shape[0])

    def _from_rows(self, offsets: ArrayStream, entries: int) -> Callable[[int], NDArray[Any]]:
        major = self._columns if self._layout == "csc" else self._rows
        if offsets.shape != (major + 1,):
            raise InputError(f"{self.name}: indptr has shape {offsets.shape}, and {major} rows need {major + 1}")
        return _Rows(offsets, entries, major, self.name).read

    def _edges(self, ends: list[NDArray[Any]], weights: NDArray[Any] | None, start: int) -> EdgeBatch:
        if self._layout == "csc":
            ends.reverse()
        sources = self._inside(as_ids(ends[0], "row", self.name, start), self._rows, "row")
        targets = self._inside(as_ids(ends[1], "column", self.name, start), self._columns, "column")
        common = np.promote_types(sources.dtype, targets.dtype)
        return EdgeBatch(sources.astype(common), targets.astype(common), weights)

    def _inside(self, ids: NDArray[Any], size: int, what: str) -> NDArray[Any]:
        if len(ids) and int(ids.max()) >= size:
            raise InputError(
                f"{self.name}: {what} {int(ids.max())} is outside the matrix of {size} {what}s; save it again"
            )
        return ids


class _Rows:
    """The row of every entry, from where rows end."""

    def __init__(self, offsets: ArrayStream, entries: int, rows: int, name: str) -> None:
        self._offsets, self._entries, self._left, self._name = offsets, entries, rows, name
        self._ends = np.empty(0, np.uint64)
        self._row = self._at = 0
        if int(offsets.read(1)[0]) != 0:
            raise self._wrong()

    def read(self, count: int) -> NDArray[Any]:
        """The rows of the next entries."""
        rows = np.empty(count, np.uint64)
        stop = self._at + count
        start = self._at
        while self._at < stop:
            if len(self._ends) == 0:
                if self._left == 0:
                    raise self._wrong()
                step = min(self._left, 1 << 16)
                self._ends = self._offsets.read(step).astype(np.uint64)
                self._left -= step
            self._at, passed, falls = fill_rows(self._ends, (self._at, stop), self._row, rows[self._at - start :])
            if falls or int(self._ends.max()) > self._entries:
                raise self._wrong()
            self._ends = self._ends[passed:]
            self._row += passed
        return rows

    def _wrong(self) -> InputError:
        return InputError(
            f"{self._name}: indptr does not rise from 0 to the {self._entries} entries near row {self._row}; save the "
            "matrix again"
        )


@jit
def fill_rows(
    ends: NDArray[np.uint64], entries: tuple[int, int], row: int, out: NDArray[np.uint64]
) -> tuple[int, int, bool]:
    """Write the row of each of ``entries`` (first, last + 1) as far as ``ends`` of rows from ``row`` on reach.

    Returns:
        the next entry, the rows passed completely, and whether an end fell below the one before.
    """
    start, stop = entries
    at = start
    for i in range(len(ends)):
        end = np.int64(ends[i])
        if end < at:
            return at, i, True
        while at < stop and at < end:
            out[at - start] = row + i
            at += 1
        if end >= stop:
            return at, i, False
    return at, len(ends), False


class _Members:
    """The arrays of an archive, each opened as it is asked for and closed with ``stack``."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self._path, self._stack = path, stack
        with _sound(path):
            self._archive = stack.enter_context(zipfile.ZipFile(path))

    def stream(self, name: str) -> ArrayStream:
        """An array to read front to back."""
        if f"{name}.npy" not in self._archive.namelist():
            raise InputError(
                f"{self._path} is no sparse matrix of scipy: it has no array {name!r}, only "
                f"{', '.join(self._archive.namelist()[:8])}; scipy.sparse.save_npz writes one, numpy.save an edge array"
            )
        with _sound(self._path):
            file = self._stack.enter_context(closing(self._archive.open(f"{name}.npy")))
        array = ArrayStream(_Guarded(file, self._path), f"{self._path}: {name}")
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


class _Guarded:
    """A member whose damage is an InputError."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path

    def read(self, count: int = 0, /) -> bytes:
        with _sound(self._path):
            piece: bytes = self._file.read(count)
            return piece


class _sound:  # noqa: N801 - reads as a word: with _sound(path)
    """Turns what a damaged archive raises into an InputError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (zipfile.BadZipFile, RuntimeError, struct.error, ValueError, *DAMAGE)):
            raise InputError(f"{self._path} is damaged or truncated: {error}; fetch it again") from error
