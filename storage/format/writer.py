"""Writes a graph: GraphWriter takes rows in order and leaves a whole file or none. The story of writing one.

Chunks are encoded in worker threads (frame_writer.py) and put in order by the caller's (adjacency_writer.py); files
appear together (file_set.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.encoding.string_array import StringArray, string_array
from penstock.storage.format import schema
from penstock.storage.format.adjacency_writer import AdjacencyWriter, StripedArrays, vertex_array
from penstock.storage.format.edge_properties import NUMBERS, EdgeProperty
from penstock.storage.format.file_set import FileSet
from penstock.storage.format.frames import OpenedGraph
from penstock.storage.format.index import Index
from penstock.storage.format.schema import CHUNK_VERTICES, STRIPE_RUN

WINDOW_AHEAD = 1
"""Chunks of each array of a window that wait for a thread."""


class GraphWriter:
    """A graph file being written; a context manager.

    Leaving the block normally finishes the files, reads them back and gives them their names, the manifest last;
    leaving it with any exception before that removes everything, and a graph that was there stays.

    Parameters
    ----------
    path : Path or str
        The graph file; of a striped graph the manifest.
    vertices : int
        Number of vertices.
    directed : bool
        Whether edges have a direction.
    vertex_dtype : dtype
        Of the neighbors: uint32 or uint64.
    weight_dtype : dtype or None
        One of `schema.WEIGHT_DTYPES`; None without weights.
    stripes : sequence of Path or str
        Folders of the shards, one each.
    force : bool
        Whether a graph of that name may be replaced.
    provenance : mapping, optional
        Where the graph comes from, for the header.
    encoding : {"packed", "delta", "plain"}
        Of the neighbors.
    threads : int
        How many encode.
    window_vertices : int
        Vertices of a window, for each of which edges are written once more (`window`); 0: there are no windows.
    columns : sequence of EdgeProperty and dtype
        What is kept beside the edges of adjacencies; windows have nothing of it.

    Attributes
    ----------
    input_edges : int or None
        How many edges the input had; None: as many as are stored.
    left : int or None
        How many vertices, from 0 on, are sources of a bipartite graph; None: it is none.
    without_edges : int or None
        How many vertices have no edge; None: unknown.

    Raises
    ------
    InputError
        The file may not be written.
    RunError
        The disk failed or is full; a graph of that name is as it was.
    UnsyncedError
        The disk failed once the graph was in its place.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        vertices: int,
        directed: bool,
        vertex_dtype: DTypeLike,
        weight_dtype: DTypeLike | None,
        stripes: Sequence[Path | str] = (),
        force: bool = False,
        provenance: Mapping[str, Any] | None = None,
        encoding: str = "packed",
        threads: int = 2,
        window_vertices: int = 0,
        columns: Sequence[tuple[EdgeProperty, np.dtype[Any]]] = (),
    ) -> None:
        if encoding not in schema.ENCODINGS:
            known = ", ".join(schema.ENCODINGS)
            raise InputError(f"unknown encoding {encoding!r}; the encodings are {known}")
        self._kinds = {schema.NEIGHBORS: (np.dtype(vertex_dtype), encoding)}
        if weight_dtype is not None:
            kind = np.dtype(weight_dtype)
            if kind not in schema.WEIGHT_DTYPES:
                allowed = ", ".join(allowed.name for allowed in schema.WEIGHT_DTYPES)
                raise InputError(f"weights of {kind} cannot be stored; use {allowed}")
            values = "plain" if encoding == "plain" else schema.values_encoding(kind)
            self._kinds[schema.WEIGHTS] = (kind, values)
        self._properties = [column for column, _ in columns]
        self._columns = [
            (kind, "plain" if encoding == "plain" else schema.values_encoding(kind), bool(one.nulls))
            for one, kind in columns
        ]
        self.input_edges: int | None = None
        self._vertices, self._directed, self._force = vertices, directed, force
        self._provenance = dict(provenance or {})
        folders = [Path(folder).absolute() for folder in stripes]
        version = schema.WINDOWS_VERSION if window_vertices else schema.ROWS_VERSION
        version = schema.COLUMNS_VERSION if columns else version
        self._files = FileSet(Path(path), folders, max(1, threads), version=version)
        self._window_vertices = window_vertices
        self._adjacencies: dict[str, AdjacencyWriter] = {}
        self.left: int | None = None
        self.without_edges: int | None = None
        self._ids = IdWriter(self._files)

    @property
    def file_bytes(self) -> int:
        """Bytes of all the files, when the block has ended."""
        return self._files.file_bytes

    def __enter__(self) -> "GraphWriter":
        try:
            self._files.open(force=self._force)
        except BaseException as error:
            self._files.abandon(error)
            raise
        return self

    def adjacency(self, direction: str) -> AdjacencyWriter:
        """Begin the adjacency of one direction, "out" or "in", when the other is finished."""
        if direction not in schema.DIRECTIONS or direction in self._adjacencies:
            raise ValueError(f"the {direction}-adjacency is unknown or begun twice")
        ahead, columns = self._files.threads + 1, self._columns
        rows = AdjacencyWriter(self._files, direction, self._vertices, self._kinds, ahead, columns=columns)
        self._adjacencies[direction] = rows
        return rows

    def written(self) -> OpenedGraph:
        """Open the adjacencies, all of which are finished. Raises RunError."""
        return self._files.written(self._header(window_vertices=0))

    def window(self, direction: str, number: int, degree_kind: np.dtype[Any]) -> AdjacencyWriter:
        """Begin the edges of one direction that lead to a window; several may be under way. degree_kind: holds all."""
        name = schema.window_name(direction, number)
        return AdjacencyWriter(self._files, name, self._vertices, self._kinds, WINDOW_AHEAD, degree_kind)

    def original_ids(self, ids: NDArray[Any] | StringArray) -> None:
        """Append the input's ids of the next vertices, in internal order: uint32, uint64 or strings."""
        self._ids.append(ids)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._files.abandon(error)
            return
        try:
            self._files.commit(self._finished())
        except BaseException as failure:
            self._files.abandon(failure)
            raise

    def _finished(self) -> schema.Header:
        """Check that the parts make a graph, and return the header."""
        edges = {name: rows.edges for name, rows in self._adjacencies.items()}
        if "out" not in edges or len(set(edges.values())) != 1 or edges["out"] < 0:
            raise ValueError(f"adjacencies are missing, unfinished or unequal: {edges}")
        self._ids.finish(self._vertices)
        return self._header(self._window_vertices)

    def _header(self, window_vertices: int) -> schema.Header:
        """Return the header of what is written. Raises HeaderError where parts are missing."""
        total = self._adjacencies["out"].edges
        counted = {} if self.without_edges is None else {schema.WITHOUT_EDGES: self.without_edges}
        ranges = self._adjacencies["out"].column_ranges
        known = [
            replace(one, range=found) if one.type in NUMBERS and not one.nulls and not one.base else one
            for one, found in zip(self._properties, ranges, strict=True)
        ]
        header = schema.Header(
            graph_id=self._files.graph_id,
            vertices=self._vertices,
            edges=total,
            input_edges=total if self.input_edges is None else self.input_edges,
            directed=self._directed,
            stripe_run=STRIPE_RUN,
            shards=self._files.shard_entries,
            arrays=tuple(self._files.specs),
            provenance=self._provenance | counted,
            weight_range=self._adjacencies["out"].weight_range,
            left=self.left,
            window_vertices=window_vertices,
            edge_properties=tuple(known),
        )
        header.check()
        return header


class IdWriter:
    """Original ids being written, of vertices in internal order: numbers or strings; strings: even if there are none.

    Without any id the file says that vertices have the ids 0 to n-1.
    """

    def __init__(self, files: FileSet, *, strings: bool = False) -> None:
        self._files = files
        self._numbers: StripedArrays | None = None
        self._names = self._name_arrays() if strings else None
        self._name_bytes = 0

    def _name_arrays(self) -> tuple[StripedArrays, StripedArrays]:
        ends = vertex_array(self._files, schema.NAME_ENDS, np.dtype(np.uint64), "delta")
        return ends, vertex_array(self._files, schema.NAME_TEXT, np.dtype(np.uint8), "plain")

    def append(self, ids: NDArray[Any] | StringArray) -> None:
        """Append the ids of the next vertices: uint32, uint64 or strings."""
        if isinstance(ids, StringArray) or ids.dtype.kind == "T":
            names = ids if isinstance(ids, StringArray) else string_array(ids)
            self._names = self._names or self._name_arrays()
            self._names[0].append(names.ends.astype(np.uint64) + np.uint64(self._name_bytes))
            self._names[1].append(names.text)
            self._name_bytes += len(names.text)
            return
        if self._numbers is None:
            kind = ids.dtype if ids.dtype in schema.VERTEX_DTYPES else np.dtype(np.uint64)
            self._numbers = vertex_array(self._files, schema.ORIGINAL_ID, kind, "delta")
        self._numbers.append(ids)

    def finish(self, vertices: int) -> None:
        """Write what is left. Raises ValueError unless there were the ids of so many vertices."""
        for array in (self._numbers, *(self._names or ())):
            if array is not None:
                array.finish()
        for ids in (self._numbers, self._names and self._names[0]):
            if ids is not None and ids.lengths != {vertices}:
                raise ValueError(f"there are original ids of {ids.lengths} vertices, not of {vertices}")


def write_rows(rows: AdjacencyWriter, index: Index, neighbors: NDArray[Any], weights: NDArray[Any] | None) -> None:
    """Write an adjacency that is in memory."""
    rows.append(neighbors, weights)
    for first in range(0, index.vertices, CHUNK_VERTICES):
        rows.degrees(index.degrees(first, min(first + CHUNK_VERTICES, index.vertices)))
    rows.finish()


def write_ids(writer: GraphWriter, ids: NDArray[Any]) -> None:
    """Write original ids that are in memory, numbers or NumPy's strings."""
    for first in range(0, len(ids), CHUNK_VERTICES):
        writer.original_ids(ids[first : first + CHUNK_VERTICES])


def count_edgeless(vertices: int, adjacencies: Sequence[Index]) -> int:
    """How many vertices have no edge in any of these adjacencies."""
    count = 0
    for first in range(0, vertices, CHUNK_VERTICES):
        degrees = sum(index.degrees(first, min(first + CHUNK_VERTICES, vertices)) for index in adjacencies)
        count += int(np.count_nonzero(degrees == 0))
    return count
