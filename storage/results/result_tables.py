"""Writing result tables: CSV, Parquet, HDF5, NPY, Graphalytics. One column a field, one row a vertex, all or nothing.

Owns the formats. Refuses names it has no format for. A column is (values, which are present or None); absent values
are empty in CSV and null in Parquet, and keep the program's own mark in HDF5 and NPY, which have no nulls. Strings are
UTF-8 (in NPY, of one width), and in CSV in quotes if any in the table needs them (RFC 4180).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from penstock.storage.base.atomic import replacing
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.threads import ThreadPool
from penstock.storage.format import hdf5
from penstock.storage.format.driver_file import DriverFile, disk_error

Columns = dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]]

ROWS = 1 << 20  # rows turned into a record batch at once, so that memory stays bounded


def write(path: Path, columns: Columns, *, force: bool = False, format: str | None = None) -> None:
    """Write a table in `format`, or in that which the suffix of `path` asks for.

    Raises InputError: unknown suffix, a target that may not be written. RunError: the disk failed or is full.
    """
    writer_for(path, format)(path, columns, force=force)


def writer_for(path: Path, format: str | None = None) -> Callable[..., None]:
    """The function that writes `format`, or that which `path` asks for. Raises InputError naming the formats."""
    if format is not None:
        if format not in FORMATS:
            raise InputError(f"{format!r} is not a format by name; there is {', '.join(FORMATS)}")
        return FORMATS[format]
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InputError(f"{path}: no table format ends in {path.suffix!r}; use one of {', '.join(_WRITERS)}")
    return writer


def write_csv(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write CSV with a header line."""

    def save(partial: Path) -> None:
        quoting = "needed" if any(_needs_quotes(values) for values, _ in columns.values()) else "none"
        options = pyarrow.csv.WriteOptions(quoting_style=quoting, include_header=False)
        schema = _schema(columns)
        with partial.open("wb") as file:
            file.write((",".join(columns) + "\n").encode())
            with pyarrow.csv.CSVWriter(file, schema, write_options=options) as writer:
                for batch in _batches(columns, schema):
                    writer.write_batch(batch)

    _whole(path, save, force=force)


def write_parquet(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write Parquet, compressed with zstd."""

    def save(partial: Path) -> None:
        schema = _schema(columns)
        with pyarrow.parquet.ParquetWriter(partial, schema, compression="zstd") as writer:
            for batch in _batches(columns, schema):
                writer.write_batch(batch)

    _whole(path, save, force=force)


def write_hdf5(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write HDF5, one dataset a column, and read it back."""
    values = {name: array for name, (array, _) in columns.items()}

    def save(partial: Path) -> None:
        file = DriverFile(partial)
        try:
            with ThreadPool(1, "hdf5") as pool:
                writing = pool.submit(hdf5.write_columns, file, values)
                try:
                    writing.result()
                except BaseException:
                    file.stop()
                    raise
        finally:
            file.close()
        if not hdf5.same_columns(partial, values):
            raise OSError("what was written is not what is read back")

    _whole(path, save, force=force)


def write_npy(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write the first field's values as a bare array."""
    name = next(name for name in columns if name not in ("vertex", "side"))

    def save(partial: Path) -> None:
        with partial.open("wb") as file:
            values = columns[name][0]
            if values.dtype.kind == "T":
                values = values.astype(f"U{max(1, int(np.strings.str_len(values).max(initial=1)))}")
            values = np.ascontiguousarray(values)
            npy_format.write_array_header_1_0(file, npy_format.header_data_from_array_1_0(values))
            file.write(values.reshape(-1).view(np.uint8).data)  # numpy.save does not say why a disk refuses

    _whole(path, save, force=force)


def write_graphalytics(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write the first field as `id value` lines, ids ascending: the output of LDBC Graphalytics, specification 1.0.

    A vertex that was not reached has 9223372036854775807 for a level, and infinity for a distance.
    """
    name = next(name for name in columns if name not in ("vertex", "side"))
    values, present = columns[name]
    absent = "9223372036854775807" if name == "level" else "infinity"

    def save(partial: Path) -> None:
        with partial.open("w", encoding="utf-8") as file:
            for first in range(0, len(values), ROWS):
                part = slice(first, first + ROWS)
                reached = [True] * len(values[part]) if present is None else present[part].tolist()
                rows = zip(columns["vertex"][0][part].tolist(), values[part].tolist(), reached, strict=True)
                file.writelines(f"{vertex} {value if known else absent}\n" for vertex, value, known in rows)

    _whole(path, save, force=force)


def _whole(path: Path, save: Callable[[Path], None], *, force: bool) -> None:
    with replacing(path, force=force) as partial:
        try:
            save(partial)
        except OSError as error:
            found = disk_error(error)
            raise RunError(f"{path} could not be written: {found.strerror or found}; free space and retry") from error


def _schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, _arrow_type(values)) for name, (values, _) in columns.items()])


def _arrow_type(values: NDArray[Any]) -> Any:
    return pa.string() if values.dtype.kind == "T" else pa.from_numpy_dtype(values.dtype)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Values as Arrow takes them."""
    return values.astype(object) if values.dtype.kind == "T" else values


def _needs_quotes(values: NDArray[Any]) -> bool:
    """Whether a string among the values would break a line of CSV."""
    if values.dtype.kind != "T":
        return False
    return any(bool((np.strings.find(values, mark) >= 0).any()) for mark in (",", '"', "\n", "\r"))


def _batches(columns: Columns, schema: pa.Schema) -> Any:
    rows = len(next(iter(columns.values()))[0])
    for first in range(0, rows, ROWS):
        part = slice(first, first + ROWS)
        arrays = [
            pa.array(_plain(values[part]), _arrow_type(values), mask=None if present is None else ~present[part])
            for values, present in columns.values()
        ]
        yield pa.record_batch(arrays, schema=schema)


FORMATS: dict[str, Callable[..., None]] = {"graphalytics": write_graphalytics}
"""Formats that are asked for by name: no suffix is theirs."""

_WRITERS: dict[str, Callable[..., None]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".h5": write_hdf5,
    ".hdf5": write_hdf5,
    ".npy": write_npy,
}
