"""Tables that are no files of lines: what a query of SQLite or DuckDB gives, and Arrow files (Feather).

Columns, ids and weights are as in Parquet. Rows come in batches; SQLite and DuckDB are opened to be read only.
"""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.storage.base.errors import InputError
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest.core.arrow import duckdb_batches, feather_batches, feather_schema, record_batch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.parquet import NamedParquetSource, ParquetSource, columns_of, weights_of
from penstock.storage.ingest.text.columns import note_columns

SQLITE = b"SQLite format 3\0"
DUCKDB = (8, b"DUCK")
FEATHER = b"ARROW1"
ROW_BYTES = 512
"""Of a row of a query as Python's objects, about."""


class BatchSource(ParquetSource):
    """Rows in record batches. See `core.source.Source`. format: "sqlite", "duckdb" or "feather"."""

    format = ""

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the rows as edges, in order. Raises as `ParquetSource.batches`."""
        for path in map(Path, self._paths):
            read = 0
            with closing(record_batches(path, self.format, self._options)) as found:
                for batch in found:
                    taken = columns_of(path, batch.schema.names, self._options)
                    if not read:
                        note_columns(self.columns_taken, taken)
                    names = [taken.names[column] for column in taken.columns if column >= 0]
                    columns = [batch.column(column) for column in taken.columns if column >= 0]
                    weights = weights_of(columns[2], names[2], path, read) if names[2:] else None
                    yield self._batch(columns, weights, names, (path, read))
                    read += len(batch)
            self._closed_bytes += path.stat().st_size


class NamedBatchSource(BatchSource, NamedParquetSource):
    """The same, of ids that are text. See `core.source.NamedSource`."""


def batch_source(paths: list[Path], format: str, options: IngestOptions) -> BatchSource:
    """The files as a source, of text where the options say so or the first rows do. Raises InputError."""
    if format == "feather" and options.query is not None:
        raise InputError(f"--query is for databases (SQLite, DuckDB), and {paths[0]} is an Arrow file; leave it out")
    named = options.string_ids or (options.string_ids is None and _holds_text(paths[0], format, options))
    source: BatchSource = (NamedBatchSource if named else BatchSource)(paths, options)
    source.format = format
    return source


def _holds_text(path: Path, format: str, options: IngestOptions) -> bool:
    if format == "feather":
        schema = feather_schema(path)
    else:
        with closing(record_batches(path, format, options)) as found:
            first = next(found, None)
        if first is None:
            return False
        schema = first.schema
    taken = columns_of(path, schema.names, options).columns
    return any("string" in str(schema.field(column).type) for column in (taken.source, taken.target))


def record_batches(path: Path, format: str, options: IngestOptions) -> Generator[Any]:
    """Yield the record batches of a table. Raises InputError."""
    if format == "feather":
        yield from feather_batches(path)
        return
    if options.query is None:
        tables = f" (tables: {', '.join(_sqlite_tables(path))})" if format == "sqlite" else ""
        raise InputError(
            f"{path} is a {'SQLite' if format == 'sqlite' else 'DuckDB'} database{tables}; --query says what to read, "
            "such as 'select source, target from edges'"
        )
    rows = max(1024, options.host_memory // 16 // ROW_BYTES)
    if format == "duckdb":
        yield from duckdb_batches(path, options.query, min(rows, 1 << 17))
    else:
        yield from _sqlite_batches(path, options.query, min(rows, 1 << 14))


def _sqlite_batches(path: Path, query: str, rows: int) -> Iterator[Any]:
    try:
        with closing(_sqlite(path)) as database, closing(database.execute(query)) as cursor:
            if cursor.description is None:
                raise InputError(f"{path}: --query {query!r} gives no rows; it must be a select")
            names, read = [column[0] for column in cursor.description], 0
            while found := cursor.fetchmany(rows):
                yield _batch_of(path, names, found, read)
                read += len(found)
    except sqlite3.Error as error:
        raise InputError(f"{path}: --query {query!r}: {error}") from error


def _batch_of(path: Path, names: list[str], rows: list[tuple[Any, ...]], first: int) -> Any:
    if len(set(names)) < len(names):
        raise InputError(f"{path}: the columns of the query are {', '.join(names)}; give each a name of its own (as)")
    try:
        return record_batch({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})
    except TypeError as error:
        last = first + len(rows) - 1
        raise InputError(
            f"{path}, rows {first} to {last} (from 0): a column has values of several types ({error}); cast them"
        ) from error


def _sqlite_tables(path: Path) -> list[str]:
    try:
        with closing(_sqlite(path)) as database:
            return [
                name for (name,) in database.execute("select name from sqlite_schema where type in ('table', 'view')")
            ]
    except sqlite3.Error as error:
        raise InputError(f"{path} is no readable SQLite database: {error}; fetch it again") from error


def _sqlite(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
