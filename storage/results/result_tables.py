"""Result tables as CSV, Parquet, HDF5, NPY and Graphalytics: one column a field, one row a vertex, all or nothing.

Absent values are empty in CSV and null in Parquet, and keep the program's own mark in HDF5 and NPY, which have no
nulls. Strings are UTF-8 (in NPY, of one width), and in CSV in quotes if any in the table needs them (RFC 4180).
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
from penstock.storage.base.atomic import whole_file
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import ThreadPool
from penstock.storage.format import hdf5
from penstock.storage.format.driver_file import DriverFile

Columns = dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]]
"""By name: the values of a column, one a vertex, and which of them are present (None: all)."""
ROWS = 1 << 20  # rows turned into a record batch at once, so that memory stays bounded


def write(path: Path, columns: Columns, *, force: bool = False, format: str | None = None) -> None:
    """Write a table, whole or not at all.

    Parameters
    ----------
    path : Path
        The file to write.
    columns : Columns
        The table: "vertex" (and "side" of a bipartite graph), then the fields of the result.
    force : bool
        Whether a file of that name may be replaced.
    format : str, optional
        A name in `FORMATS`; by default the one that the suffix of ``path`` asks for.

    Raises
    ------
    InputError
        The format is unknown, or the file may not be written.
    RunError
        The disk failed or is full; ``path`` is as it was.
    """
    save = writer_for(path, format)
    with whole_file(path, force=force) as partial:
        save(partial, columns)


def writer_for(path: Path, format: str | None = None) -> Callable[[Path, Columns], None]:
    """Return the function that writes `format`, or the one that `path` asks for. Raises InputError."""
    if format is None:
        format = _SUFFIXES.get(path.suffix.lower())
        if format is None:
            raise InputError(f"{path}: no table format ends in {path.suffix!r}; use one of {', '.join(_SUFFIXES)}")
    elif format not in FORMATS:
        raise InputError(f"{format!r} is not a format by name; there is {', '.join(FORMATS)}")
    return FORMATS[format]


def _save_csv(path: Path, columns: Columns) -> None:
    quoting = "needed" if any(_needs_quotes(values) for values, _ in columns.values()) else "none"
    options = pyarrow.csv.WriteOptions(quoting_style=quoting, include_header=False)
    schema = _schema(columns)
    with path.open("wb") as file:
        file.write((",".join(columns) + "\n").encode())
        with pyarrow.csv.CSVWriter(file, schema, write_options=options) as writer:
            for batch in _batches(columns, schema):
                writer.write_batch(batch)


def _save_parquet(path: Path, columns: Columns) -> None:
    schema = _schema(columns)
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(columns, schema):
            writer.write_batch(batch)


def _save_hdf5(path: Path, columns: Columns) -> None:
    """Write one dataset a column, and read the file back."""
    values = {name: array for name, (array, _) in columns.items()}
    file = DriverFile(path)
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
    if not hdf5.same_columns(path, values):
        raise OSError("what was written is not what is read back")


def _save_npy(path: Path, columns: Columns) -> None:
    """Write the first field's values as a bare array."""
    values = columns[_first_field(columns)][0]
    if values.dtype.kind == "T":
        values = values.astype(f"U{max(1, int(np.strings.str_len(values).max(initial=1)))}")
    values = np.ascontiguousarray(values)
    with path.open("wb") as file:
        npy_format.write_array_header_1_0(file, npy_format.header_data_from_array_1_0(values))
        file.write(values.reshape(-1).view(np.uint8).data)  # numpy.save hides the error of the disk


def _save_graphalytics(path: Path, columns: Columns) -> None:
    """Write the first field as `id value` lines, ids ascending: LDBC Graphalytics, specification 1.0.

    A vertex that was not reached has 9223372036854775807 for a level, and infinity for a distance.
    """
    name = _first_field(columns)
    values, present = columns[name]
    absent = "9223372036854775807" if name == "level" else "infinity"
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, len(values), ROWS):
            part = slice(first, first + ROWS)
            reached = [True] * len(values[part]) if present is None else present[part].tolist()
            rows = zip(columns["vertex"][0][part].tolist(), values[part].tolist(), reached, strict=True)
            file.writelines(f"{vertex} {value if known else absent}\n" for vertex, value, known in rows)


def _first_field(columns: Columns) -> str:
    return next(name for name in columns if name not in ("vertex", "side"))


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


FORMATS: dict[str, Callable[[Path, Columns], None]] = {
    "csv": _save_csv,
    "parquet": _save_parquet,
    "hdf5": _save_hdf5,
    "npy": _save_npy,
    "graphalytics": _save_graphalytics,
}
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".h5": "hdf5", ".hdf5": "hdf5", ".npy": "npy"}
