"""Apache GraphAr (`NAME.graph.yml`, `NAME.edge.yml`): an adjacency list, in chunks of Parquet or CSV, with properties.

Vertices are numbered as GraphAr numbers them, those without an edge too; `--vertices NAME.vertex.yml` has their
properties. Edges go both ways unless the YAML says `directed: true`. Between two types of vertices they are bipartite.
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from penstock.storage.base.errors import InputError
from penstock.storage.base.places import FilePlace, Place, place_of
from penstock.storage.ingest.core.arrow import parquet_batches, side_by_side, typed_csv_batches
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.parquet import ParquetSource, columns_of
from penstock.storage.ingest.text.columns import TakenColumns, note_columns
from penstock.storage.tables.graphar_layout import Group, VertexType, edge_type


class GraphArSource(ParquetSource):
    """The edges of a type. See `core/source.Source`; files are the chunks of the adjacency list."""

    def __init__(self, path: Place, options: IngestOptions) -> None:
        place = place_of(path)
        self._list = found = edge_type(place)
        if found.ends[0] != found.ends[1] and not options.sides:
            raise InputError(f"{place}: its edges go from {found.ends[0]} to {found.ends[1]}; add --bipartite")
        self._rows_of = {found.groups[0].folder / name: (name, rows) for name, rows in found.chunks()}
        super().__init__(list(self._rows_of), options)
        self.name = str(place)
        self.undirected = not found.directed
        self.known_vertices = None if options.sides else found.vertices

    def _rows(self, path: Place) -> Generator[tuple[TakenColumns, list[Any], int | None]]:
        edges, *groups = self._list.groups
        names = ["source", "target", *(name for group in groups for name in group.types)]
        chunk, rows = self._rows_of[place_of(path)]
        taken = columns_of(self.name, names, self._options)
        note_columns(self.columns_taken, taken)
        stored = dict(zip(names, edges.types, strict=False))
        columns = [stored.get(name, name) for name in self._wanted(taken)]
        read = 0
        with closing(chunk_rows(chunk, (edges, *groups), columns, self._options)) as found:
            for batch in found:
                read += len(batch)
                yield taken, [batch.column(name) for name in columns], rows
        if read != rows:
            raise InputError(f"{path} has {read} rows, and the count of its edges says {rows}; write the graph again")


def chunk_rows(chunk: str, groups: tuple[Group, ...], columns: list[str], options: IngestOptions) -> Generator[Any]:
    """Yield columns of a chunk as record batches, out of the groups that have them. Raises InputError."""
    used = {group: [name for name in group.types if name in columns] for group in groups}
    readers = [_batches(group, chunk, names, options) for group, names in used.items() if names]
    yield from side_by_side(readers, str(groups[0].folder / chunk))


def _batches(group: Group, chunk: str, names: list[str], options: IngestOptions) -> Iterator[Any]:
    path: FilePlace = group.folder / chunk
    if group.kind == "csv":
        return typed_csv_batches(path, {name: group.types[name] for name in names}, options.block_bytes)
    return parquet_batches(path, names, max(1024, options.block_bytes // (32 * len(names))), options.host_memory)


def vertex_chunks(found: VertexType, options: IngestOptions, names: list[str], rows: int) -> Generator[Any]:
    """Yield properties of the vertices of a type in their order, as record batches. Raises InputError."""
    for chunk in range(-(-found.count // found.chunk_rows)):
        yield from chunk_rows(f"chunk{chunk}", found.groups, names, options)
