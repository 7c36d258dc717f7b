"""icebug-disk, CSR in Parquet: `indices_NAME.parquet` (a column `target`, properties) beside `indptr_NAME.parquet`.

Edges are directed. Vertices are numbered by the rows of their table; `--vertices nodes_NAME.parquet` has properties.
Between two tables they are bipartite, which the files do not say.
"""

from collections.abc import Generator, Iterator
from pathlib import PurePath
from typing import Any

import numpy as np
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place, exists, place_of
from penstock.storage.ingest.core.arrow import parquet_batches, parquet_file, record_batch, side_by_side
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.parquet import ParquetSource, columns_of
from penstock.storage.ingest.text.columns import TakenColumns, note_columns


class IcebugSource(ParquetSource):
    """The edges of one table. See `core/source.Source`."""

    def __init__(self, path: Place, options: IngestOptions) -> None:
        place = place_of(path)
        kind, mark, table = PurePath(place).name.partition("_")
        self._indptr = place.parent / f"indptr_{table}"
        indices = place.parent / f"indices_{table}"
        if kind not in ("indptr", "indices") or not mark or not (exists(indices) and exists(self._indptr)):
            raise InputError(f"{place}: icebug-disk is two files, indptr_NAME.parquet and indices_NAME.parquet")
        super().__init__([indices], options)
        with parquet_file(self._indptr) as file:
            self._pointer = file.schema_arrow.names[0]
            vertices = file.metadata.num_rows - 1
        self.known_vertices = None if options.sides else max(0, vertices)

    def _rows(self, path: Place) -> Generator[tuple[TakenColumns, list[Any], int | None]]:
        with parquet_file(path) as file:
            stored, edges = file.schema_arrow.names, file.metadata.num_rows
        taken = columns_of(path, ["source", *stored], self._options)
        note_columns(self.columns_taken, taken)
        wanted = self._wanted(taken)
        rows = max(1024, self._options.block_bytes // (16 + 32 * len(self._options.edge_properties)))
        memory = self._options.host_memory
        others = parquet_batches(path, [name for name in wanted if name != "source"], rows, memory)
        pointers = parquet_batches(self._indptr, [self._pointer], rows, memory)
        for batch in side_by_side([self._sources(pointers, rows), others], str(path)):
            yield taken, [batch.column(name) for name in wanted], edges

    def _sources(self, pointers: Iterator[Any], rows: int) -> Iterator[Any]:
        """The source of every edge, some at a time."""
        vertex, last = -1, np.zeros(1, np.int64)
        for batch in pointers:
            ends = np.concatenate([last, batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64)])
            if (np.diff(ends) < 0).any() or (vertex < 0 and ends[1] != 0):
                raise InputError(f"{self._indptr}: its numbers do not begin with 0, or one falls; write it again")
            for first in range(int(ends[0]), int(ends[-1]), rows):
                places = np.arange(first, min(first + rows, int(ends[-1])))
                yield record_batch({"source": vertex + np.searchsorted(ends, places, "right") - 1})
            vertex, last = vertex + len(batch), ends[-1:]
