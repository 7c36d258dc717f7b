"""Properties of the vertices of a graph, in a Parquet file beside it; rows are in the order of the original ids."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, RunError, brief
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.tables.arrow_tables import system_memory
from penstock.storage.tables.columns import Column, Part, Read
from penstock.storage.tables.vertex_rows import ID

TABLE = b"penstock_table"
"""In the metadata of the file: the identity of the table, which the graph has, too."""


COPY_BYTES = 16 << 20
"""Bytes that Arrow takes to read and write a row group, beside its values (measured with 21 columns)."""


class PropertyFile:
    """The properties of a graph's vertices.

    path: of the file. identity, vertices: what the graph says of it; types: of the properties, by name.
    Raises InputError for a file that is missing, or of another graph.
    """

    def __init__(self, path: Path, identity: str, vertices: int, types: Mapping[str, str]) -> None:
        self.path, self.identity, self.types, self.rows = path, identity, dict(types), vertices
        self._lock = threading.Lock()
        self._last: dict[str, tuple[int, Any]] = {}
        self._own = pa.default_memory_pool()
        try:
            with system_memory():  # from there come all values that are read
                self._file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)
        except FileNotFoundError:
            raise InputError(
                f"{path} is missing, and has the properties of the vertices; put it beside the graph, where it was made"
            ) from None
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} is no readable Parquet file ({error}); convert the input again") from None
        found = self._file.schema_arrow.metadata or {}
        if found.get(TABLE) != identity.encode() or self._file.metadata.num_rows != vertices:
            raise InputError(f"{path} has the properties of another graph; convert the input again with --vertices")

    def column(self, name: str) -> Column:
        """A property of all vertices, by ascending original id. Raises InputError for one that there is not."""
        if name not in self.types:
            raise InputError(f"{self.path} has no property {name!r}; there is {brief(', '.join(self.types))}")
        kind = self._file.schema_arrow.field(name).type
        dtype = STRINGS if pa.types.is_string(kind) else np.dtype(kind.to_pandas_dtype())
        read: Read = partial(self._read, name)
        return Column(dtype, self.rows, lambda: read)

    def values(self, name: str, rows: NDArray[np.int64]) -> list[Any]:
        """A property of the vertices at some places in the order of their ids; None where there is no value."""
        groups = np.searchsorted(self._ends, rows, "right")
        firsts = np.concatenate([[0], self._ends])[groups]
        found: list[Any] = [None] * len(rows)
        for group in np.unique(groups).tolist():
            column = self._group(group, name)
            for place in np.flatnonzero(groups == group).tolist():
                found[place] = column[int(rows[place] - firsts[place])].as_py()
        return found

    def checked_ids(self) -> Iterator[NDArray[Any]]:
        """Read everything; yield the ids of each row group. Raises RunError."""
        for group in range(self._file.num_row_groups):
            for name in self.types:
                self._group(group, name)
            ids = self._group(group, ID)
            yield np.array(ids.to_pylist(), STRINGS) if pa.types.is_string(ids.type) else ids.to_numpy()

    def write_rows(self, path: Path, kept: NDArray[np.bool_], identity: str) -> None:
        """Write the rows that `kept`, bool (vertices,), names, as the file of another graph. Raises RunError.

        A column at a time is read: Arrow keeps a page or two of every column that it reads at once.
        """
        metadata = {**(self._file.schema_arrow.metadata or {}), TABLE: identity.encode()}
        schema = self._file.schema_arrow.with_metadata(metadata)
        with system_memory(), pyarrow.parquet.ParquetWriter(path, schema) as writer:
            for group, (first, last) in enumerate(pairwise([0, *self._ends.tolist()])):
                rows = pa.array(kept[first:last])
                columns = [self._group(group, name).filter(rows) for name in schema.names]
                writer.write_table(pa.table(columns, schema=schema))

    @property
    def copy_bytes(self) -> int:
        """About the most bytes that `write_rows` takes: what a row group holds, and its pages."""
        facts = self._file.metadata
        groups = map(facts.row_group, range(facts.num_row_groups))
        return COPY_BYTES + 2 * max((group.total_byte_size for group in groups), default=0)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """How many rows there are up to the end of each row group."""
        facts = self._file.metadata
        counts = [facts.row_group(group).num_rows for group in range(facts.num_row_groups)]
        return np.cumsum(counts, dtype=np.int64)

    def _group(self, group: int, name: str) -> Any:
        """A column of a row group; the last one is kept, of which several ranges are read one after another."""
        with self._lock:
            known, values = self._last.get(name, (-1, None))
            if known == group:
                return values
            try:
                values = self._file.read_row_group(group, columns=[name], use_threads=False).column(0).combine_chunks()
            except (pa.ArrowException, OSError) as error:
                raise RunError(f"{self.path} is damaged ({error}); convert the input again") from error
            self._last[name] = (group, values)
            self._own.release_unused()  # pages come from Arrow's own allocator in any case, which keeps what is freed
            return values

    def _read(self, name: str, first: int, last: int) -> Part:
        """Values of rows first..last-1, and which are present."""
        begin = int(np.searchsorted(self._ends, first, "right"))
        end = int(np.searchsorted(self._ends, last, "left")) + 1
        before = int(self._ends[begin - 1]) if begin else 0
        groups = [self._group(group, name) for group in range(begin, min(end, len(self._ends)))]
        column = pa.chunked_array(groups or [pa.array([])]).slice(first - before, last - first)
        present = pc.is_valid(column).to_numpy() if column.null_count else None
        if pa.types.is_string(column.type):
            return np.array(pc.fill_null(column, "").to_pylist(), STRINGS), present
        return (pc.fill_null(column, 0) if present is not None else column).to_numpy(), present


def identity_of(path: Path) -> str | None:
    """The identity of a table of properties; None where a file is none."""
    try:
        found = (pyarrow.parquet.read_schema(path).metadata or {}).get(TABLE)
    except (pa.ArrowException, OSError):
        return None
    return None if found is None else str(found.decode())


def ids_of(path: Path) -> Iterator[Any]:
    """Yield the ids of a file of sorted vertices as Arrow arrays."""
    with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, columns=[ID], use_threads=False).column(0).combine_chunks()
