"""Writes the edges of a graph, in the ids of its input, as a table or as scipy's npz.

Memory holds a few chunks, the row index and the ids. A file appears whole or not at all.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from penstock.storage.access.graph_queries import names_of, pieces_of, text_bytes
from penstock.storage.access.vertex_lookup import QueriedGraph
from penstock.storage.base.atomic import whole_file
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import pooled_map
from penstock.storage.tables.columns import WriteOptions, npy_head
from penstock.storage.tables.edge_pieces import EdgePieces, Edges, ListPieces
from penstock.storage.tables.formats import (
    EDGES,
    ColumnSize,
    SizeRange,
    TableStyle,
    check_streamed,
    check_style,
    column_size,
    digits_of_first,
    format_of,
    table_size,
)
from penstock.storage.tables.synced_file import OrderedFile, SyncedFile

DICTIONARY: dict[str, Any] = {"use_dictionary": ["source", "target"], "dictionary_pagesize_limit": 1 << 14}
"""Of Parquet: ids as numbers of a page's dictionary."""


@dataclass(frozen=True)
class ExportOptions:
    """How edges are written.

    both_directions: of an undirected graph each edge from both its ends. threads: most that decode; None: every core.
    read: called with how many entries of the adjacency have been read; `entries_to_read` says of how many.
    style: options of output.
    """

    both_directions: bool = False
    threads: int | None = None
    read: Callable[[int], None] = lambda entries: None
    style: TableStyle = field(default_factory=TableStyle)

    @property
    def written(self) -> WriteOptions:
        """How the table is written."""
        return WriteOptions(self.threads, style=self.style)


def export_edges(
    graph: QueriedGraph, path: Path, options: ExportOptions, *, format: str | None = None, force: bool = False
) -> int:
    """Write the edges of a graph to a file, whole or not at all; return how many.

    Raises:
        InputError: the file may not be written, or the format is unknown or cannot hold the ids.
        RunError: the graph cannot be read, or the disk is full or failed.
    """
    name = format_of(path, format, EDGES)
    check_style(options.style, name)
    pieces = pieces_of(graph, both_directions=options.both_directions)
    if name == "npz":
        matrix = _Matrix.of(graph, pieces, options)
        with whole_file(path, force=force) as partial_file:
            return matrix.save(partial_file)
    with whole_file(path, force=force) as partial_file, SyncedFile(partial_file) as file:
        return _write_by_arrow(graph, pieces, file, options, name)


def stream_edges(graph: QueriedGraph, file: OrderedFile, options: ExportOptions, format: str) -> int:
    """Write the edges of a graph to an open file, such as standard output; return how many.

    Raises InputError for npz, whose parts are written one by one, and as `export_edges`.
    """
    check_streamed(format, EDGES)
    check_style(options.style, format)
    return _write_by_arrow(graph, pieces_of(graph, both_directions=options.both_directions), file, options, format)


def entries_to_read(graph: QueriedGraph, format: str) -> int:
    """How many entries of the adjacency an export reads, for progress: npz reads them several times."""
    return graph.out.edges * (1 if format != "npz" else 2 + (not graph.directed) + (graph.out.weight_dtype is not None))


def _write_by_arrow(
    graph: QueriedGraph, pieces: EdgePieces | ListPieces, file: OrderedFile, options: ExportOptions, format: str
) -> int:
    from penstock.storage.tables import arrow_files  # Arrow takes long to import
    from penstock.storage.tables.arrow_edges import EdgeTable
    from penstock.storage.tables.arrow_tables import system_memory

    with system_memory():
        table = EdgeTable(pieces, names_of(graph), options.read)
        arrow_files.save(file, table, options.written, format, **DICTIONARY)
    return table.rows


@dataclass
class _Matrix:
    """Edges as a matrix of scipy in coordinates: rows are sources, columns targets, and values weights, or True.

    Each of its arrays is written by a pass over the edges.
    """

    pieces: EdgePieces | ListPieces
    ids: NDArray[Any] | None
    size: int
    options: ExportOptions
    before: int = 0

    @classmethod
    def of(cls, graph: QueriedGraph, pieces: EdgePieces | ListPieces, options: ExportOptions) -> _Matrix:
        """Raises InputError where ids are no rows of a matrix."""
        ids = names_of(graph)
        if graph.id_dtype.kind == "T":
            raise InputError("npz holds numbers, and ids are strings; write .parquet, .feather or .csv")
        if graph.left is not None:
            raise InputError("npz holds one space of ids, and the graph is bipartite; write .parquet, .feather or .csv")
        last = graph.vertices - 1 if ids is None else int(ids.max(initial=0))
        if last >= 1 << 63:
            raise InputError(f"npz holds ids below 2^63, and {last} is one; write .parquet, .feather or .csv")
        return cls(pieces, ids, last + 1, options)

    def save(self, path: Path) -> int:
        """Write it; return the number of edges."""
        index = np.dtype(np.int32 if self.size <= 1 << 31 else np.int64)
        weight = self.pieces.weight_dtype
        count = self._count()
        with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
            for name, whole in (("format", np.array(b"coo")), ("shape", np.array([self.size, self.size]))):
                with archive.open(f"{name}.npy", "w") as member:
                    npy_format.write_array(member, whole, allow_pickle=False)
            self._member(archive, "row", index, count, partial(self._ends, index, 0))
            self._member(archive, "col", index, count, partial(self._ends, index, 1))
            if weight is None:
                self._member(archive, "data", np.dtype(bool), count, lambda: _ones(count))
            else:
                self._member(archive, "data", weight, count, lambda: self._pass(_weights))
        return count

    def _count(self) -> int:
        """How many edges there are; counted where they are not all that are stored, or more."""
        if not self.pieces.selects:
            return self.pieces.entries
        return sum(self._pass(lambda edges: len(edges[0])))

    def _ends(self, index: np.dtype[Any], which: int) -> Iterator[NDArray[Any]]:
        ids = self.ids

        def original(edges: Edges) -> NDArray[Any]:
            ends = edges[1] if which else edges[0]
            return (ends if ids is None else ids[ends]).astype(index)

        return self._pass(original)

    def _pass(self, function: Callable[[Edges], Any]) -> Iterator[Any]:
        """Yield what the function makes of each piece, in order."""

        def work(piece: int) -> Any:
            return function(self.pieces.read(piece))

        with closing(pooled_map(work, range(self.pieces.count), self.options.threads, "edges")) as each:
            for piece, found in enumerate(each):
                self.before += self.pieces.stored(piece)
                self.options.read(self.before)
                yield found

    @staticmethod
    def _member(
        archive: zipfile.ZipFile,
        name: str,
        dtype: np.dtype[Any],
        count: int,
        parts: Callable[[], Any],
    ) -> None:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member, closing(parts()) as pieces:
            member.write(npy_head(dtype, (count,)))
            for piece in pieces:
                member.write(piece.view(np.uint8).data)


def _weights(edges: Edges) -> NDArray[Any]:
    assert edges[2] is not None, "this graph has weights"
    return np.ascontiguousarray(edges[2])


def _ones(count: int) -> Iterator[NDArray[Any]]:
    """So many True, in pieces."""
    step = 1 << 20
    for first in range(0, count, step):
        yield np.ones(min(step, count - first), bool)


def exported_size(graph: QueriedGraph, format: str, *, both_directions: bool) -> SizeRange:
    """The size of the edges that `edge_files.export_edges` writes in a format."""
    stored = graph.out.edges
    doubled = not graph.directed and graph.layout == "rows"  # every edge but loops is stored twice
    edges = stored // 2 if doubled and not both_directions else stored
    ends = [_id_column(graph, edges)] * 2
    weight = graph.out.weight_dtype
    weights = [] if weight is None else [column_size(weight, edges, sparse=False)]
    if format == "npz" and weight is None:
        weights = [column_size(np.dtype(np.bool_), edges, sparse=False)]
    return table_size(format, edges, [*ends, *weights])


def _id_column(graph: QueriedGraph, edges: int) -> ColumnSize:
    """The size of the ids at one end of all edges."""
    if graph.id_dtype.kind != "T":
        digits = edges * digits_of_first(graph.vertices) // max(1, graph.vertices)
        return ColumnSize(edges, digits, edges * min(4, graph.id_dtype.itemsize))
    likely = edges * text_bytes(graph) // max(1, graph.vertices)
    return ColumnSize(edges, likely, likely)
