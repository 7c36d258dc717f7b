"""Rows of vertices in the order of their ids, as a Parquet file; memory holds a part of them.

A distribution sort: rows go to parts between ids of a sample, each part to a scratch file unless there is but one, and
parts are sorted one after another (Knuth, TAOCP 3, section 5.2.5). An id that comes twice is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from penstock.storage.base.errors import InputError
from penstock.storage.base.printable import brief
from penstock.storage.encoding.string_array import ranks_among
from penstock.storage.tables.vertex_rows import ID

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
