"""A table of vertices (`--vertices nodes.csv`) becomes a Parquet file beside the graph, in the order of the ids.

It is sorted before edges are read, gives the ids that exist, and gets its name once the graph has its own. Both have an
identity, so that a graph is never read with the properties of another.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.storage.base.atomic import check_target, flush, give_name, sync_folder, writing
from penstock.storage.base.errors import UnsyncedError
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.hdf5 import FileError, read_manifest
from penstock.storage.ingest.core.edges import EdgeBatch, local_names
from penstock.storage.ingest.formats.graph_file import GraphFileSource
from penstock.storage.ingest.formats.parquet import string_fields
from penstock.storage.ingest.tables.vertex_table import SortedTable, VertexTable, open_vertex_table
from penstock.storage.tables.properties import IDENTITY, PROPERTIES, hidden_path, property_path

if TYPE_CHECKING:
    from penstock.storage.tables.property_file import PropertyFile


@contextmanager
def sorted_vertices(space: Workspace, target: Path) -> Iterator[None]:
    """Sort the table of vertices, if one is given, for a graph that is written in the block.

    Raises:
        InputError: the table cannot be read, lists a vertex twice, or its file exists already (without ``force``).
        RunError: the disk is full or failed; nothing is left of it.
    """
    place, force = property_path(target), space.options.force
    table, known = _given(space), _known(space)
    if table is None and known is None:
        with forgetting(target, force=force):
            yield
        return
    identity = os.urandom(16).hex() if known is None else known.identity
    with beside(target, identity, force=force) as hidden:
        if table is not None:
            space.stage("vertices")
            with writing(place):
                space.table = table.sort_into(hidden, identity, space.room.open, named=space.named)
        elif known is not None:
            with writing(place):
                shutil.copyfile(known.path, hidden)
            space.table = SortedTable(hidden, known.identity, known.rows, known.types)
        with writing(place):
            flush(hidden)
        yield


@contextmanager
def beside(target: Path, identity: str, *, force: bool) -> Iterator[Path]:
    """Yield where to write the table of a graph file that is written in the block; it gets its name after the graph.

    Between the two the graph finds it under the hidden name: a kill leaves the old graph and table, or the new ones.

    Raises:
        InputError: as `check_target`.
        RunError: the disk failed; the graph is in its place.
    """
    place, hidden = check_target(property_path(target), force=force, follow=False), hidden_path(target, identity)
    before = _inode(target)
    with forgetting(target, force=force):  # after the new table has the name of the old one
        try:
            yield hidden
            give_name(hidden, place, force=force)
        except BaseException:
            if hidden.exists():
                if _inode(target) != before and _named_by(target) == identity:  # the graph is in its place
                    give_name(hidden, place, force=force)
                else:
                    hidden.unlink()
            raise
    sync_folder(place)


def _inode(path: Path) -> int:
    """The number of the file of this name; 0 where there is none."""
    with suppress(FileNotFoundError):
        return path.stat().st_ino
    return 0


def _given(space: Workspace) -> VertexTable | None:
    """The table of vertices that the options name; None where there is none, or it is a list of ids."""
    path = space.options.vertices_file
    if path is None or space.options.vertex_count is not None:
        return None
    return open_vertex_table(path, space.options.host_memory)


def _known(space: Workspace) -> PropertyFile | None:
    """The properties that the vertices of a graph file have, which is converted; None for other inputs."""
    return space.source.properties() if isinstance(space.source, GraphFileSource) else None


@contextmanager
def forgetting(target: Path, *, force: bool) -> Iterator[None]:
    """Remove the properties of the graph file that is replaced in the block; a table that it does not name stays."""
    table, before = _named_by(target) if force else None, _inode(target)
    try:
        yield
    except UnsyncedError:  # after a power failure the old graph may be there
        raise
    except BaseException:  # a signal
        if _inode(target) != before:
            _forget(target, table)
        raise
    _forget(target, table)


def _forget(target: Path, table: str | None) -> None:
    if table is None:
        return
    from penstock.storage.tables.property_file import identity_of

    for path in (property_path(target), hidden_path(target, table)):
        if identity_of(path) == table:
            path.unlink()


def _named_by(graph: Path) -> str | None:
    """The identity of the table that a graph file names; None where it names none, or is no graph file."""
    try:
        facts = read_manifest(OpenFile(graph)).header.provenance.get(PROPERTIES)
    except (FileError, OSError):
        return None
    return str(facts.get(IDENTITY)) if isinstance(facts, dict) else None


def name_batches(table: SortedTable, path: Path) -> Generator[EdgeBatch]:
    """Yield the ids of a sorted table that are text, as edges from each to itself."""
    row = 0
    for ids in table.ids():
        text, places = string_fields([ids, ids], ["id", "id"], path, row)
        names, numbers = local_names(text, places, False)
        yield EdgeBatch(numbers[:, 0].copy(), numbers[:, 1].copy(), None, names=names)
        row += len(ids)
