"""Columns as Arrow has them: record batches, lines for LDBC Graphalytics, and tables of pandas, polars and pyarrow."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.tables.arrow_files import TEXT_ROWS, stream
from penstock.storage.tables.columns import Columns, Part, WriteOptions, first_field, mapped
from penstock.storage.tables.synced_file import OrderedFile, write_all

PLAIN = (1e-4, 1e10)
"""From here to before there Arrow and Python write numbers that are not whole alike."""
TINY = 1e-6
"""Below this both write an exponent; Python's has two digits at least."""
WHOLE = 1e15
"""Below this Python writes whole numbers without an exponent."""

_WHOLE = {f"{name}{bits}".lower(): f"{name}{bits}" for name in ("Int", "UInt") for bits in (8, 16, 32, 64)}
"""NumPy's whole numbers, and those of pandas that have nulls."""


class ColumnBatches:
    """Record batches of columns: see `arrow_files.Batches`.

    Numbers of a batch are those of the column where it gives ranges of an array that it has; others are copies.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.schema = pa.schema([(name, _arrow_type(column.dtype)) for name, column in columns.items()])

    def mapped(self, function: Callable[[Any], Any], *, threads: int | None, rows: int) -> Generator[Any, None, None]:
        """Yield the function of every batch of so many rows, in order."""
        return mapped(self._columns, lambda parts: function(self._batch(parts)), threads=threads, size=rows)

    def holds(self, marks: str) -> bool:
        """Whether one of these characters is in a string of the table."""
        texts = {name: column for name, column in self._columns.items() if column.dtype.kind == "T"}
        return any(mapped(texts, partial(_any_holds, marks=marks))) if texts else False

    def _batch(self, parts: list[Part]) -> Any:
        return pa.record_batch([arrow_array(part) for part in parts], schema=self.schema)


def save_graphalytics(file: OrderedFile, columns: Columns, options: WriteOptions) -> None:
    """Write the first field as `id value` lines, ids ascending: LDBC Graphalytics, specification 1.0.

    A vertex that was not reached has 9223372036854775807 for a level, and infinity for a distance.
    """
    name = first_field(columns)
    absent = "9223372036854775807" if name == "level" else "infinity"
    wanted = {"vertex": columns["vertex"], name: columns[name]}
    rows = partial(graphalytics_rows, absent=absent)
    write_all(file, mapped(wanted, rows, threads=options.threads, size=TEXT_ROWS))


def record_batches(columns: Columns) -> Any:
    """A pyarrow.RecordBatchReader of a table, whose batches are made as they are read; absent values are null."""
    return stream(ColumnBatches(columns))


def pandas_frame(columns: Columns) -> Any:
    """A table as a DataFrame of pandas: whole numbers stay such, with pandas' own nulls where there are absent ones.

    Raises:
        InputError: pandas is not installed.
    """
    pandas = _installed("pandas", "to_pandas")
    nullable = {pa.from_numpy_dtype(kind): pandas.api.types.pandas_dtype(name) for kind, name in _WHOLE.items()}
    table = record_batches(columns).read_all()
    return pandas.DataFrame(
        {
            name: column.to_pandas(types_mapper=nullable.get if column.null_count else None)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def polars_frame(columns: Columns) -> Any:
    """A table as a DataFrame of polars; absent values are null. Raises InputError where polars is not installed."""
    return _installed("polars", "to_polars").DataFrame(record_batches(columns))


def _installed(name: str, use: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"{use} needs {name}, which cannot be imported ({error}): pip install {name}") from error


def encodings(columns: Columns) -> dict[str, Any]:
    """Of Parquet: ids that are numbers by their differences, which are small; others by short dictionaries.

    A long dictionary, which is given up in the end, takes four times as long as none.
    """
    ascending = {"vertex": "DELTA_BINARY_PACKED"} if columns["vertex"].dtype.kind in "iu" else {}
    others = [name for name in columns if name not in ascending]
    return {"use_dictionary": others, "column_encoding": ascending or None, "dictionary_pagesize_limit": 1 << 14}


def _arrow_type(dtype: np.dtype[Any]) -> Any:
    return pa.string() if dtype.kind == "T" else pa.from_numpy_dtype(dtype)


def _any_holds(parts: list[Part], marks: str) -> bool:
    return any(bool((np.strings.find(values, mark) >= 0).any()) for values, _ in parts for mark in marks)


@contextmanager
def system_memory() -> Iterator[None]:
    """Let Arrow allocate from the system meanwhile: its own allocator keeps tens of MiB for the next time."""
    before = pa.default_memory_pool()
    pool = pa.system_memory_pool()
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        pool.release_unused()


def arrow_array(part: Part) -> Any:
    """A part of a column as an Arrow array; absent values are null."""
    values, present = part
    items = values.astype(object) if values.dtype.kind == "T" else values
    return pa.array(items, _arrow_type(values.dtype), mask=None if present is None else ~present)


def graphalytics_rows(parts: list[Part], absent: str) -> Any:
    """Lines `id value` of a range, in UTF-8; `absent` stands for values that are not there."""
    (names, _), (values, present) = parts
    texts = python_texts(values)
    if present is not None:
        texts = pc.if_else(pa.array(present), texts, absent)
    lines = pc.binary_join_element_wise(python_texts(names), " ", texts, "\n", "")
    _, ends, text = lines.buffers()
    end = int(np.frombuffer(ends, np.int32)[len(lines)])
    return text.slice(0, end)


def python_texts(values: NDArray[Any]) -> Any:
    """What Python's `str` makes of each value, as an Arrow array of strings."""
    if values.dtype.kind != "f":
        return pc.cast(arrow_array((values, None)), pa.string())
    wide = values.astype(np.float64, copy=False)
    size = np.abs(wide)
    whole = (size < WHOLE) & (wide == np.trunc(wide)) & ((wide != 0) | ~np.signbit(wide))
    tiny = (size < TINY) & (size > 0)
    plain = (size >= PLAIN[0]) & (size < PLAIN[1]) & ~whole
    other = ~(whole | tiny | plain)
    if whole.all():
        return pc.binary_join_element_wise(pc.cast(pa.array(wide.astype(np.int64)), pa.string()), ".0", "")
    texts = pc.cast(pa.array(wide), pa.string())
    if tiny.any():
        texts = pc.replace_substring_regex(texts, r"e-(\d)$", r"e-0\1")
    if whole.any():
        numbers = pc.cast(pa.array(wide[whole].astype(np.int64)), pa.string())
        texts = pc.replace_with_mask(texts, pa.array(whole), pc.binary_join_element_wise(numbers, ".0", ""))
    if other.any():
        texts = pc.replace_with_mask(texts, pa.array(other), pa.array(map(repr, wide[other].tolist()), pa.string()))
    return texts
