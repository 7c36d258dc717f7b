"""A graph and its adjacencies, of a file (``open``) or of arrays in memory (``from_arrays``).

Both have the same interface: an adjacency has chunks, an index, and either frames (compressed chunks on disk) or
arrays. reader.py fetches the chunks into the caller's slabs. The in-edges' field is ``into``: ``in`` is a keyword.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from penstock.storage.access.graph_queries import GraphQueries
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.base.stage_clock import stage
from penstock.storage.companion.process import install
from penstock.storage.encoding.codec import checksum, payload_bytes
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.format import csr_input
from penstock.storage.format.degrees import ListFacts, read_index
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.edge_properties import NUMBERS, property_path
from penstock.storage.format.frames import EdgeColumn, Frames, OpenedGraph, StoredIds, StringIdFrames, open_frames
from penstock.storage.format.index import WIDEST_SHIFT, Index, from_offsets, of_equal_rows
from penstock.storage.format.schema import (
    CHUNK_EDGES,
    DEGREES,
    DIRECTIONS,
    EXACT,
    LIST_BLOCK,
    NAME_ENDS,
    NAME_TEXT,
    NEIGHBORS,
    ORIGINAL_ID,
    RISING,
    SPANS,
    WEIGHTS,
    WITHOUT_EDGES,
    vertex_dtype,
)
from penstock.storage.format.splice import Splice, splice_of
from penstock.storage.tables.properties import property_types

ZSTD_BYTES = 512 << 10
"""What zstd's tables and its input take in one decoder."""


@dataclass(slots=True)
class Adjacency:
    """The edges of one direction, row by row: the targets of every source (out), or the reverse (in).

    The one adjacency of a graph in the order of its input (`Graph.layout` "list") holds keys of edges, source << 32 |
    target, where others hold neighbors, and its rows are blocks of `schema.LIST_BLOCK` edges.

    Attributes
    ----------
    direction : str
        Whether row v holds the targets ("out") or the sources ("in") of vertex v; of a window, its name.
    edges, vertices : int
        Number of neighbors stored, and of rows.
    neighbor_dtype : dtype
        uint32, or uint64 beyond 2^32 vertices and for keys.
    weight_dtype : dtype or None
        uint8, uint16, uint32, float32 or float64; None without weights.
    encoding : {"packed", "delta", "plain"}
        Of the neighbors on disk.
    chunk_edges : int
        Edges of every chunk but the last.
    arrays : tuple of ndarray or None
        Neighbors (edges,) and weights (edges,) or None of a graph in memory; None for a graph on disk.
    neighbors, weights, degrees : Frames or None
        Where the chunks of a graph on disk are; None for a graph in memory.
    blocks : bool
        Whether rows are blocks of edges and items their keys.
    window_vertices : int
        Vertices of a window; 0 where there are none.
    windows : tuple of Adjacency
        For each window of vertices, those from ``number * window_vertices`` on, the same rows with only the edges that
        lead to it, if the file has these.
    columns : tuple of EdgeColumn
        What is kept beside the edges of a graph on disk.
    splice : Splice or None
        What was added to the edges in the chunks on disk, and removed from them; None where they are all edges.
    """

    direction: str
    edges: int
    vertices: int
    neighbor_dtype: np.dtype[Any]
    weight_dtype: np.dtype[Any] | None
    encoding: str
    chunk_edges: int = CHUNK_EDGES
    arrays: tuple[NDArray[Any], NDArray[Any] | None] | None = None
    neighbors: Frames | None = None
    weights: Frames | None = None
    degrees: Frames | None = None
    blocks: bool = False
    window_vertices: int = 0
    windows: tuple["Adjacency", ...] = ()
    columns: tuple[EdgeColumn, ...] = ()
    splice: Splice | None = None
    _index: Index | None = None
    _packed: dict[bool, tuple[NDArray[np.uint32], NDArray[np.int64]]] = field(default_factory=dict)
    _frame_bytes: tuple[int, int] | None = field(default=None, init=False)

    @property
    def frame_bytes(self) -> tuple[int, int]:
        """Bytes of the longest frame of its edges, and what a decoder of any takes.

        It has room for the longest that a frame decompresses to, and so has zstd where it stops before that.
        """
        if self._frame_bytes is None:
            stored = [frames for frames in (self.neighbors, self.weights) if frames is not None]
            lengths = (int(one.lengths.max()) for one in stored if len(one.lengths))
            decoded = (payload_bytes(one.spec.encoding, one.kind, one.spec.chunk_items) for one in stored)
            arrays = 2 if self.splice is None else 3  # decoded edges are put to their places
            self._frame_bytes = max(lengths, default=0), arrays * max(decoded, default=0) + ZSTD_BYTES
        return self._frame_bytes

    @property
    def chunks(self) -> int:
        """How many chunks hold the edges."""
        return -(-self.edges // self.chunk_edges)

    def edge_bytes(self, with_weights: bool) -> int:
        """Return the bytes of an edge in memory: its neighbor, and its weight where that is wanted and there is one."""
        weight = self.weight_dtype if with_weights else None
        return self.neighbor_dtype.itemsize + (weight.itemsize if weight else 0)

    @property
    def stored_edge_bytes(self) -> int:
        """The bytes of an edge in memory with its weight and everything that is kept beside it."""
        return self.edge_bytes(with_weights=True) + sum(column.frames.kind.itemsize for column in self.columns)

    def chunk_bytes(self, with_weights: bool) -> NDArray[np.int64]:
        """Return the compressed bytes of each chunk, for a graph in memory those of its arrays, int64 (chunks,).

        With a splice a chunk is parts of several on disk, and this is about their share.
        """
        if self.neighbors is None:
            firsts = np.arange(self.chunks, dtype=np.int64) * self.chunk_edges
            return np.minimum(self.edges - firsts, self.chunk_edges) * self.edge_bytes(with_weights)
        total = self.neighbors.lengths.copy()
        if with_weights and self.weights is not None:
            total += self.weights.lengths
        return total if self.splice is None else self.splice.stored_bytes(total, self.chunk_edges, self.edges)

    def payload_words(self, weights: bool) -> NDArray[np.int64] | None:
        """Return the 32-bit words of every chunk's payload of neighbors, or of weights, int64 (chunks,).

        None where there is no payload (other encodings, floating-point weights, no weights, a graph in memory that was
        not given to `pack`, edges that are put together by a splice) or where the file does not say (format version 1).
        """
        if weights in self._packed:
            return np.diff(self._packed[weights][1])
        frames = self.weights if weights else self.neighbors
        return None if frames is None or self.splice is not None else frames.payload_words

    def pack(self, weights: bool, threads: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]] | None:
        """Return the payloads of neighbors, or of weights, of a graph in memory: words, and where each begins.

        They are made when they are first asked for, and kept. None where there are none: floating-point weights.
        """
        assert self.arrays is not None, "a graph on disk has its payloads there"
        items = self.arrays[1] if weights else self.arrays[0]
        if items is None or items.dtype.kind != "u":
            return None
        if weights not in self._packed:
            from penstock.storage.encoding.packed_store import pack_arrays  # the compiler

            with stage("packing"):
                self._packed[weights] = pack_arrays(items, self.chunk_edges, not weights, threads)
        return self._packed[weights]

    def index(self, threads: int | None = None, *, page_threads: int | None = None) -> Index:
        """Return the row index; the first call reads the degrees. Raises RunError if damaged.

        threads: how many decode at once, by default one per core. page_threads: how many read the pages of rows that
        are wanted from now on (`row_pages.py`); 0: the index is whole; None: it is as it was, and whole at first.
        """
        if page_threads is not None and self._index is not None and bool(page_threads) != (not self._index.whole):
            self.drop_index()
        if self._index is None and self.blocks:
            self._index = of_equal_rows(LIST_BLOCK, self.edges)
        if self._index is None:
            assert self.degrees is not None, "a graph in memory is made with its index"
            self._index = read_index(self.degrees, self.direction, self.edges, threads or cores(), page_threads or 0)
        return self._index

    def of_rows(self, v0: int, v1: int) -> "Adjacency":
        """Return the chunks that hold the edges of rows v0..v1-1, as an adjacency in which other rows are empty.

        At both ends its chunks may hold edges that are in no row of it; it has one chunk at least, if there is any.
        """
        index, step = self.index(), self.chunk_edges
        e0, e1 = (int(index.starts(row, row + 1)[0]) for row in (v0, v1))
        first = min(e0 // step, max(0, self.chunks - 1))
        last = min(max(-(-e1 // step), first + 1), self.chunks)
        edges = slice(first * step, min(last * step, self.edges))
        arrays = None
        if self.arrays is not None:
            neighbors, weights = self.arrays
            arrays = neighbors[edges], None if weights is None else weights[edges]
        cut = self.splice is None
        return replace(
            self,
            edges=edges.stop - edges.start,
            arrays=arrays,
            neighbors=self.neighbors.of_chunks(first, last) if cut and self.neighbors else self.neighbors,
            weights=self.weights.of_chunks(first, last) if cut and self.weights else self.weights,
            splice=None if self.splice is None else self.splice.of_edges(edges.start),
            degrees=None,
            window_vertices=0,
            windows=(),
            columns=(),
            _index=index.of_rows(v0, v1, edges.start),
            _packed={},
        )

    def edges_in(self, first: int, last: int, *, weights: bool = True) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the neighbors and, if asked for, weights of edges first..last-1; of a file only their chunks are read.

        Raises RunError where these cannot be read, or are damaged.
        """
        if self.arrays is not None:
            neighbors, values = self.arrays
            return neighbors[first:last], values[first:last] if weights and values is not None else None
        assert self.neighbors is not None, "a graph is in memory or in a file"
        stored = self.weights if weights else None
        if (splice := self.splice) is not None:
            found = None if stored is None else splice.part(stored, first, last, weights=True)
            return splice.part(self.neighbors, first, last, weights=False), found
        return self.neighbors.part(first, last), None if stored is None else stored.part(first, last)

    @property
    def stored(self) -> "Adjacency":
        """The edges that its chunks on disk hold, whatever was added and removed; rows do not tell them apart."""
        return replace(self, splice=None, edges=self.splice.stored) if self.splice is not None else self

    @property
    def index_bytes_read(self) -> int:
        """Bytes read for rows of the index that were wanted, of windows too; 0 where indexes are whole."""
        pages = None if self._index is None else self._index.pages
        return (0 if pages is None else pages.bytes_read) + sum(one.index_bytes_read for one in self.windows)

    @property
    def has_row_pages(self) -> bool:
        """Whether its row index may be read by pages: one of a graph file whose chunks are whole blocks of it."""
        return self.degrees is not None and self.degrees.spec.chunk_items % (1 << WIDEST_SHIFT) == 0

    def drop_index(self) -> None:
        """Free the row index of a graph on disk, and of windows; the next ``index()`` reads it again."""
        if self.degrees is not None or self.blocks:
            self._index = None
        for window in self.windows:
            window.drop_index()


@dataclass(frozen=True, slots=True)
class Graph(GraphQueries):
    """A graph on disk or in memory; immutable.

    `Graph.open` reads a graph file and `Graph.from_arrays` takes CSR arrays; `from_edges`, `from_table` and
    `from_scipy` convert what other libraries hold. `save` writes a graph file. What reads Arrow streams reads the
    edges: `polars.DataFrame(graph)`, SQL of duckdb.

    Attributes
    ----------
    path : Path or None
        The graph file (of a striped graph the manifest); None in memory.
    vertices : int
        Number of vertices; internal ids are 0 to vertices - 1.
    edges : int
        Entries of the out-adjacency: an undirected edge is stored in the rows of both its ends, a self-loop once.
    input_edges : int
        Edges as they were given.
    directed : bool
        Whether edges have a direction.
    out, into : Adjacency
        Out-edges and in-edges by row. ``into`` is ``out`` for an undirected graph, and None where it is not stored.
    provenance : dict
        Where the graph comes from: source, size, options, software version.
    graph_id : str
        32 hexadecimal digits, the same in all files of the graph.
    open_files : tuple of OpenFile
        The files, the manifest first, open as long as this object: a run keeps them when they are replaced.
    original : StoredIds or ndarray or None
        The ids of the input, read by `original_ids`; None where they are the internal ids.
    weight_range : tuple of float or None
        Smallest, mean and largest weight; None without weights.
    left : int or None
        Of a bipartite graph the number of sources, which are vertices 0 to left - 1; the others are targets. Else None.
    listed : ListFacts or None
        Of a graph in the order of its input, what it has beside its edges; see `layout`.
    looked_up : dict
        Which vertices some ids of the input are that were looked up (`vertex_lookup.py`).
    """

    path: Path | None
    vertices: int
    edges: int
    input_edges: int
    directed: bool
    out: Adjacency
    into: Adjacency | None
    provenance: dict[str, Any]
    graph_id: str
    open_files: tuple[OpenFile, ...] = ()
    original: StoredIds | NDArray[Any] | None = None
    weight_range: tuple[float, float, float] | None = None
    left: int | None = None
    listed: ListFacts | None = None
    looked_up: dict[str, list[int]] = field(default_factory=dict, init=False, compare=False)

    @property
    def layout(self) -> str:
        """How edges are stored: as sorted "rows", or as a "list" in the order of the input (``--layout list``).

        A list has one adjacency, ``out``, whose items are keys, source << 32 | target, and whose rows are blocks of
        `schema.LIST_BLOCK` edges. It holds every edge once as it was given, also where the graph is undirected: such an
        edge goes both ways, one from a vertex to itself once; parallel edges all count. ``into`` is ``out`` where the
        graph is undirected, and None else: blocks can be walked from either end.
        """
        return "rows" if self.listed is None else "list"

    def spans(self) -> NDArray[np.uint32]:
        """Return which vertices the blocks of a list can have, read anew at each call.

        Returns
        -------
        ndarray of uint32, (blocks, 4)
            Least and greatest source, least and greatest target of every block of `schema.LIST_BLOCK` edges.

        Raises
        ------
        RunError
            They cannot be read, or are damaged.
        """
        assert self.listed is not None, "rows have no spans"
        return self.listed.read_spans()

    def degree_index(self, direction: str = "out", threads: int | None = None) -> Index | None:
        """Return an index of which row v is as long as the degree of vertex v.

        Of rows it is that of the adjacency, and None where it has no such adjacency. Of a list the degrees are those
        that the conversion counted while it read; None where it had no memory for them. Those of an undirected graph
        count both ends of an edge, a self-loop once, in either direction.

        Parameters
        ----------
        direction : {"out", "in"}
            Whose degrees.
        threads : int, optional
            How many decode at once, by default one per core.

        Raises
        ------
        RunError
            They cannot be read, or are damaged.
        """
        if self.listed is None:
            adjacency = self.out if direction == "out" else self.into
            return None if adjacency is None else adjacency.index(threads)
        if self.directed:
            return self.listed.index(direction, self.edges, threads or cores())
        return self.listed.index("out", 2 * self.edges - self.listed.self_loops, threads or cores())

    def degree_frames(self, direction: str) -> Frames | None:
        """Where the degrees of `degree_index` are on disk; None where they are not, or have been read."""
        if self.listed is not None:
            found = self.listed.degrees.get(direction if self.directed else "out")
            return found if isinstance(found, Frames) else None
        adjacency = self.out if direction == "out" else self.into
        return None if adjacency is None or adjacency._index is not None else adjacency.degrees

    @property
    def without_edges(self) -> int | None:
        """How many vertices have no edge, as the conversion counted them; None where it did not."""
        count = self.provenance.get(WITHOUT_EDGES)
        return count if isinstance(count, int) else None

    def __repr__(self) -> str:
        """One line: where it is, its size, which adjacencies it stores, its weights."""
        kind = "bipartite, " * (self.left is not None) + ("directed" if self.directed else "undirected")
        stored = " and ".join(adjacency.direction for adjacency in self.adjacencies)
        weights = "no weights" if self.weight_dtype is None else f"weights {self.weight_dtype}"
        edges = f"{stored}-adjacency" if self.listed is None else "list"
        return (
            f"<Graph {self.path or 'in memory'}: {self.vertices:,} vertices, {self.input_edges:,} edges ({kind}), "
            f"{edges}, {weights}>"
        )

    @staticmethod
    def open(path: Path | str, *, stripes: Sequence[Path | str] = ()) -> "Graph":
        """Open a graph file.

        Parameters
        ----------
        path : Path or str
            The graph file; of a striped graph the manifest.
        stripes : sequence of Path or str
            Folders in which to look for shards first.

        Returns
        -------
        Graph
            With its header and chunk tables read and checked, and no edge read.

        Raises
        ------
        InputError
            The file is missing, is no graph file, or has a newer format version.
        DamagedError
            The file is half-written, truncated or damaged, or a shard is missing.
        RunError
            The disk failed.
        """
        install()
        return Graph.of_opened(open_frames(Path(path), [Path(folder) for folder in stripes]))

    @staticmethod
    def of_opened(opened: OpenedGraph) -> "Graph":
        """Return the graph of an opened file. Raises DamagedError."""
        header, out = opened.header, adjacency_of(opened, "out")
        stored = header.array(f"in/{NEIGHBORS}") is not None
        into = out if not header.directed else adjacency_of(opened, "in") if stored else None
        names = opened.frames.get(NAME_ENDS)
        return Graph(
            path=opened.open_files[0].path,
            vertices=header.vertices,
            edges=header.edges,
            input_edges=header.input_edges,
            directed=header.directed,
            out=out,
            into=into,
            provenance=header.provenance,
            graph_id=header.graph_id,
            open_files=opened.open_files,
            original=StringIdFrames(names, opened.frames[NAME_TEXT]) if names else opened.frames.get(ORIGINAL_ID),
            weight_range=header.weight_range,
            left=header.left,
            listed=_list_facts(opened),
        )

    @staticmethod
    def from_arrays(
        offsets: ArrayLike,
        neighbors: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        into: tuple[ArrayLike, ArrayLike, ArrayLike | None] | None = None,
        directed: bool = True,
        original_id: ArrayLike | None = None,
    ) -> "Graph":
        """Make a graph in memory from CSR arrays: row v is ``neighbors[offsets[v]:offsets[v + 1]]``.

        Arrays are copied only where they have another dtype than the graph.

        Parameters
        ----------
        offsets : array_like of int, (vertices + 1,)
            Where each row begins, ascending from 0 to the number of edges.
        neighbors : array_like of int, (edges,)
            Ids below the number of vertices, ascending in every row.
        weights : array_like of numbers, (edges,), optional
            One weight per edge.
        into : tuple of offsets, neighbors and weights, optional
            The same arrays of the in-edges, which programs that pull need.
        directed : bool
            False: the arrays hold every edge in the rows of both its ends, and ``into`` is not needed.
        original_id : array_like of numbers or strings, (vertices,), optional
            What results call the vertices.

        Returns
        -------
        Graph
            In memory.

        Raises
        ------
        InputError
            The arrays are not such a graph.
        """
        install()
        rows = starts, ids, values = csr_input.checked_rows(offsets, neighbors, weights, "out")
        out = _in_memory(rows, "out")
        other: Adjacency | None = None if directed else out
        if directed and into is not None:
            other = _in_memory(csr_input.checked_rows(*into, "in"), "in")
            if (other.vertices, other.edges) != (out.vertices, out.edges):
                raise InputError(
                    f"the in-adjacency has {other.vertices} vertices and {other.edges} edges, "
                    f"the out-adjacency {out.vertices} and {out.edges}; they must be the same"
                )
        original = _checked_ids(original_id, out.vertices)
        return Graph(
            path=None,
            vertices=out.vertices,
            edges=out.edges,
            input_edges=out.edges if directed else (out.edges + int(csr_input.self_loops(starts, ids))) // 2,
            directed=directed,
            out=out,
            into=other,
            provenance={"source": "arrays in memory"},
            graph_id=csr_input.array_identity(starts, checksum(ids), values),
            original=original,
            weight_range=csr_input.range_of(values),
        )

    @staticmethod
    def from_list(
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        vertices: int | None = None,
        directed: bool = True,
        original_id: ArrayLike | None = None,
    ) -> "Graph":
        """Make a graph in memory that keeps its edges in the order given (`layout` "list").

        Parameters
        ----------
        sources, targets : array_like of int, (edges,)
            Vertices, below 2^32.
        weights : array_like of numbers, (edges,), optional
            One weight per edge.
        vertices : int, optional
            How many there are; by default as far as edges name them.
        directed : bool
            False: every edge goes both ways, and is given once.
        original_id : array_like of numbers or strings, (vertices,), optional
            What results call the vertices.

        Returns
        -------
        Graph
            In memory.

        Raises
        ------
        InputError
            The arrays are not such a graph.
        """
        install()
        keys, values, count = csr_input.checked_list(sources, targets, weights, vertices)
        out = Adjacency(
            direction="out",
            edges=len(keys),
            vertices=-(-len(keys) // LIST_BLOCK),
            neighbor_dtype=keys.dtype,
            weight_dtype=None if values is None else values.dtype,
            encoding="plain",
            arrays=(keys, values),
            blocks=True,
        )
        return Graph(
            path=None,
            vertices=count,
            edges=out.edges,
            input_edges=out.edges,
            directed=directed,
            out=out,
            into=None if directed else out,
            provenance={"source": "arrays in memory"},
            graph_id=csr_input.array_identity(keys, count, values),
            original=_checked_ids(original_id, count),
            weight_range=csr_input.range_of(values),
            listed=csr_input.facts_of(keys, count, directed=directed),
        )

    @for_python
    def save(self, path: Path | str, *, force: bool = False, threads: int | None = None) -> "Graph":
        """Write a graph in memory as a graph file, whole or not at all. Parallel edges are sorted by weight there.

        Parameters
        ----------
        path : Path or str
            The file.
        force : bool
            Replace an existing file.
        threads : int, optional
            Most threads that encode; default: every core.

        Returns
        -------
        Graph
            The graph file, opened.

        Raises
        ------
        InputError
            The graph is in a file already, or the file exists or may not be written.
        RunError
            The disk is full or failed.
        """
        if self.out.arrays is None:
            raise InputError(f"the graph is in a file already, {self.path}: copy it")
        if self.layout == "list":
            raise InputError("only a graph with sorted rows can be saved; from_edges makes one of the same edges")
        from penstock.storage.format.writer import GraphWriter, count_edgeless, write_ids, write_rows

        with GraphWriter(
            path,
            vertices=self.vertices,
            directed=self.directed,
            vertex_dtype=self.vertex_dtype,
            weight_dtype=self.weight_dtype,
            force=force,
            provenance=self.provenance,
            threads=threads or cores(),
        ) as writer:
            for adjacency in self.adjacencies:
                assert adjacency.arrays is not None, "both adjacencies are in memory or in a file"
                (neighbors, weights), index = adjacency.arrays, adjacency.index()
                if weights is not None:
                    weights = csr_input.ordered_ties(index.starts(0, self.vertices + 1), neighbors, weights)
                write_rows(writer.adjacency(adjacency.direction), index, neighbors, weights)
            writer.left, writer.input_edges = self.left, self.input_edges
            if self.into is not None:
                writer.without_edges = count_edgeless(self.vertices, [rows.index() for rows in self.adjacencies])
            if (ids := self.original_ids()) is not None:
                write_ids(writer, ids)
        return Graph.open(path)

    def adjacency(self, name: str) -> Adjacency | None:
        """Return the adjacency of that name, "out", "in" or a window's (`Adjacency.direction`); None: it has none."""
        return self.into if name == "in" else next((one for one in self.all_rows if one.direction == name), None)

    @property
    def all_rows(self) -> list[Adjacency]:
        """The adjacencies, each followed by its windows."""
        return [one for adjacency in self.adjacencies for one in (adjacency, *adjacency.windows)]

    def with_weight(self, name: str) -> "Graph":
        """Return the same graph with a column beside its edges as their weights (``--edge-properties``).

        Parallel edges stay in the order of the weights that the file has. Windows have no columns, and are left out.

        Parameters
        ----------
        name : str
            A column of numbers without nulls; "weight" is the weights that there are.

        Raises
        ------
        InputError
            There is no such column, or it cannot be weights.
        """
        if name == "weight" and self.weight_dtype is not None:
            return self
        names = list(self.edge_properties)
        if name not in names:
            have = f"they have {', '.join(names)}" if names else "they have none"
            raise InputError(f"edges have no {name!r} to be their weight ({have}); convert with --edge-properties")
        number = names.index(name)
        known = self.out.columns[number].property
        if known.range is None or not np.isfinite(known.range[::2]).all():
            large = "has numbers beyond 2^53" if known.type in NUMBERS else f"is a {known.type}"
            why = "has nulls" if known.nulls else large if known.range is None else "has values that are infinite"
            raise InputError(f"{name!r} {why}, and weights are finite numbers; name another column")
        return self._with_column(number, known.range)

    def with_times(self, name: str) -> "Graph":
        """Return the same graph with a column beside its edges in the place of weights, as the file stores it.

        Raises
        ------
        InputError
            There is no such column, it has nulls, or its values are no numbers, dates or timestamps.
        """
        names = list(self.edge_properties)
        known = self.out.columns[names.index(name)].property if name in names else None
        whole = known is not None and known.type == "int" and not known.nulls  # with a base: beyond what is a weight
        if known is not None and whole and (known.base or max(map(abs, known.range or ()), default=0) > EXACT):
            raise InputError(
                f"{name!r} has numbers beyond 2^53, between which times are not told apart; convert them as timestamps"
            )
        if known is None or known.nulls or known.type in ("string", "bool"):
            why = "edges have no such column" if known is None else f"it is a column of {known.facts}"
            raise InputError(f"{name!r} is no time of edges: {why}; name numbers, dates or timestamps without nulls")
        return self._with_column(names.index(name), None)

    def _with_column(self, number: int, weight_range: tuple[float, float, float] | None) -> "Graph":
        out, into = (
            replace(
                rows,
                weights=rows.columns[number].frames,
                weight_dtype=rows.columns[number].frames.kind,
                windows=(),
                window_vertices=0,
            )
            for rows in (self.out, self.into or self.out)
        )
        both = None if self.into is None else out if self.into is self.out else into
        return replace(self, out=out, into=both, weight_range=weight_range)

    def with_adjacencies(self, out: Adjacency, into: Adjacency | None) -> "Graph":
        """Return the same graph with other adjacencies, such as the rows of some vertices (`Adjacency.of_rows`)."""
        return replace(self, out=out, into=into)

    @property
    def vertex_dtype(self) -> np.dtype[Any]:
        """uint32, or uint64 beyond 2^32 vertices."""
        return self.out.neighbor_dtype if self.listed is None else vertex_dtype(self.vertices)

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """The dtype of weights, None without."""
        return self.out.weight_dtype

    @property
    def adjacencies(self) -> tuple[Adjacency, ...]:
        """The adjacencies that are stored, the out-adjacency first; an undirected graph has only that one."""
        return (self.out,) if self.into is None or self.into is self.out else (self.out, self.into)

    @property
    def frame_bytes(self) -> tuple[int, int]:
        """As `Adjacency.frame_bytes`, of all edges."""
        longest, decoded = zip(*(one.frame_bytes for one in self.all_rows), strict=True)
        return max(longest), max(decoded)

    @property
    def index_bytes_read(self) -> int:
        """Bytes read for rows of the adjacencies' indexes; 0 where these are whole."""
        return sum(one.index_bytes_read for one in self.adjacencies)

    @property
    def reordered(self) -> bool | None:
        """Whether vertices are in another order than that of their ids, as ``--order`` says; None: it is not known.

        So they are where `append` gave new ids their places behind greater ones.
        """
        options = self.provenance.get("options")
        if not isinstance(options, dict):
            return None
        # "hub_sort" is what graphs have that were made before there was more than one order
        ordered = options.get("order", "none") != "none" or bool(options.get("hub_sort"))
        return ordered or RISING in self.provenance

    @property
    def rising(self) -> int:
        """How many vertices, from 0 on, surely have ids that rise, on each side of a bipartite graph."""
        of_all = self.vertices if self.original is None or self.reordered is False else 0
        return int(self.provenance.get(RISING, of_all))

    @property
    def hot_first(self) -> bool:
        """Whether the vertices of most edges come first, as orders by degree put them."""
        options = self.provenance.get("options")
        if not isinstance(options, dict):
            return False
        return options.get("order", "none") not in ("none", "paths") or bool(options.get("hub_sort"))

    @property
    def files(self) -> tuple[Path, ...]:
        """The names of the graph's files, the manifest's first; none of a graph in memory."""
        return tuple(file.path for file in self.open_files)

    @property
    def file_bytes(self) -> int:
        """Bytes of all the graph's files; 0 for a graph in memory."""
        return sum(file.size for file in self.open_files)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the vertices by name, with their types as Arrow calls them; none: an empty dict."""
        return property_types(self.provenance)

    @property
    def edge_properties(self) -> dict[str, str]:
        """The columns beside the edges by name (``--edge-properties``), with their types; none: an empty dict."""
        return {column.property.name: column.property.type for column in self.out.columns}

    def original_ids(self) -> NDArray[Any] | None:
        """Return the input's id of every vertex.

        Returns
        -------
        ndarray, (vertices,), or None
            uint32, uint64, or NumPy's StringDType. Strings are in the order of their UTF-8 bytes, unless the conversion
            ordered the vertices (--order). None where the ids are 0 to vertices - 1. On the two sides of a bipartite
            graph the same id may occur.

        Raises
        ------
        RunError
            The ids cannot be read, or are damaged.
        """
        original = self.original
        return original if original is None or isinstance(original, np.ndarray) else original.whole()

    @property
    def id_dtype(self) -> np.dtype[Any]:
        """The dtype of original ids: whole numbers, or NumPy's StringDType."""
        original = self.original
        if original is None:
            return self.vertex_dtype
        return original.dtype if isinstance(original, np.ndarray) else original.kind

    def original_ids_in(self, first: int, last: int) -> NDArray[Any]:
        """Return the input's ids of vertices first..last-1; of a file only their chunks are read.

        Raises
        ------
        RunError
            The ids cannot be read, or are damaged.
        """
        original = self.original
        if original is None:
            return np.arange(first, last, dtype=self.vertex_dtype)
        return original[first:last] if isinstance(original, np.ndarray) else original.part(first, last)

    def original_ids_of(self, vertices: NDArray[Any]) -> NDArray[Any]:
        """Return the input's ids of some vertices, in their order; of a file only their chunks are read.

        Parameters
        ----------
        vertices : ndarray of integers
            Internal ids.

        Raises
        ------
        RunError
            The ids cannot be read, or are damaged.
        """
        original = self.original
        if original is None:
            return vertices.astype(self.vertex_dtype)
        return original[vertices] if isinstance(original, np.ndarray) else original.taken(vertices)


def adjacency_of(opened: OpenedGraph, name: str) -> Adjacency:
    """Return an adjacency of an opened file, "out", "in", or that of a window (`schema.window_name`)."""
    neighbors, weights = opened.frames[f"{name}/{NEIGHBORS}"], opened.frames.get(f"{name}/{WEIGHTS}")
    header, blocks = opened.header, opened.header.layout == "list"
    known = header.edge_properties if name in DIRECTIONS else ()
    paths = [(property_path(name, number), property_path(name, number, bounds=True)) for number in range(len(known))]
    splice = splice_of(opened.frames, name, weighted=weights is not None)
    return Adjacency(
        direction=name,
        edges=neighbors.spec.items if splice is None else splice.edges,
        vertices=-(-header.edges // LIST_BLOCK) if blocks else header.vertices,
        neighbor_dtype=neighbors.spec.kind,
        weight_dtype=None if weights is None else weights.spec.kind,
        encoding=neighbors.spec.encoding,
        chunk_edges=neighbors.spec.chunk_items,
        neighbors=neighbors,
        weights=weights,
        degrees=None if blocks else opened.frames[f"{name}/{DEGREES}"],
        blocks=blocks,
        window_vertices=header.window_vertices,
        windows=tuple(adjacency_of(opened, window) for window in header.windows_of(name)),
        columns=tuple(
            EdgeColumn(one, opened.frames[column], opened.frames[bounds])
            for one, (column, bounds) in zip(known, paths, strict=True)
        ),
        splice=splice,
    )


def _list_facts(opened: OpenedGraph) -> ListFacts | None:
    if opened.header.layout == "rows":
        return None
    found = {direction: opened.frames.get(f"{direction}/{DEGREES}") for direction in DIRECTIONS}
    degrees = {direction: frames for direction, frames in found.items() if frames is not None}
    return ListFacts(opened.frames[f"out/{SPANS}"], degrees, opened.header.self_loops)


def _checked_ids(original_id: ArrayLike | None, vertices: int) -> NDArray[Any] | None:
    """Original ids given from Python, one for each vertex."""
    original = None if original_id is None else np.ascontiguousarray(original_id)
    if original is not None and original.dtype.kind in "OU":
        original = original.astype(STRINGS)
    if original is not None and original.shape != (vertices,):
        raise InputError(f"original_id has shape {original.shape}; {vertices} vertices need one id each")
    return original


def _in_memory(rows: csr_input.Csr, direction: str) -> Adjacency:
    offsets, neighbors, weights = rows
    index = from_offsets(offsets)
    return Adjacency(
        direction=direction,
        edges=len(neighbors),
        vertices=index.vertices,
        neighbor_dtype=vertex_dtype(index.vertices),
        weight_dtype=None if weights is None else weights.dtype,
        encoding="plain",
        arrays=(neighbors, weights),
        _index=index,
    )
