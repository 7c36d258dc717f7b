"""Parquet: two or three columns; `--columns` names source, target and, third, weight.

Columns are chosen by name or position; a third one is taken as weight only when asked. Ids are whole
numbers, or strings if asked (``--string-ids``, ``--renumber``). Refuses nulls, fractions and negative
numbers as ids, and text of which a row group has more than the budget has room for (ordinary ones have 1 M rows).
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.places import Place
from penstock.storage.encoding.string_array import LONGEST_NAME
from penstock.storage.ingest.bytes.stream import InputFiles
from penstock.storage.ingest.core.arrow import (
    as_floats,
    parquet_batches,
    parquet_file,
    parquet_schema,
    strings_of,
    taking,
    with_folders,
)
from penstock.storage.ingest.core.edges import EdgeBatch, as_ids, as_weights, edge_batch, local_names
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.columns import TakenColumns, choose_columns, find_columns, note_columns


class ParquetSource(InputFiles):
    """Parquet files, one after another. See `core/source.Source`."""

    named = False
    """Whether ids are strings."""

    def __init__(self, paths: Sequence[Place], options: IngestOptions) -> None:
        super().__init__(paths, options)
        for path, size in zip(paths, self._sizes, strict=True):
            if size is None:
                raise InputError(f"{path} is not a file; Parquet cannot be read from a pipe")
        self.columns_taken: list[TakenColumns] = []

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the rows as edges, in order.

        Raises:
            InputError: a file is no Parquet, lacks a column, or a value is no id or weight.
            RunError: the disk failed.
        """
        for path, size in zip(self._paths, self._sizes, strict=True):
            assert size is not None, "it is a file"
            before, read = self._closed_bytes, 0
            with closing(self._rows(path)) as found:
                for taken, columns, of in found:
                    names = [brief(taken.names[column]) for column in taken.columns if column >= 0]
                    with taking(path, names):
                        weights = weights_of(columns[2], names[2], path, read) if names[2:] else None
                        if self.edge_columns is not None:
                            weights = self.edge_columns.records(weights, columns[len(names) :], str(path))
                        batch = self._batch(columns, weights, names, (path, read))
                    read += len(columns[0])
                    self._closed_bytes = before + (int(size * read / of) if of else 0)
                    yield batch
            self._closed_bytes = before + size

    def _rows(self, path: Place) -> Generator[tuple[TakenColumns, list[Any], int | None]]:
        """Rows of a file: what is taken, these columns of some rows, and how many rows there are in all, if known."""
        with parquet_file(path) as file:
            kept = self.edge_columns.names if self.edge_columns else ()
            schema = with_folders(path, file.schema_arrow, (*(self._options.columns or ()), *kept))
            taken = columns_of(path, schema.names, self._options)
            note_columns(self.columns_taken, taken)
            names = self._wanted(taken)
            row_bytes = (256 if self.named else 16) + 32 * len(self._options.edge_properties)
            batch_rows = max(1024, self._options.block_bytes // row_bytes)
            for batch in parquet_batches(path, list(dict.fromkeys(names)), batch_rows, self._options.host_memory):
                yield taken, [batch.column(name) for name in names], file.metadata.num_rows

    def _wanted(self, taken: TakenColumns) -> list[str]:
        """The names of the columns to read: source, target, weight if any, what is kept beside edges."""
        kept = self.edge_columns.names if self.edge_columns else []
        if self.edge_columns:
            self.edge_columns.check_names(taken.names, taken.file)
        return [taken.names[column] for column in taken.columns if column >= 0] + kept

    def _batch(
        self, columns: list[Any], weights: NDArray[Any] | None, names: list[str], place: tuple[Place, int]
    ) -> EdgeBatch:
        """The edges of some rows; ``place`` is the file and the first row's number."""
        if self.named:
            text, places = string_fields(columns[:2], names, *place)
            local, numbers = local_names(text, places, self._options.sides)
            return EdgeBatch(numbers[:, 0].copy(), numbers[:, 1].copy(), weights, names=local)
        sources, targets = (_ids(columns[end], names[end], *place) for end in (0, 1))
        return edge_batch(sources, targets, weights)


def parquet_source(paths: Sequence[Place], options: IngestOptions) -> ParquetSource:
    """The files as a source, of strings where the options say so or the columns do."""
    source = ParquetSource(paths, options)
    strings = options.string_ids
    if strings is None:
        strings = holds_strings(paths[0], parquet_schema(paths[0], options.columns), options)
    source.named = strings
    return source


def holds_strings(path: Place, schema: Any, options: IngestOptions) -> bool:
    """Whether an id column of a schema holds strings; None, of a file that reading refuses, or an empty one: no."""
    if schema is None:
        return False
    columns = columns_of(path, schema.names, options).columns
    return any("string" in str(schema.field(column).type) for column in (columns.source, columns.target))


def columns_of(path: Place, names: list[str], options: IngestOptions) -> TakenColumns:
    """The columns that the options ask for, or the names say. Raises InputError for one that is not there."""
    if options.columns is None:
        columns = choose_columns(names, len(names), options.weights, str(path))
    else:
        columns = find_columns(names, options.columns, str(path))
    missing = [column for column in columns if column >= len(names)]
    if missing:
        raise InputError(f"{path} has no column {missing[0]}; it has {brief(', '.join(names))}: see --columns")
    return TakenColumns(str(path), columns, tuple(names), len(names))


def string_fields(
    columns: list[Any], names: list[str], path: Place, row: int
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Both columns' strings as bytes, and where each lies in them, as `text.parser.parse_lines` says it."""
    texts = []
    places = np.empty((len(columns[0]), 4), np.int32)
    base = 0
    for end, column in enumerate(columns):
        _check_nulls(column, names[end], path, row)
        text, starts = strings_of(column)
        lengths = np.diff(starts)
        wrong = (lengths == 0) | (lengths > LONGEST_NAME)
        for at in [] if wrong.any() else np.flatnonzero(text == 0)[:1].tolist():
            wrong[int(np.searchsorted(starts, at, "right")) - 1] = True
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(
                f"{path}, row {row + at} (from 0): {names[end]} is empty, longer than {LONGEST_NAME} bytes, or holds a "
                "zero byte; drop such rows"
            )
        places[:, 2 * end], places[:, 2 * end + 1] = starts[:-1] + base, lengths
        base += len(text)
        texts.append(text)
    return np.concatenate(texts), places


def _ids(column: Any, name: str, path: Place, row: int) -> NDArray[Any]:
    values = _numbers(column, name, path, row)
    if values.dtype.kind not in "iu":
        raise InputError(
            f"{path}: column {name!r} holds {brief(str(column.type))}, and ids are whole numbers; --columns names "
            "other columns"
        )
    return as_ids(values, name, str(path), row)


def weights_of(column: Any, name: str, path: Place, row: int) -> NDArray[Any]:
    """A column as weights. Raises InputError for what is none, with its row."""
    return as_weights(_numbers(as_floats(column), name, path, row), name, str(path), row)


def _numbers(column: Any, name: str, path: Place, row: int) -> NDArray[Any]:
    _check_nulls(column, name, path, row)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iuf":
        raise InputError(
            f"{path}: column {name!r} holds {brief(str(column.type))}, not numbers; --columns names others "
            "(--string-ids takes ids that are strings)"
        )
    return values


def _check_nulls(column: Any, name: str, path: Place, row: int) -> None:
    if column.null_count:
        at = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{path}, row {at} (from 0): {name} is null; drop such rows")
