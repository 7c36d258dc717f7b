"""A table of vertices: an id and properties, as CSV with a header (also that of Neo4j's importer) or Parquet.

Rows of a `.vertex.yml` of GraphAr, and of `nodes_*.parquet` of icebug-disk, have their number for an id.

Neo4j writes a column's role behind a colon: `id:ID`, `:LABEL`, `age:int`, `note:IGNORE`. Without an `:ID` the id is the
column named id, vertex or node, else the first. A CSV file of one column, or whose first line begins with a number, is
no table but a list of ids.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
from penstock.storage.base.errors import InputError, brief
from penstock.storage.ingest.bytes.blocks import next_block, without_mark
from penstock.storage.ingest.bytes.file import STANDARD_INPUT
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.arrow import numbered, parquet_batches
from penstock.storage.ingest.core.formats import suffix_of
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.elements import NodeRows
from penstock.storage.ingest.formats.gml import GMLParser
from penstock.storage.ingest.formats.graphar import vertex_chunks
from penstock.storage.ingest.formats.graphml import GraphMLParser
from penstock.storage.ingest.tables.layout import SAMPLE_BYTES, read_header
from penstock.storage.ingest.text.diagnose import is_number
from penstock.storage.tables.graphar_layout import vertex_type

_FIELD = re.compile(r"(?P<name>[^:]*):(?P<kind>[A-Za-z_]+)(?P<more>(\[\]|\([^)]*\)|\{[^}]*\})*)")
_TYPES = {"float": "float64", "double": "float64"} | dict.fromkeys(("int", "long", "short", "byte"), "int64")
_TEXT = ("string", "char", "boolean", "date", "time", "localtime", "localdatetime", "datetime", "duration", "point")
ID_NAMES = ("id", "vertex", "node", "vertexid", "nodeid")
NODE_ID = ":ID"
"""What the id of a node is called among attributes, which may be called id."""
_PARSERS: dict[str, Any] = {".graphml": partial(GraphMLParser, name=None), ".gml": partial(GMLParser, names=())}
MEMORY_SHARE = 8
"""One part in so many of the budget may hold rows that are sorted."""
READ_AHEAD = 64
"""Blocks that pyarrow reads before they are asked for (32), twice: as text and as columns."""
LEAST_BLOCK, MOST_BLOCK = 64 << 10, 1 << 20
MOST_PARTS = 256


@dataclass(frozen=True)
class VertexTable:
    """A table of vertices. rows, columns: of `vertex_rows`. sort_bytes: rows that are sorted may take so many."""

    path: Path
    rows: Any
    columns: Any
    sort_bytes: int

    def sort_into(
        self, partial: Path, identity: str, scratch: Callable[[], IO[bytes]], *, named: bool
    ) -> "SortedTable":
        """Write it in the order of the ids; named: these are text, else whole numbers. Raises InputError."""
        from penstock.storage.tables.arrow_tables import system_memory
        from penstock.storage.tables.vertex_rows import ID, Survey, write_sorted

        block = min(MOST_BLOCK, max(LEAST_BLOCK, self.sort_bytes // READ_AHEAD))
        kinds = {self.columns.id: "string" if named else "uint64"}
        with system_memory():
            survey = Survey()
            for batch in self.rows.batches(self.columns, kinds, block):
                survey.add(batch)
            for source, (name, declared) in self.columns.properties.items():
                kinds[source] = declared or survey.type_of(name)
            parts = min(MOST_PARTS, -(-3 * survey.held_bytes // (self.sort_bytes)))
            bounds = survey.bounds(max(1, parts))
            batches = self.rows.batches(self.columns, kinds, block)
            try:
                rows, types = write_sorted(batches, bounds, partial, scratch, {"penstock_table": identity})
            except InputError as error:
                raise error if str(error).startswith(str(self.path)) else InputError(f"{self.path}: {error}") from None
        return SortedTable(partial, identity, rows, {name: kind for name, kind in types.items() if name != ID})


@dataclass(frozen=True)
class SortedTable:
    """A table of vertices in the order of their ids, in a Parquet file: how many, and the properties' types by name."""

    path: Path
    identity: str
    rows: int
    types: dict[str, str]

    def ids(self) -> Iterator[Any]:
        """Yield the ids as Arrow arrays, ascending."""
        from penstock.storage.tables.property_file import ids_of

        return ids_of(self.path)


def open_vertex_table(path: Path, memory: int) -> VertexTable | None:
    """The table in a file; None for a list of ids. Raises InputError for a file that cannot be read."""
    kind = suffix_of(path)
    if str(path) == STANDARD_INPUT or kind not in (".csv", ".tsv", ".parquet", ".graphml", ".gml", ".yml", ".yaml"):
        return None
    opened, sort_bytes = partial(Stream, path, memory), memory // MEMORY_SHARE
    if kind in _PARSERS:
        nodes = NodeRows(str(path), opened, partial(_PARSERS[kind], str(path), attributes=True))
        return VertexTable(path, nodes, columns_of((NODE_ID, *nodes.names()), str(path)), sort_bytes)
    from penstock.storage.tables.vertex_rows import CsvRows, ParquetRows, parquet_names

    if kind in (".yml", ".yaml"):
        described = vertex_type(path)
        chunks = partial(vertex_chunks, described, IngestOptions(host_memory=memory))
        return _in_order(path, described.properties, chunks, described.name, sort_bytes)
    if kind == ".parquet":
        if not path.is_file():
            raise InputError(f"{path} is not a file; --vertices needs one")
        (names, ordered), read = parquet_names(path), partial(parquet_batches, path, memory=memory)
        if ordered:
            return _in_order(path, names, read, path.stem.removeprefix("nodes_"), sort_bytes)
        return VertexTable(path, ParquetRows(path, read), columns_of(names, str(path)), sort_bytes)
    with opened() as stream:
        block, filled, _ = next_block(stream, np.empty(0, np.uint8), SAMPLE_BYTES)
        block, filled = without_mark(block, filled)
        found = read_header(block[:filled], str(path))
    if found is None or len(found[0]) < 2 or is_number(found[0][0]):
        return None
    names, delimiter, comments = found
    return VertexTable(path, CsvRows(str(path), opened, delimiter, comments), columns_of(names, str(path)), sort_bytes)


def _in_order(
    path: Path, names: tuple[str, ...], read: Callable[[list[str], int], Iterator[Any]], kind: str, sort_bytes: int
) -> VertexTable:
    """A table whose rows have their number for an id; a property that is called id becomes that of the kind."""
    from penstock.storage.tables.vertex_rows import ID, ParquetRows

    def rows(wanted: list[str], count: int) -> Iterator[Any]:
        return numbered(read(wanted[1:], count), wanted[0])

    if not names:
        raise InputError(f"{path} has no property that is a number or text; leave --vertices out")
    columns = columns_of((NODE_ID, *names), str(path), {ID: f"{kind}_{ID}"})
    return VertexTable(path, ParquetRows(path, rows), columns, sort_bytes)


def columns_of(names: tuple[str, ...], file: str, called: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Which column is the id, and which are properties, of what type; called: names that these get.

    Raises InputError.
    """
    from penstock.storage.tables.vertex_rows import ID, VertexColumns

    if len(set(names)) < len(names) or "" in names:
        raise InputError(f"{file}: its header is {brief(', '.join(names))}; every column needs a name of its own")
    ids: list[str] = []
    properties: dict[str, tuple[str, str | None]] = {}
    for name in names:
        match = _FIELD.fullmatch(name)
        kind = match["kind"].lower() if match else ""
        if kind in ("start_id", "end_id", "type"):
            raise InputError(
                f"{file} is a table of edges (column {brief(name)}); name it as input, and one of vertices here"
            )
        if kind == "id":
            ids.append(name)
        elif match is None or kind not in ("label", "ignore", *_TYPES, *_TEXT):
            properties[name] = called.get(name, name), None
        elif kind == "label":
            properties[name] = match["name"] or "label", "string"
        elif kind != "ignore":
            properties[name] = match["name"], "string" if match["more"] else _TYPES.get(kind, "string")
    if len(ids) > 1:
        raise InputError(
            f"{file}: columns {brief(' and '.join(ids))} are ids, and a vertex has one; leave one of them out"
        )
    key = ids[0] if ids else next((name for name in names if re.sub(r"[^a-z]", "", name.lower()) in ID_NAMES), names[0])
    properties.pop(key, None)
    given = [name for name, _ in properties.values()]
    twice = next((name for name in given if given.count(name) > 1 or name in ("", ID, "vertex", "side")), None)
    if twice is not None:
        raise InputError(
            f"{file}: a property is called {brief(twice)!r}, which is taken, empty or used twice; rename the column"
        )
    return VertexColumns(names, key, properties)
