"""Walks as Arrow has them, and files of them: Parquet and Feather (lists), text (a line each), CSV (columns), npy.

Walks are written as they are made; a file appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from penstock.storage.base.atomic import whole_file
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import pooled_map
from penstock.storage.tables import arrow_files
from penstock.storage.tables.arrow_edges import ArrowIds, Names
from penstock.storage.tables.arrow_files import compressed
from penstock.storage.tables.arrow_tables import system_memory
from penstock.storage.tables.columns import WriteOptions, npy_head
from penstock.storage.tables.formats import FORMATS, check_style
from penstock.storage.tables.synced_file import OrderedFile, SyncedFile, write_all


@dataclass(frozen=True)
class WrittenWalks:
    """Walks on their way to a file. blocks: as `WalkTable` takes them; names: of vertices, None where ids are these."""

    blocks: Iterable[NDArray[Any]]
    count: int
    width: int
    dtype: np.dtype[Any]
    names: Names


def save_walks(walks: WrittenWalks, path: Path, format: str, options: WriteOptions, *, force: bool) -> None:
    """Write walks to a file, whole or not at all.

    Raises:
        InputError: the file may not be written, or the format cannot hold the ids.
        RunError: walks cannot be made, or the disk is full or failed.
    """
    with whole_file(path, force=force) as partial, SyncedFile(partial) as file:
        stream_walks(walks, file, format, options)


def stream_walks(walks: WrittenWalks, file: OrderedFile, format: str, options: WriteOptions) -> None:
    """Write walks to an open file. Raises as `save_walks`."""
    check_style(options.style, format)
    if format == "npy":
        write_all(file, _npy_parts(walks))
        return
    # Parquet's writer of lists, in the system's memory, keeps 0.4 MiB for each row group (369 MiB after 20 M walks)
    with nullcontext() if format == "parquet" else system_memory():
        wide = walks.width if format.startswith("csv") else 0
        table = WalkTable(walks.blocks, walks.dtype, walks.names, wide=wide)
        if not format.startswith("txt"):
            arrow_files.save(file, table, options, format, use_dictionary=False)
            return
        if table.holds(" \t\r\n"):
            raise InputError("a line of text has ids between spaces, and there are spaces in ids; write .parquet")
        save_walk_lines(file, table, options, **FORMATS[format].settings)


def matrix_of(walks: NDArray[Any], none: int, names: NDArray[Any] | None, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return walks in the ids of the input, -1 behind their ends."""
    absent = walks == none
    named = walks if names is None else names[np.where(absent, 0, walks)]
    found = named.astype(kind)
    found[absent] = -1
    return found


def matrix_dtype(names: Names, dtype: np.dtype[Any], vertices: int) -> np.dtype[Any]:
    """Return the dtype of a matrix of walks. Raises InputError where ids are no such numbers."""
    if names is not None and getattr(names, "dtype", np.dtype("T")).kind == "T":
        raise InputError("a matrix holds numbers, and ids are strings; write .parquet, .feather, .txt or .csv")
    last = vertices - 1 if names is None else int(names.max(initial=0))  # type: ignore[union-attr]
    if last >= 1 << 63:
        raise InputError(f"a matrix holds ids below 2^63, and {last} is one; write .parquet, .feather, .txt or .csv")
    return np.dtype(np.int32 if last < 1 << 31 else np.int64)


def _npy_parts(walks: WrittenWalks) -> Generator[Any, None, None]:
    none = np.iinfo(walks.dtype).max
    kind = matrix_dtype(walks.names, walks.dtype, int(none))
    yield npy_head(kind, (walks.count, walks.width))
    for block in walks.blocks:
        yield matrix_of(block, none, walks.names, kind)  # type: ignore[arg-type]


PIECE_CELLS = 1 << 18
"""Cells of walks that a thread converts at once."""


class WalkTable:
    """Walks as a table: see `arrow_files.Batches`.

    blocks: walks in order, (walks, length + 1) internal ids, behind whose ends the largest value stands. wide: a column
    for each step, null behind the end; else one column of lists.
    """

    def __init__(self, blocks: Iterable[NDArray[Any]], dtype: np.dtype[Any], names: Names, *, wide: int = 0) -> None:
        self._blocks, self._none, self._wide = blocks, np.iinfo(dtype).max, wide
        self._vertices = ArrowIds(dtype, names)
        kind = self._vertices.type
        columns = [(f"step_{step}", kind) for step in range(wide)] if wide else [("walk", pa.list_(kind))]
        self.schema = pa.schema(columns)

    def mapped(self, function: Callable[[Any], Any], *, threads: int | None, rows: int) -> Generator[Any, None, None]:
        """Yield the function of every batch, in order; a batch has some hundred thousand vertices, whatever `rows`."""
        return pooled_map(lambda walks: function(self.batch(walks)), self._pieces(), threads, "walks")

    def _pieces(self) -> Generator[NDArray[Any], None, None]:
        for block in self._blocks:
            step = max(1, PIECE_CELLS // block.shape[1])
            for first in range(0, len(block), step):
                yield block[first : first + step]

    def holds(self, marks: str) -> bool:
        """Whether one of these characters is in an id."""
        return self._vertices.holds(marks)

    def batch(self, walks: NDArray[Any]) -> Any:
        """Return the record batch of some walks."""
        if self._wide:
            columns = [self._column(np.ascontiguousarray(walks[:, step])) for step in range(self._wide)]
            return pa.record_batch(columns, schema=self.schema)
        present = walks != self._none
        ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(present.sum(axis=1), dtype=np.int32)])
        return pa.record_batch([pa.ListArray.from_arrays(ends, self._vertices.of(walks[present]))], schema=self.schema)

    def _column(self, vertices: NDArray[Any]) -> Any:
        absent = vertices == self._none
        if not absent.any():
            return self._vertices.of(vertices)
        return pc.if_else(pa.array(~absent), self._vertices.of(np.where(absent, 0, vertices)), None)


def save_walk_lines(file: OrderedFile, table: WalkTable, options: WriteOptions, *, gzip: bool = False) -> None:
    """Write a line for each walk, ids between spaces: what word2vec reads. gzip: in members of their own."""

    def lines(batch: Any) -> Any:
        walks = batch.column(0)
        texts = pa.ListArray.from_arrays(walks.offsets, walks.values.cast(pa.string()))
        joined = pc.binary_join_element_wise(pc.binary_join(texts, " "), "\n", "")
        _, ends, text = joined.buffers()
        return compressed(text.slice(0, int(np.frombuffer(ends, np.int32)[len(joined)])), gzip)

    write_all(file, table.mapped(lines, threads=options.threads, rows=0))
