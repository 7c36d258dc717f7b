"""Files that Arrow writes of record batches: CSV, Parquet and Feather; several batches are converted at once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator
from contextlib import closing
from io import StringIO
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from penstock.storage.tables.columns import WriteOptions
from penstock.storage.tables.formats import FORMATS
from penstock.storage.tables.synced_file import OrderedFile, write_all

TEXT_ROWS = 1 << 15
"""Rows that a thread turns into text at once: some MiB."""
CSV_ROWS = 1 << 14
"""Rows that Arrow formats at once: with 1024, its default, CSV takes a fifth longer."""
GZIP_LEVEL = 1
"""Arrow's default, 9, takes ten times as long for a seventh less."""
GROUP_ROWS = 1 << 17
"""Rows of a row group of Parquet: the library keeps one in memory, encoded and not."""
FORMULA = r"\A([=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
"""How a text begins that a spreadsheet may take for a formula, by OWASP's page "CSV Injection"."""


class Batches(Protocol):
    """A table that gives record batches of its rows in order."""

    @property
    def schema(self) -> Any:
        """The pyarrow.Schema of the batches."""

    def mapped(self, function: Callable[[Any], Any], *, threads: int | None, rows: int) -> Generator[Any, None, None]:
        """Yield the function of every batch, in order; threads work on the next ones. rows: of a batch, about."""

    def holds(self, marks: str) -> bool:
        """Whether one of these characters is in a string of the table."""


def save_csv(
    file: OrderedFile, table: Batches, options: WriteOptions, *, delimiter: str = ",", gzip: bool = False
) -> None:
    """Write CSV with a header; absent values are empty. gzip: in members of their own, which threads compress."""
    safe = _without_formulas if options.style.get("csv_safe") else _same
    quoting = "needed" if table.holds(delimiter + '"\n\r') else "none"
    layout = pyarrow.csv.WriteOptions(
        quoting_style=quoting, include_header=False, batch_size=CSV_ROWS, delimiter=delimiter
    )
    head = StringIO()
    names = safe(pa.record_batch([table.schema.names], ["names"])).column(0).to_pylist()
    csv.writer(head, delimiter=delimiter, lineterminator="\n").writerow(names)
    file.write(compressed(head.getvalue().encode(), gzip))
    rows = table.mapped(lambda batch: csv_rows(safe(batch), layout, gzip), threads=options.threads, rows=TEXT_ROWS)
    write_all(file, rows)


def save_parquet(file: OrderedFile, table: Batches, options: WriteOptions, **encodings: Any) -> None:
    """Write Parquet, compressed by zstd; absent values are null. encodings: of pyarrow.parquet.ParquetWriter."""
    _write_batches(pyarrow.parquet.ParquetWriter(file, table.schema, compression="zstd", **encodings), table, options)


def save_feather(file: OrderedFile, table: Batches, options: WriteOptions) -> None:
    """Write Feather, which is an Arrow IPC file, compressed by LZ4 as pyarrow.feather does; absent values are null."""
    style = pa.ipc.IpcWriteOptions(compression="lz4")
    _write_batches(pa.ipc.new_file(file, table.schema, options=style), table, options)


def _write_batches(writer: Any, table: Batches, options: WriteOptions) -> None:
    """Write all batches of a table, and close the writer."""
    with writer, closing(table.mapped(_same, threads=options.threads, rows=GROUP_ROWS)) as batches:
        for batch in batches:
            writer.write_batch(batch)


_SAVES = {one.__name__: one for one in (save_csv, save_parquet, save_feather)}


def save(file: OrderedFile, table: Batches, options: WriteOptions, format: str, **encodings: Any) -> None:
    """Write CSV, TSV, Parquet or Feather, by the name of its format in `FORMATS`. encodings: of Parquet."""
    form = FORMATS[format]
    _SAVES[form.save](file, table, options, **(encodings if format == "parquet" else form.settings))


def stream(table: Batches, threads: int | None = 1) -> Any:
    """A pyarrow.RecordBatchReader, whose batches are made as they are read."""
    return pa.RecordBatchReader.from_batches(table.schema, table.mapped(_same, threads=threads, rows=GROUP_ROWS))


def csv_rows(batch: Any, layout: Any, gzip: bool) -> Any:
    """The rows of CSV of a batch, in UTF-8."""
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(batch, sink, layout)
    return compressed(sink.getvalue(), gzip)


def compressed(data: Any, gzip: bool) -> Any:
    """The data, or a member of a gzip file that holds it."""
    return pa.Codec("gzip", compression_level=GZIP_LEVEL).compress(data) if gzip and len(data) else data


def _same(batch: Any) -> Any:
    return batch


def _without_formulas(batch: Any) -> Any:
    """The batch with a single quote before each text that a spreadsheet may take for a formula."""
    columns = [
        column if pa.types.is_primitive(column.type) else pc.replace_substring_regex(column, FORMULA, r"'\1")
        for column in batch.columns
    ]
    return pa.record_batch(columns, schema=batch.schema)
