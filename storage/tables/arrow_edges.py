"""The edges of a graph as record batches: source, target and weight, in the ids of the input."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from penstock.storage.base.threads import pooled_map
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.tables.arrow_files import GROUP_ROWS, stream
from penstock.storage.tables.edge_pieces import EdgePieces, ListPieces

TEXT_BYTES = 4 << 20
"""Of the names in a column of a batch, on average; at most 16 times as many, where edges share a long one."""
Names = NDArray[Any] | StringArray | None
"""Original ids by internal ids: numbers, NumPy's strings or strings of a file; None where they are the same."""


class ArrowIds:
    """Vertices in the ids of the input, as Arrow arrays. dtype: of internal ids, which are these without names."""

    def __init__(self, dtype: np.dtype[Any], names: Names) -> None:
        self._texts: Any = None
        self._numbers: NDArray[Any] | None = None
        if isinstance(names, StringArray) or (names is not None and names.dtype.kind == "T"):
            self._texts = name_array(names)
        else:
            self._numbers = names
        kind = dtype if self._numbers is None else self._numbers.dtype
        self.type = pa.from_numpy_dtype(kind) if self._texts is None else pa.string()

    @property
    def size(self) -> int:
        """Bytes of an id, on average; a sixteenth of the longest where that is more."""
        if self._texts is None:
            return 8
        longest: int = pc.max(pc.binary_length(self._texts)).as_py() or 0
        average: int = self._texts.nbytes // max(1, len(self._texts))
        return max(average, longest // 16)

    def holds(self, marks: str) -> bool:
        """Whether one of these characters is in an id."""
        texts = self._texts
        return texts is not None and any(pc.any(pc.match_substring(texts, mark), min_count=0).as_py() for mark in marks)

    def of(self, vertices: NDArray[Any]) -> Any:
        """The ids of some vertices, which are internal ids."""
        if self._texts is not None:
            return self._texts.take(pa.array(vertices)).cast(pa.string())
        return pa.array(vertices if self._numbers is None else self._numbers[vertices])


class EdgeTable:
    """Edges as a table, a batch for each piece, or more where names are long: see `arrow_files.Batches`.

    read: called with how many entries of the adjacency have been read so far. rows: edges given so far.
    """

    def __init__(
        self, pieces: EdgePieces | ListPieces, names: Names, read: Callable[[int], None] = lambda entries: None
    ) -> None:
        self._pieces, self._read = pieces, read
        self._ends = ArrowIds(pieces.vertex_dtype, names)
        weights = [] if pieces.weight_dtype is None else [("weight", pa.from_numpy_dtype(pieces.weight_dtype))]
        self.schema = pa.schema([("source", self._ends.type), ("target", self._ends.type), *weights])
        largest = max(map(pieces.stored, range(pieces.count)), default=0)
        self._cuts = -(-largest * self._ends.size // TEXT_BYTES) or 1
        self.rows = 0

    def mapped(self, function: Callable[[Any], Any], *, threads: int | None, rows: int) -> Generator[Any, None, None]:
        """Yield the function of every batch, in order; a batch is a chunk of the graph, whatever `rows`."""
        cuts, read = self._cuts, 0

        def work(number: int) -> tuple[int, Any]:
            batch = self._batch(*divmod(number, cuts))
            return batch.num_rows, function(batch)

        numbers = range(self._pieces.count * cuts)
        with closing(pooled_map(work, numbers, threads, "edges")) as batches:
            for number, (count, found) in enumerate(batches):
                read += self._pieces.stored(number // cuts) if number % cuts == 0 else 0
                self.rows += count
                self._read(read)
                yield found

    def holds(self, marks: str) -> bool:
        """Whether one of these characters is in an id."""
        return self._ends.holds(marks)

    def _batch(self, piece: int, cut: int) -> Any:
        """Return the record batch of one of the cuts of a piece."""
        sources, targets, weights = self._pieces.read(piece)
        here = slice(cut * len(sources) // self._cuts, (cut + 1) * len(sources) // self._cuts)
        columns = [self._ends.of(sources[here]), self._ends.of(targets[here])]
        return pa.record_batch(columns if weights is None else [*columns, pa.array(weights[here])], schema=self.schema)


def name_array(names: NDArray[Any] | StringArray) -> Any:
    """Ids that are strings as an array of Arrow; those of a file are not copied."""
    if isinstance(names, StringArray):
        ends = np.concatenate([np.zeros(1, np.int64), names.ends])
        return pa.LargeStringArray.from_buffers(len(names), pa.py_buffer(ends), pa.py_buffer(names.text))
    firsts = range(0, len(names), GROUP_ROWS)
    parts = [pa.array(names[first : first + GROUP_ROWS].astype(object), pa.large_string()) for first in firsts]
    return pa.concat_arrays([pa.array([], pa.large_string()), *parts])


def edge_reader(pieces: EdgePieces | ListPieces, names: Names, threads: int | None) -> Any:
    """A pyarrow.RecordBatchReader of edges, whose batches are made a few ahead of who reads them."""
    return stream(EdgeTable(pieces, names), threads)
