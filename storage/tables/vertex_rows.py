"""Rows of a table of vertices: an id and properties, read in batches from CSV or Parquet, in types that hold them all.

A column of CSV is whole numbers, other numbers or text: what every value of the file is. Text with a leading zero
(`02139`) stays text. An empty field has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.printable import brief

WHOLE = r"^\s*-?(0|[1-9][0-9]{0,17})\s*$"
NUMBER = r"^\s*-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
SAMPLED = 1 << 14
"""Ids that are kept to divide a table evenly; there are at most twice as many."""
ID = "id"
"""The name of the id's column, whatever it is called in the input."""


class ContentFile(Protocol):
    """A file as pyarrow reads it."""

    @property
    def closed(self) -> bool:
        """Whether it is closed."""

    def read(self, count: int = -1, /) -> bytes:
        """The next bytes, fewer only at the end."""


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

    def __init__(
        self, name: str, opened: Callable[[], AbstractContextManager[ContentFile]], delimiter: str, skip: int
    ) -> None:
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
        self.name, self._path, self._read = str(path), path, read

    def names(self) -> tuple[str, ...]:
        """The columns. Raises InputError where it is no Parquet."""
        with _refusing(self.name):
            return tuple(pyarrow.parquet.read_schema(self._path).names)

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
