"""Walks as Arrow has them: lists of the ids of the input, or a column for every step; and files of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from penstock.storage.base.threads import pooled_map
from penstock.storage.tables.arrow_edges import ArrowIds, Names
from penstock.storage.tables.arrow_files import compressed
from penstock.storage.tables.columns import WriteOptions
from penstock.storage.tables.synced_file import OrderedFile, write_all

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
