"""Features of vertices, a row each, by the numbers of their rows: read from disk, with a cache of the last used ones.

Rows are read as they are in the file, in blocks of a page. So those of a `.npy` file and of a contiguous HDF5 dataset
are read where they are; Parquet, and a dataset in chunks or compressed, is decoded once into a scratch file.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import register_debris, remove_debris, temporary_place
from penstock.storage.base.budget import default_host_memory, format_bytes, parse_bytes
from penstock.storage.base.errors import BudgetError, InputError, for_python, refusal
from penstock.storage.format.direct_io import OpenFile, open_direct_file
from penstock.storage.format.hdf5 import read_dataset
from penstock.storage.format.read_plan import MOST_BYTES, PAGE, ReadRange
from penstock.storage.ingest.core.arrow import parquet_file

SLOT_BYTES = 16
"""What a block that is kept takes beside its rows: when it was last used, and which it is."""

NEAR = 3
"""Blocks between two that are read at once: reading two more costs less than another call."""
MOST_BLOCKS = 64
"""Blocks that are read at once at most."""


@dataclass(frozen=True)
class RawRows:
    """Where rows of numbers are: one after another in a file, from an offset on."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dtype.itemsize * int(np.prod(self.shape[1:]))


class FeatureRows:
    """Rows of features in a file, fetched by their numbers: ``rows[[7, 3, 7]]`` is an array of three of them.

    It can be sent to other processes and used after a fork; each process has a cache of its own.

    Parameters
    ----------
    path : Path or str
        A ``.npy`` file, an HDF5 file, or a Parquet file.
    name : str or sequence of str, optional
        The dataset of an HDF5 file, where it has several; the columns of a Parquet file, by default all. A column of
        lists of one length is a matrix.
    host_memory : int or str, optional
        Ceiling in bytes on what is kept, besides what is returned; a text such as "1GiB".
    scratch : Path or str, optional
        Folder for what is decoded of Parquet and of datasets in chunks; by default the system's.

    Attributes
    ----------
    shape : tuple of int
        Rows, and the shape of one.
    dtype : dtype
        Of the values.

    Raises
    ------
    InputError
        The file cannot be read, or its rows are no numbers.
    BudgetError
        The memory budget is too small; the message has the smallest that works.
    RunError
        The disk failed, or is full.
    """

    @for_python
    def __init__(
        self,
        path: Path | str,
        name: str | Sequence[str] | None = None,
        *,
        host_memory: int | str | None = None,
        scratch: Path | str | None = None,
    ) -> None:
        place = Path(path)
        try:
            if place.suffix == ".npy":
                raw = _of_npy(place)
            elif place.suffix in (".parquet", ".pq"):
                raw = _of_parquet(place, [name] if isinstance(name, str) else name, _copy_in(scratch))
            else:
                raw = read_dataset(
                    place, name if isinstance(name, str) else None, lambda one: _of_hdf5(place, one, scratch)
                )
        except OSError as error:
            raise refusal(error, f"{place} cannot be read: {error.strerror or error}") from None
        if raw.path != place:
            weakref.finalize(self, _remove, raw.path, os.getpid())
        self.__setstate__({"raw": raw, "host_memory": host_memory})

    def __getstate__(self) -> dict[str, Any]:
        """What another process makes the same of: where rows are, by which file that is told, and its budget."""
        return {"raw": self._raw, "stamp": self._stamp, "host_memory": self._host_memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        raw, self._host_memory = state["raw"], state["host_memory"]
        self._raw, self.shape, self.dtype = raw, raw.shape, raw.dtype
        self._rows = max(1, PAGE // max(1, raw.row_bytes))  # of a block
        try:
            held, facts = OpenFile(raw.path), raw.path.stat()
        except OSError as error:
            raise refusal(error, f"{raw.path} cannot be read: {error.strerror or error}") from None
        self._stamp = facts.st_size, facts.st_mtime_ns
        if state.get("stamp") not in (None, self._stamp):
            raise InputError(f"{raw.path} is another file now than the one that these rows were of; open it again")
        self._file = open_direct_file(held, direct=False)
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        blocks, block_bytes = -(-len(self) // self._rows), self._rows * raw.row_bytes
        memory = default_host_memory() if self._host_memory is None else parse_bytes(self._host_memory)
        table = blocks * 4 + MOST_BLOCKS * block_bytes
        least = table + block_bytes + SLOT_BYTES
        if memory < least:
            reason = f"the memory budget of {format_bytes(memory)} has no room for where {blocks:,} blocks of rows are"
            raise BudgetError("--host-memory", reason, -(-least >> 20))
        slots = min(blocks, (memory - table) // (block_bytes + SLOT_BYTES))
        self._kept = np.empty((slots, self._rows, *self.shape[1:]), self.dtype)
        self._slots = np.full(blocks, -1, np.int32)
        self._blocks, self._used, self._turn = np.full(slots, -1, np.int64), np.zeros(slots, np.int64), 0

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self.shape[0])

    def __repr__(self) -> str:
        """One line: file, shape, dtype, and the share that the cache has room for."""
        room = f"{len(self._used) / max(1, len(self._slots)):.0%}"
        return f"<FeatureRows {self._raw.path}: {self.shape}, {self.dtype}, room for {room}>"

    @for_python
    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Rows by their numbers, in the order of these, which may repeat.

        Parameters
        ----------
        rows : array of int, or what NumPy makes one of
            Numbers of rows, a Tensor among others.

        Returns
        -------
        ndarray
            A row of the file for each number.

        Raises
        ------
        InputError
            There is no such row.
        RunError
            The file cannot be read.
        """
        wanted = np.asarray(rows)
        if wanted.ndim != 1 or (wanted.dtype.kind not in "iu" and len(wanted)):
            raise InputError(
                f"rows are an array of {wanted.dtype} with {wanted.ndim} dimensions; give a list of numbers"
            )
        strangers = np.flatnonzero((wanted < 0) | (wanted >= len(self)))
        if len(strangers):
            raise InputError(f"{self._raw.path} has no row {wanted[strangers[0]]}, but rows 0 to {len(self) - 1}")
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        blocks, which = np.unique(wanted.astype(np.int64) // self._rows, return_inverse=True)
        with self._lock:
            for first in range(0, len(blocks), max(1, len(self._used))):
                slots = self._load(blocks[first : first + len(self._used)])
                here = (
                    slice(None)
                    if len(slots) == len(blocks)
                    else np.flatnonzero(which // len(self._used) * len(self._used) == first)
                )
                found[here] = self._kept[slots[which[here] - first], wanted[here] % self._rows]
        return found

    def _load(self, blocks: NDArray[np.int64]) -> NDArray[np.int32]:
        """Have some blocks in memory, no more than there is room for; where they are."""
        self._turn += 1
        slots = self._slots[blocks]
        self._used[slots[slots >= 0]] = self._turn
        missing = blocks[slots < 0]
        if len(missing):
            oldest = np.argpartition(self._used, len(missing) - 1)[: len(missing)]
            left = self._blocks[oldest]
            self._slots[left[left >= 0]], self._blocks[oldest] = -1, -1
            self._read(missing, oldest)
            self._slots[missing], self._blocks[oldest], self._used[oldest] = oldest, missing, self._turn
        return self._slots[blocks]

    def _read(self, blocks: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Read ascending blocks to slots, near ones at once.

        The system hears of all before the first is waited for, so that the disk has many requests.
        """
        raw, kept = self._raw, self._kept.reshape(len(self._kept), -1).view(np.uint8)
        size, end = kept.shape[1], raw.offset + len(self) * raw.row_bytes
        run = np.cumsum(np.diff(blocks, prepend=blocks[0]) > NEAR) << 32 | blocks // MOST_BLOCKS
        firsts = np.flatnonzero(np.diff(run, prepend=-1))
        lasts = np.append(firsts[1:], len(blocks))
        starts = raw.offset + blocks[firsts] * size
        lengths = np.minimum(raw.offset + (blocks[lasts - 1] + 1) * size, end) - starts
        ranges = list(zip(starts.tolist(), lengths.tolist(), strict=True))
        self._file.expect(ranges)
        room = np.empty((MOST_BLOCKS, size), np.uint8)
        for (start, length), first, last in zip(ranges, firsts.tolist(), lasts.tolist(), strict=True):
            self._file.read(ReadRange(0, start, length, length, ()), memoryview(room.reshape(-1)))
            kept[slots[first:last]] = room[blocks[first:last] - blocks[first]]


def _of_npy(path: Path) -> RawRows:
    try:
        array = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is no array of NumPy's that can be read by rows: {error}") from None
    if not isinstance(array, np.memmap) or array.dtype.kind not in "iufb":
        raise InputError(f"{path} has no rows of numbers; save an array of numbers by numpy.save")
    if array.ndim == 0 or not array.flags.c_contiguous:
        raise InputError(f"{path} has no rows one after another; save numpy.ascontiguousarray of it")
    return RawRows(path, int(array.offset), array.shape, array.dtype)


def _of_hdf5(path: Path, dataset: Any, scratch: Path | str | None) -> RawRows:
    """The rows of a dataset: where they are, or a copy."""
    if dataset.ndim == 0 or dataset.dtype.kind not in "iufb":
        raise InputError(f"{path}: the dataset {dataset.name} has no rows of numbers; name another one")
    offset = dataset.id.get_offset()
    if offset is not None:
        return RawRows(path, offset, dataset.shape, dataset.dtype)
    step = max(1, MOST_BYTES // max(1, dataset[:1].nbytes))
    return _copied((dataset[first : first + step] for first in range(0, len(dataset), step)), _copy_in(scratch))


def _of_parquet(path: Path, columns: Sequence[str] | None, place: Path) -> RawRows:
    with parquet_file(path) as file:
        names = file.schema_arrow.names
        for one in columns or ():
            if one not in names:
                raise InputError(f"{path} has no column {one!r}; there is {', '.join(names)}")
        batches = file.iter_batches(batch_size=1 << 14, columns=columns and list(columns))
        return _copied((_matrix(path, batch) for batch in batches), place)


def _matrix(path: Path, batch: Any) -> NDArray[Any]:
    """The columns of a record batch side by side; one alone stays a vector."""
    parts = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        lists = hasattr(column, "flatten") and str(column.type).find("list") >= 0
        flat = column.flatten() if lists else column
        values = flat.to_numpy(zero_copy_only=False)
        even = not lists or len(column.value_lengths().unique()) == 1
        if column.null_count or flat.null_count or values.dtype.kind not in "iufb" or not (even and len(values)):
            raise InputError(f"{path}: the column {name} is not numbers, or lists of one length, without gaps")
        parts.append(values.reshape(len(column), -1) if lists else values)
    return parts[0] if len(parts) == 1 else np.column_stack(parts)


def _copy_in(folder: Path | str | None) -> Path:
    """A name for a copy, in a folder or the system's for temporary files."""
    place = temporary_place() if folder is None else Path(folder)
    return place / f".penstock-features-{os.getpid()}-{os.urandom(4).hex()}"


def _copied(parts: Iterable[NDArray[Any]], place: Path) -> RawRows:
    """Write rows one after another to a new file, which must not outlive this process."""
    register_debris(place)
    try:
        with place.open("xb") as file:
            rows, first = 0, None
            for part in parts:
                first = part if first is None else first
                if (part.dtype, part.shape[1:]) != (first.dtype, first.shape[1:]):
                    raise InputError(
                        f"rows of features differ: {first.shape[1:]} {first.dtype}, {part.shape[1:]} {part.dtype}"
                    )
                file.write(memoryview(np.ascontiguousarray(part)).cast("B"))
                rows += len(part)
    except BaseException:
        remove_debris(place)
        raise
    if first is None:
        raise InputError("there are no rows of features")
    return RawRows(place, 0, (rows, *first.shape[1:]), first.dtype)


def _remove(path: Path, process: int) -> None:
    """Remove a copy, if this is the process that made it."""
    if os.getpid() == process:
        remove_debris(path)
