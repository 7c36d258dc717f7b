"""Answers as properties of the vertices of Apache GraphAr: a group more in a `.vertex.yml`, in chunks as it says.

Chunks are written to a new folder first; then the YAML file, written anew, names it. A group of the same properties is
replaced, and its folder removed where it is below that of the vertices.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from penstock.storage.base.atomic import flush, keep_debris, register_debris, remove_debris, whole_file
from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.places import FilePlace, local
from penstock.storage.tables.arrow_files import Batches
from penstock.storage.tables.arrow_tables import ColumnBatches, system_memory
from penstock.storage.tables.columns import Columns, WriteOptions
from penstock.storage.tables.graphar_layout import INDEX, VertexType, described, vertex_type, yaml_of

CHUNK_ROWS = 1 << 17
"""Rows that are made at once."""
NAME = 200
"""Characters of the name of a folder, at most."""
_KINDS = dict.fromkeys(("int8", "uint8", "int16", "uint16"), pa.int32()) | dict.fromkeys(
    ("uint32", "uint64"), pa.int64()
)
"""Types of Arrow that GraphAr does not have, and those that hold their values."""


def check_vertices(place: FilePlace, vertices: int, *, plain: bool) -> VertexType:
    """What a `.vertex.yml` describes, whose vertices an answer is of. plain: whether ids are 0 to n-1.

    Raises
    ------
    InputError
        It has other vertices, or is not on this machine.
    """
    found = vertex_type(local(place))
    if found.count != vertices or not plain:
        raise InputError(
            f"{place} has the vertices 0 to {found.count - 1}, and the answer other ones; convert GraphAr's graph "
            "without --renumber, or write .parquet"
        )
    return found


def write_group(place: FilePlace, columns: Columns, *, force: bool, options: WriteOptions) -> None:
    """Write the fields of an answer as a group of properties. Raises as `check_vertices` and `whole_file`."""
    path, rows = local(place), columns["vertex"].rows
    last = columns["vertex"].opened()(rows - 1, rows)[0][0] if rows else -1
    found = check_vertices(path, rows, plain="side" not in columns and last == rows - 1)
    fields = {name: column for name, column in columns.items() if name != "vertex"}
    kind = found.groups[0].kind if found.groups else "parquet"
    old = [group for group in found.groups if set(group.types) == set(fields)]
    taken = {name for group in found.groups if group not in old for name in group.types} & set(fields)
    if taken:
        raise InputError(f"{path} has a property {brief(min(taken))} already, with others; --prefix names this one")
    folder = _free(local(found.folder) / "_".join(fields).replace("/", "_")[:NAME])
    with whole_file(path, force=force) as unfinished, system_memory():
        register_debris(folder)
        try:
            folder.mkdir()
            table = ColumnBatches(fields)
            schema = _schema(table)
            with closing(table.mapped(_same, threads=options.threads, rows=CHUNK_ROWS)) as batches:
                _write_chunks(folder, batches, schema, found.chunk_rows, kind)
            unfinished.write_text(_with_group(path, schema, f"{folder.name}/", kind), encoding="utf-8")
        except BaseException:
            remove_debris(folder)
            raise
        keep_debris(folder)
    for group in old:
        _remove(local(group.folder), found)


def _remove(folder: Path, found: VertexType) -> None:
    """Remove the folder of a group that was replaced: one below that of its type, in which nothing else is said to be.

    What a prefix leads to elsewhere ("../..", "./", an absolute path, a link) stays.
    """
    whole, base = folder.resolve(), local(found.folder).resolve()
    others = [local(group.folder).resolve() for group in found.groups]
    alone = sum(one == whole or whole in one.parents for one in others) == 1
    if alone and base in whole.parents and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)


def _with_group(path: Path, schema: Any, prefix: str, kind: str) -> str:
    """The YAML of a type with one more group, instead of one of the same properties."""
    facts, names = described(path), schema.names[1:]
    kept = [
        one for one in facts.get("property_groups") or () if {each["name"] for each in one["properties"]} != set(names)
    ]
    types = [str(schema.field(name).type) for name in names]
    properties = [
        {"name": name, "data_type": type, "is_primary": False} for name, type in zip(names, types, strict=True)
    ]
    group = {"properties": properties, "prefix": prefix, "file_type": kind}
    yaml = yaml_of(path)

    def indented(dumper: Any, flow: bool = False, indentless: bool = False) -> None:
        yaml.SafeDumper.increase_indent(dumper, flow, False)

    dumper = type("Indented", (yaml.SafeDumper,), {"increase_indent": indented})  # GraphAr reads no other lists
    text: str = yaml.dump(facts | {"property_groups": [*kept, group]}, Dumper=dumper, sort_keys=False)
    return text


def _write_chunks(folder: Path, batches: Iterator[Any], schema: Any, rows: int, kind: str) -> None:
    """Write batches to files of so many rows each, behind the number of each row."""
    made = pyarrow.csv.CSVWriter if kind == "csv" else pyarrow.parquet.ParquetWriter
    first = 0
    with ExitStack() as files:
        for batch in batches:
            while len(batch):
                if first % rows == 0:
                    files.close()
                    chunk = folder / f"chunk{first // rows}"
                    files.callback(flush, chunk)
                    writer = files.enter_context(made(chunk, schema))
                part = batch.slice(0, rows - first % rows)
                numbers = pa.array(np.arange(first, first + len(part), dtype=np.int64))
                writer.write_batch(pa.record_batch([numbers, *part.columns], names=schema.names).cast(schema))
                first, batch = first + len(part), batch.slice(len(part))
    flush(folder)


def _schema(table: Batches) -> Any:
    """The number of a row, and a table's columns in types that GraphAr has."""
    fields = [(field.name, _KINDS.get(str(field.type), field.type)) for field in table.schema]
    return pa.schema([(INDEX, pa.int64()), *fields])


def _free(folder: Path) -> Path:
    """The folder, or one of that name with a number, which is not there yet."""
    return next(one for n in count() if not (one := Path(f"{folder}-{n}" if n else folder)).exists())


def _same(batch: Any) -> Any:
    return batch
