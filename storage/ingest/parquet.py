"""Owns Parquet: two or three columns of whole numbers, batch by batch. The only door to pyarrow.

Columns are chosen by name or position; a third one is taken as weight only when asked. Refuses
strings, nulls, fractions and negative numbers as ids. What a row group decodes to is pyarrow's to
hold: files with row groups far larger than the budget exceed it (ordinary ones have 1 M rows).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.edges import EdgeBatch
from penstock.storage.errors import InputError, RunError
from penstock.storage.ingest.options import IngestOptions

MAGIC = b"PAR1"


class ParquetSource:
    """Parquet files, one after another. See `options.Source`."""

    known_vertices: int | None = None
    undirected = False

    def __init__(self, paths: Sequence[str | Path], options: IngestOptions) -> None:
        self.name = ", ".join(map(str, paths))
        self._paths = [Path(path) for path in paths]
        self._options = options
        for path in self._paths:
            if not path.is_file():
                raise InputError(f"{path} is not a file; Parquet cannot be read from a pipe")
        self.total_bytes = sum(path.stat().st_size for path in self._paths)
        self.bytes_done = 0

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the rows as edges, in order.

        Raises:
            InputError: a file is no Parquet, lacks a column, or a value is no id or weight.
            RunError: the disk failed.
        """
        import pyarrow
        from pyarrow import parquet

        done = 0
        for path in self._paths:
            try:
                with parquet.ParquetFile(path, pre_buffer=False) as file:
                    yield from self._file(path, file, done)
            except pyarrow.ArrowInvalid as error:
                raise InputError(f"{path} is no readable Parquet file: {error}") from error
            except OSError as error:
                raise RunError(f"{path}: reading failed: {error}") from error
            done += path.stat().st_size
            self.bytes_done = done

    def _file(self, path: Path, file: Any, done: int) -> Iterator[EdgeBatch]:
        names = self._columns(path, file.schema_arrow.names)
        rows = max(1, file.metadata.num_rows)
        size = path.stat().st_size
        read = 0
        batches = file.iter_batches(
            batch_size=max(1024, self._options.block_bytes // 16), columns=names, use_threads=True
        )
        for batch in batches:
            columns = {name: batch.column(name) for name in names}
            sources = _ids(columns[names[0]], names[0], path, read)
            targets = _ids(columns[names[1]], names[1], path, read)
            weights = _weights(columns[names[2]], names[2], path, read) if names[2:] else None
            common = np.promote_types(sources.dtype, targets.dtype)
            yield EdgeBatch(sources.astype(common), targets.astype(common), weights)
            read += len(batch)
            self.bytes_done = done + int(size * read / rows)

    def _columns(self, path: Path, names: list[str]) -> list[str]:
        wanted = self._options.columns or ((0, 1, 2) if self._options.weights else (0, 1))
        found = []
        for column in wanted:
            if isinstance(column, int) and column < len(names):
                found.append(names[column])
            elif column in names:
                found.append(str(column))
            else:
                raise InputError(f"{path} has no column {column!r}; it has {', '.join(names)}: see --columns")
        return found


def _ids(column: Any, name: str, path: Path, row: int) -> NDArray[Any]:
    values = _numbers(column, name, path, row)
    if values.dtype.kind not in "iu":
        raise InputError(
            f"{path}: column {name!r} holds {column.type}, and ids are whole numbers; --columns names other columns"
        )
    if values.dtype.kind == "i" and len(values) and int(values.min()) < 0:
        at = int(np.argmax(values < 0))
        raise InputError(f"{path}, row {row + at} (from 0): {name} {values[at]} is negative; ids are 0 or more")
    if len(values) == 0 or int(values.max()) < 1 << 32:
        return values.astype(np.uint32)
    return values.astype(np.uint64)


def _weights(column: Any, name: str, path: Path, row: int) -> NDArray[Any]:
    values = _numbers(column, name, path, row)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise InputError(
            f"{path}, row {row + at} (from 0): weight {name} is {values[at]}, and weights are "
            "finite; drop such rows, or leave weights out"
        )
    return values


def _numbers(column: Any, name: str, path: Path, row: int) -> NDArray[Any]:
    if column.null_count:
        at = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{path}, row {at} (from 0): {name} is null; drop such rows")
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iuf":
        raise InputError(
            f"{path}: column {name!r} holds {column.type}, not numbers; --columns names others "
            "(ids that are strings are not supported)"
        )
    return values
