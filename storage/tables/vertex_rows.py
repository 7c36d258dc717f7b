"""Rows of a table of vertices: an id and properties, read in batches from CSV or Parquet, in types that hold them all.

A column of CSV is whole numbers, other numbers or text: what every value of the file is. Text with a leading zero
(`02139`) stays text. An empty field has no value.

Sorted by their ids they become a Parquet file; memory holds a part of them. A distribution sort: rows go to parts
between ids of a sample, each part to a scratch file unless there is but one, and parts are sorted one after another
(Knuth, TAOCP 3, section 5.2.5). An id that comes twice is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from penstock.storage.base.errors import InputError, RunError, brief
from penstock.storage.encoding.string_array import ranks_among

WHOLE = r"^\s*-?(0|[1-9][0-9]{0,17})\s*$"
NUMBER = r"^\s*-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
SAMPLED = 1 << 14
"""Ids that are kept to divide a table evenly; there are at most twice as many."""
ID = "id"
"""The name of the id's column, whatever it is called in the input."""


@dataclass(frozen=True)
class VertexColumns:
    """Which columns a table has: all names, which of them is the id, and of properties their name and declared type.

    properties: by the column's name in the input: the property's name, and "int64", "float64", "string", or None for
    what its values are.
    """

    names: tuple[str, ...]
    id: str
    properties: Mapping[str, tuple[str, str | None]]


@dataclass
class Survey:
    """What a first pass finds: rows, bytes, a sample of ids, and for each column which types hold its values."""

    rows: int = 0
    held_bytes: int = 0
    sample: list[Any] = field(default_factory=list)
    stride: int = 1
    not_whole: dict[str, str] = field(default_factory=dict)
    not_numbers: dict[str, str] = field(default_factory=dict)

    def add(self, batch: Any) -> None:
        """Look at a batch: its first column is the id."""
        first = -self.rows % self.stride
        if first < len(batch):
            self.sample += batch.column(0).take(np.arange(first, len(batch), self.stride)).to_pylist()
        while len(self.sample) > 2 * SAMPLED:
            self.sample = self.sample[::2]
            self.stride *= 2
        self.rows += len(batch)
        self.held_bytes += batch.nbytes
        for name, column in zip(batch.schema.names[1:], batch.columns[1:], strict=True):
            if pa.types.is_string(column.type) and name not in self.not_numbers:
                self._look(name, column)

    def type_of(self, name: str) -> str:
        """The narrowest of the three types that holds all values of a column of text."""
        return "string" if name in self.not_numbers else "float64" if name in self.not_whole else "int64"

    def _look(self, name: str, column: Any) -> None:
        for known, pattern in ((self.not_whole, WHOLE), (self.not_numbers, NUMBER)):
            if name in known:
                continue
            fits = pc.match_substring_regex(column, pattern)
            if pc.any(pc.invert(fits)).as_py():
                known[name] = column[pc.index(fits, False).as_py()].as_py()
            else:
                return

    def bounds(self, parts: int) -> list[Any]:
        """Ids that divide the table into so many parts of about as many rows; fewer where ids are few."""
        ids = sorted(self.sample, key=lambda one: one.encode() if isinstance(one, str) else one)
        return [ids[len(ids) * part // parts] for part in range(1, parts)] if len(ids) >= parts else []


class CsvRows:
    """Rows of a CSV file. opened: gives the file from its first byte, once for each pass; skip: lines of comments."""

    def __init__(self, name: str, opened: Callable[[], AbstractContextManager[Any]], delimiter: str, skip: int) -> None:
        self.name, self._opened, self._delimiter, self._skip = name, opened, delimiter, skip

    def batches(self, columns: VertexColumns, types: Mapping[str, str], block_bytes: int) -> Iterator[Any]:
        """Yield batches: the id, then the properties. types: by column; others are text. Raises InputError."""
        wanted = [columns.id, *columns.properties]
        kinds = {name: getattr(pa, types.get(name, "string"))() for name in wanted}
        with self._opened() as file, _refusing(self.name):
            reader = pyarrow.csv.open_csv(
                pa.PythonFile(file, mode="r"),
                pyarrow.csv.ReadOptions(
                    use_threads=False, block_size=block_bytes, skip_rows=self._skip + 1, column_names=columns.names
                ),
                pyarrow.csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                pyarrow.csv.ConvertOptions(
                    column_types=kinds,
                    include_columns=wanted,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                yield _named(batch, columns)


class ParquetRows:
    """Rows of a Parquet file, whose types stay; what is neither a number nor text becomes text.

    read: gives the record batches of some columns, of at most so many rows.
    """

    def __init__(self, path: Path, read: Callable[[list[str], int], Iterator[Any]]) -> None:
        self.name, self._read = str(path), read

    def batches(self, columns: VertexColumns, types: Mapping[str, str], block_bytes: int) -> Iterator[Any]:
        """Yield batches, as `CsvRows.batches`; types: of the id alone."""
        wanted = [columns.id, *columns.properties]
        rows = max(1024, block_bytes // (32 * len(wanted)))
        with _refusing(self.name):
            for batch in self._read(wanted, rows):
                kinds = [types.get(columns.id), *([None] * len(columns.properties))]
                cast = [_plain(batch.column(name), kind) for name, kind in zip(wanted, kinds, strict=True)]
                yield _named(pa.record_batch(cast, names=wanted), columns)


def _plain(column: Any, kind: str | None) -> Any:
    """A column as numbers or text."""
    if kind is not None:
        return pc.cast(column, getattr(pa, kind)())
    found = column.type
    if pa.types.is_integer(found) or pa.types.is_floating(found):
        return pc.cast(column, pa.float32()) if pa.types.is_float16(found) else column
    return pc.cast(column, pa.string())


def _named(batch: Any, columns: VertexColumns) -> Any:
    """A batch under the properties' names; ids without blanks at their ends. Raises InputError for a missing id."""
    ids = batch.column(0)
    if pa.types.is_string(ids.type):
        ids = pc.utf8_trim_whitespace(ids)
    if ids.null_count:
        raise InputError("a vertex has no id; drop its line")
    names = [ID, *(name for name, _ in columns.properties.values())]
    return pa.record_batch([ids, *batch.columns[1:]], names=names)


def parquet_names(path: Path) -> tuple[tuple[str, ...], bool]:
    """The columns of a Parquet file, and whether its rows have their number for an id, as icebug-disk says.

    Raises InputError where it is no Parquet.
    """
    with _refusing(str(path)):
        schema = pyarrow.parquet.read_schema(path)
        return tuple(schema.names), b"icebug_disk_version" in (schema.metadata or {})


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Make our errors of those that pyarrow has with a file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") if not str(error).startswith(name) else error from None
    except OSError as error:
        if error.errno is not None:
            raise RunError(f"{name}: reading failed: {error}") from error
        raise InputError(f"{name} is no readable table of vertices: {_first_line(error)}") from error
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{name} is no readable table of vertices: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    reason = brief(str(error).partition("\n")[0])
    return "a row is longer than 1 MiB, or a quote is not closed" if reason.startswith("straddling") else reason


GROUP_ROWS = 1 << 15
"""Rows of a row group: what is read at once for an answer."""


def write_sorted(
    batches: Iterator[Any], bounds: Sequence[Any], path: Path, scratch: Callable[[], IO[bytes]], facts: dict[str, str]
) -> tuple[int, dict[str, str]]:
    """Write rows by ascending id; return how many, and the columns' types by name.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        The rows; the first column is the id.
    bounds : sequence of ids
        Ascending; the first ids of all parts but the first.
    path : Path
        The Parquet file to write.
    scratch : callable
        Gives a new, empty file for each part; not called where there are no bounds.
    facts : dict of str to str
        Metadata of the file.

    Raises
    ------
    InputError
        An id comes twice.
    """
    schema, parts = _distributed(batches, bounds, scratch)
    rows = 0
    with pyarrow.parquet.ParquetWriter(path, schema.with_metadata(facts), compression="zstd") as writer:
        for part in parts:
            table = pa.Table.from_batches(part, schema)
            table = table.take(pc.sort_indices(table.column(ID)))
            _check_once(table.column(ID).combine_chunks())
            rows += len(table)
            writer.write_table(table, row_group_size=GROUP_ROWS)
    return rows, {field.name: str(field.type) for field in schema}


def _distributed(
    batches: Iterator[Any], bounds: Sequence[Any], scratch: Callable[[], IO[bytes]]
) -> tuple[Any, Iterator[Iterator[Any]]]:
    """The rows' schema, and the batches of every part."""
    first = next(batches, None)
    if first is None:
        raise InputError("there is no vertex in it; leave --vertices out, or name another file")
    if not bounds:
        return first.schema, iter([chain([first], batches)])
    files = [scratch() for _ in range(len(bounds) + 1)]
    writers = [pa.ipc.new_stream(file, first.schema) for file in files]
    limits = _searched(bounds)
    for batch in chain([first], batches):
        for part, rows in _divided(batch, limits):
            writers[part].write_batch(rows)
    for writer in writers:
        writer.close()
    return first.schema, map(_read_again, files)


def _searched(ids: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Ids as NumPy compares them: text by its bytes."""
    return np.array(ids, np.dtypes.StringDType() if isinstance(ids[0], str) else np.uint64)


def _divided(batch: Any, limits: np.ndarray[Any, Any]) -> Iterator[tuple[int, Any]]:
    """The rows of a batch in each part that has some."""
    column = batch.column(0)
    ids = _searched(column.to_pylist()) if pa.types.is_string(column.type) else column.to_numpy()
    parts = ranks_among(limits, ids)
    order = np.argsort(parts, kind="stable")
    ends = np.searchsorted(parts[order], np.arange(len(limits) + 2))
    moved = batch.take(pa.array(order))
    for part in range(len(limits) + 1):
        if ends[part + 1] > ends[part]:
            yield part, moved.slice(ends[part], ends[part + 1] - ends[part])


def _read_again(file: IO[bytes]) -> Iterator[Any]:
    file.seek(0)
    with pa.ipc.open_stream(file) as reader:
        yield from reader
    file.close()


def _check_once(ids: Any) -> None:
    """Refuse ascending ids of which one comes twice. Raises InputError."""
    same = pc.equal(ids.slice(1), ids.slice(0, max(0, len(ids) - 1)))
    at = pc.index(same, True).as_py()
    if at >= 0:
        raise InputError(f"vertex {brief(str(ids[at]))} has two lines, and a vertex has one; drop one of them")
