"""NumPy: (m, 2) or (m, 3) numbers, or records with two or three fields; never pickled objects.

A third column is the weight unless ``--no-weights``; ``--columns`` chooses others, by position or by the
records' names. Files are read in bounded pieces, plain or compressed. Refuses pickled objects, whose
loading would run whatever code the file holds.
"""

import warnings
from collections.abc import Callable, Generator, Iterator
from math import prod
from pathlib import Path
from tokenize import TokenError
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, brief
from penstock.storage.ingest.bytes.stream import InputFiles, Stream
from penstock.storage.ingest.core.edges import EdgeBatch, as_ids, as_weights, edge_batch
from penstock.storage.ingest.core.source import IngestOptions

MOST_BYTES = 1 << 62
"""No array is larger, whatever its header says."""
MOST_ROW_BYTES = 1 << 16
"""Bytes of one row, or of one item: edges have two or three columns, and a table of some more is still one."""
_MALFORMED = (ValueError, EOFError, TypeError, SyntaxError, LookupError, OverflowError, RecursionError, TokenError)


Read = Callable[[int], bytes]
"""Gives up to so many of the next bytes; none at the end."""


def _head(read: Read) -> Any:
    """The beginning of a file, of which nobody may want more at once than a header has."""

    def checked(count: int = 0) -> bytes:
        if count > MOST_ROW_BYTES:
            raise ValueError(f"its header claims to have {count} bytes")
        return read(count)

    return SimpleNamespace(read=checked)


class ArrayStream:
    """One array of the NPY format, read front to back.

    Attributes: ``shape``, ``dtype``, ``fortran`` (columns follow each other).

    Raises:
        InputError: the header is damaged or claims what no file holds, or the array holds Python objects.
    """

    def __init__(self, read: Read, name: str) -> None:
        self._read, self._name = read, name
        try:
            head = _head(read)
            version = npy_format.read_magic(head)
            parse = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
            with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote
                self.shape, self.fortran, self.dtype = parse(head)
        except _MALFORMED as error:
            raise InputError(f"{name} is no readable NumPy array: {brief(str(error))}; save it again") from error
        if self.dtype.hasobject:
            raise InputError(
                f"{name} holds pickled Python objects, which are never loaded; save numbers: "
                "numpy.save(FILE, array.astype(...))"
            )
        size = self.dtype.itemsize
        if not 0 < size <= MOST_ROW_BYTES or min(self.shape, default=0) < 0 or prod(self.shape) > MOST_BYTES // size:
            raise InputError(
                f"{name} claims to be {brief(str(self.shape))} items of {size} bytes, which no file has; fetch it again"
            )

    def read(self, items: int) -> NDArray[Any]:
        """The next ``items`` of the array, in the order of the file.

        Raises:
            InputError: the file ends before.
        """
        out = np.empty(items, self.dtype)
        view = memoryview(out.view(np.uint8)) if items else memoryview(b"")
        done = 0
        while done < len(view):
            piece = self._read(len(view) - done)
            if not piece:
                raise InputError(
                    f"{self._name} is truncated: its array of shape {self.shape} ends early; fetch it again"
                )
            view[done : done + len(piece)] = piece
            done += len(piece)
        return out


class NpySource(InputFiles):
    """Edge arrays, one file after another. See `core/source.Source`."""

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the rows as edges, in order.

        Raises:
            InputError: a file is no such array, lacks a column, or a value is no id or weight.
        """
        for stream in self._streams():
            array = ArrayStream(stream.read, stream.name)
            chosen = _chosen(array, self._options, stream.name)
            row = 0
            for columns in self._columns(array, stream, chosen):
                batch = _edges(columns, chosen, stream.name, row)
                row += len(batch)
                if len(batch):
                    yield batch

    def _columns(self, array: ArrayStream, stream: Stream, chosen: list[int | str]) -> Iterator[list[NDArray[Any]]]:
        """The chosen columns, so many rows at a time."""
        rows = array.shape[0]
        width = 1 if array.dtype.names else array.shape[1]
        step = max(1, self._options.block_bytes // (width * array.dtype.itemsize))
        if array.fortran and rows > 1 and not array.dtype.names:
            yield from _by_column(array, stream, chosen, step)
            return
        for first in range(0, rows, step):
            count = min(step, rows - first)
            table = array.read(count * width)
            if array.dtype.names is None:
                table = table.reshape(count, width)
                yield [table[:, int(column)] for column in chosen]
            else:
                yield [table[column] for column in chosen]


def _by_column(array: ArrayStream, stream: Stream, chosen: list[int | str], step: int) -> Iterator[list[NDArray[Any]]]:
    """Columns of an array in Fortran order, which lie apart: only a plain file can be read so."""
    rows, width = array.shape
    path = Path(stream.name)
    if stream.compression is not None or not path.is_file():
        raise InputError(
            f"{stream.name} is in Fortran order, which cannot be read in one pass; save "
            "numpy.ascontiguousarray(edges), or unpack the file"
        )
    start = path.stat().st_size - rows * width * array.dtype.itemsize
    if start < 0:
        raise InputError(f"{stream.name} is truncated: its array of shape {array.shape} ends early; fetch it again")
    for first in range(0, rows, step):
        count = min(step, rows - first)
        offsets = [start + (int(column) * rows + first) * array.dtype.itemsize for column in chosen]
        yield [np.fromfile(path, array.dtype, count, offset=offset) for offset in offsets]


def _chosen(array: ArrayStream, options: IngestOptions, name: str) -> list[int | str]:
    """Source, target and perhaps weight: names of fields, or positions."""
    names = array.dtype.names
    plain = all(array.dtype[name].shape == () for name in names) if names else array.dtype.kind in "iuf"
    wide = names is None and array.shape[1:] and array.shape[1] * array.dtype.itemsize > MOST_ROW_BYTES
    if len(array.shape) != (1 if names else 2) or not plain or wide:
        raise InputError(
            f"{name} is an array of shape {array.shape} and {brief(str(array.dtype))}; edges are (m, 2) or (m, 3) "
            "numbers, or m records"
        )
    known: list[int | str] = list(names) if names else list(range(array.shape[1]))
    third = options.weights is True or (options.weights is None and len(known) == 3)
    wanted = options.columns or ((0, 1, 2) if third else (0, 1))
    found = []
    for column in wanted:
        if isinstance(column, int) and column < len(known):
            found.append(known[column])
        elif column in known:
            found.append(column)
        else:
            listed = brief(", ".join(map(str, known)))
            raise InputError(f"{name} has no column {column!r}; it has {listed}: see --columns")
    return found


def _edges(columns: list[NDArray[Any]], names: list[int | str], file: str, row: int) -> EdgeBatch:
    said = [f"column {brief(str(name))}" for name in names]
    sources, targets = (as_ids(columns[end], said[end], file, row) for end in (0, 1))
    weights = as_weights(columns[2], said[2], file, row) if columns[2:] else None
    if weights is not None:
        weights = np.ascontiguousarray(weights, weights.dtype.newbyteorder("="))
    return edge_batch(sources, targets, weights)
