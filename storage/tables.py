"""Writing result tables: CSV, Parquet, HDF5, NPY. One column a field, one row a vertex, whole or not at all.

Owns the formats. Refuses names it has no format for. A column is (values, which are present or None); absent values
are empty in CSV and null in Parquet, and keep the program's own mark in HDF5 and NPY, which have no nulls.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray
from penstock.storage import hdf5
from penstock.storage.atomic import replacing
from penstock.storage.errors import InputError, RunError

Columns = dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]]

ROWS = 1 << 20  # rows turned into a record batch at once, so that memory stays bounded


def write(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write a table in the format that the suffix of `path` asks for.

    Raises InputError: unknown suffix, a target that may not be written. RunError: the disk failed or is full.
    """
    writer_for(path)(path, columns, force=force)


def writer_for(path: Path) -> Callable[..., None]:
    """The function that writes the format that `path` asks for. Raises InputError naming the formats."""
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InputError(f"{path}: no table format ends in {path.suffix!r}; use one of {', '.join(_WRITERS)}")
    return writer


def write_csv(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write CSV with a header line."""

    def save(partial: Path) -> None:
        options = pyarrow.csv.WriteOptions(quoting_style="none", include_header=False)
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
    """Write HDF5, one dataset a column."""
    values = {name: array for name, (array, _) in columns.items()}
    _whole(path, lambda partial: hdf5.write_columns(partial, values), force=force)


def write_npy(path: Path, columns: Columns, *, force: bool = False) -> None:
    """Write the first field's values as a bare array."""
    name = next(name for name in columns if name != "vertex")

    def save(partial: Path) -> None:
        with partial.open("wb") as file:
            np.save(file, columns[name][0], allow_pickle=False)

    _whole(path, save, force=force)


def _whole(path: Path, save: Callable[[Path], None], *, force: bool) -> None:
    with replacing(path, force=force) as partial:
        try:
            save(partial)
        except OSError as error:
            raise RunError(f"{path} could not be written: {error.strerror or error}; free space and retry") from error


def _schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, pa.from_numpy_dtype(values.dtype)) for name, (values, _) in columns.items()])


def _batches(columns: Columns, schema: pa.Schema) -> Any:
    rows = len(next(iter(columns.values()))[0])
    for first in range(0, rows, ROWS):
        part = slice(first, first + ROWS)
        arrays = [
            pa.array(values[part], mask=None if present is None else ~present[part])
            for values, present in columns.values()
        ]
        yield pa.record_batch(arrays, schema=schema)


_WRITERS: dict[str, Callable[..., None]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".h5": write_hdf5,
    ".hdf5": write_hdf5,
    ".npy": write_npy,
}
