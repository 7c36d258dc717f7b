"""Result tables as CSV, Parquet, Feather, HDF5, NPY and Graphalytics: a column a field, a row a vertex, all or nothing.

GraphAr's chunks are written by `../tables/graphar_group.py`.

Absent values are empty in CSV and null in Parquet and Feather, and keep the program's own mark in HDF5 and NPY, which
have no nulls. NPY has the first field alone where ids are 0 to n-1, else records of it and the ids. Strings are UTF-8
(in NPY, of one width), and in CSV in quotes if any in the table needs them (RFC 4180). Ranges of rows are converted by
several threads while earlier ones are written, and the disk is at work meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import whole_file
from penstock.storage.base.places import FilePlace
from penstock.storage.base.threads import ThreadPool
from penstock.storage.format import hdf5
from penstock.storage.format.driver_file import DriverFile
from penstock.storage.tables.columns import Column, Columns, Part, WriteOptions, first_field, mapped, npy_head
from penstock.storage.tables.formats import ANSWERS, check_streamed, check_style, format_of
from penstock.storage.tables.synced_file import OrderedFile, SyncedFile, write_all

DEFAULTS = WriteOptions()
Save = Callable[[Path, Columns, WriteOptions], None]


def write(
    path: FilePlace,
    columns: Columns,
    *,
    force: bool = False,
    format: str | None = None,
    options: WriteOptions = DEFAULTS,
) -> None:
    """Write a table, whole or not at all.

    Parameters
    ----------
    path : Path or Address
        The file to write.
    columns : Columns
        The table: "vertex" (and "side" of a bipartite graph), then the fields of the result.
    force : bool
        Whether a file of that name may be replaced.
    format : str, optional
        One of `formats_of(ANSWERS)`; by default the one that the suffix of ``path`` asks for.
    options : WriteOptions
        Threads, and who is told how much is written.

    Raises
    ------
    InputError
        The format is unknown, or the file may not be written.
    RunError
        The disk failed or is full; ``path`` is as it was.
    """
    name = format_of(path, format, ANSWERS)
    check_style(options.style, name)
    if name == "graphar":
        from penstock.storage.tables.graphar_group import write_group

        write_group(path, columns, force=force, options=options)
        return
    with whole_file(path, force=force) as unfinished:
        _OTHERS.get(name, partial(_save_by_arrow, format=name))(unfinished, columns, options)


def write_to(file: OrderedFile, columns: Columns, *, format: str = "csv", options: WriteOptions = DEFAULTS) -> None:
    """Write a table to an open file, such as standard output, from its beginning to its end.

    Parameters
    ----------
    file : OrderedFile
        What is written to; what it raises is raised here.
    columns : Columns
        As in `write`.
    format : str
        One of `formats_of(ANSWERS, streamed=True)`.
    options : WriteOptions
        As in `write`.

    Raises
    ------
    InputError
        The format is unknown, or cannot be written from its beginning to its end.
    """
    check_streamed(format, ANSWERS)
    check_style(options.style, format)
    _write_by_arrow(file, columns, options, format)


def bytes_of(path: PurePath, columns: Columns, format: str | None = None) -> int | None:
    """About how many bytes writing will take; None where only writing can tell. Raises InputError as `format_of`."""
    name = format_of(path, format, ANSWERS)
    written = npy_columns(columns) if name == "npy" else columns
    if name not in _OTHERS or any(column.dtype.kind == "T" for column in written.values()):
        return None
    return sum(column.rows * column.dtype.itemsize for column in written.values())


def npy_columns(columns: Columns) -> Columns:
    """Return the columns that `.npy` has: the first field, and the ids, unless these are 0 to n-1."""
    name = first_field(columns)
    ids = {other: column for other, column in columns.items() if other in ("vertex", "side")}
    rows = columns[name].rows
    if "side" in ids or "vertex" not in ids or ids["vertex"].dtype.kind == "T":
        places = "vertex" not in ids
    else:
        places = rows == 0 or int(ids["vertex"].opened()(rows - 1, rows)[0][0]) == rows - 1  # they rise
    return {**({} if places else ids), name: columns[name]}


def _save_npy(path: Path, columns: Columns, options: WriteOptions) -> None:
    """Write the first field's values as a bare array, or beside the ids as an array of records."""
    written = npy_columns(columns)
    kinds = [
        (name, f"U{_widest(column)}" if column.dtype.kind == "T" else column.dtype) for name, column in written.items()
    ]
    kind = np.dtype(kinds) if len(kinds) > 1 else np.dtype(kinds[0][1])

    def records(parts: list[Part]) -> NDArray[np.uint8]:
        if kind.names is None:
            return np.ascontiguousarray(parts[0][0], kind).view(np.uint8)
        found = np.empty(len(parts[0][0]), kind)
        for name, (values, _) in zip(kind.names, parts, strict=True):
            found[name] = values
        return found.view(np.uint8)

    with SyncedFile(path, options.written) as file:
        file.write(npy_head(kind, (columns[first_field(columns)].rows,)))
        write_all(file, mapped(written, records, threads=options.threads))


def _save_hdf5(path: Path, columns: Columns, options: WriteOptions) -> None:
    """Write one dataset a column, and read the file back."""
    file = DriverFile(path, options.written)
    try:
        with ThreadPool(1, "hdf5") as pool:
            writing = pool.submit(hdf5.write_columns, file, columns, options.threads, options.origin)
            try:
                writing.result()
            except BaseException:
                file.stop()
                raise
    finally:
        file.close()
    if not hdf5.same_columns(path, columns, options.threads):
        raise OSError("what was written is not what is read back")


def _widest(column: Column) -> int:
    """Characters of the longest string of a column, 1 at least."""
    widths = mapped({"": column}, lambda parts: int(np.strings.str_len(parts[0][0]).max(initial=1)))
    return max(widths, default=1)


def _save_by_arrow(path: Path, columns: Columns, options: WriteOptions, format: str) -> None:
    with SyncedFile(path, options.written) as file:
        _write_by_arrow(file, columns, options, format)


def _write_by_arrow(file: OrderedFile, columns: Columns, options: WriteOptions, format: str) -> None:
    """Write a table to an open file."""
    from penstock.storage.tables import arrow_files, arrow_tables  # Arrow takes longer to import than a small run takes

    with arrow_tables.system_memory():
        if format == "graphalytics":
            arrow_tables.save_graphalytics(file, columns, options)
            return
        table, encodings = arrow_tables.ColumnBatches(columns), arrow_tables.encodings(columns)
        arrow_files.save(file, table, options, format, **encodings)


_OTHERS: dict[str, Save] = {"hdf5": _save_hdf5, "npy": _save_npy}
"""What writes the formats that are not written from their beginning to their end."""
