"""The story of a part of a graph: chosen vertices and the edges between them become a graph file, or one in memory.

Edges are read once, chunk by chunk, and written as they come: new ids are in the order of the old ones, so that nothing
is sorted. Memory holds a few chunks, a row index and a quarter of a byte a vertex. Which vertices are chosen is decided
elsewhere (`engine/subgraph.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import keep_inputs
from penstock.storage.base.budget import cores, format_bytes
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.base.threads import ThreadPool, pooled_map
from penstock.storage.convert.convert import convert
from penstock.storage.convert.row_writer import EdgelessCount, RowSink, csr_of, set_ends, set_rows
from penstock.storage.convert.sort.groups import EDGELESS_SHARE
from penstock.storage.convert.sort.options import SMALLEST_MEMORY, ConvertOptions
from penstock.storage.convert.sort.sort_groups import SortedRows
from penstock.storage.convert.subgraph.chosen_vertices import VertexBitmap
from penstock.storage.convert.subgraph.edge_filter import EdgeFilter
from penstock.storage.convert.subgraph.kept_edges import (
    all_kept_ids,
    kept_batches,
    kept_ids,
    kept_properties,
    kept_rows,
    piece_bytes,
)
from penstock.storage.convert.windows import write_windows
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.csr_input import Csr
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.schema import (
    CHANGES,
    CHUNK_EDGES,
    EXTRACTED,
    RISING,
    STRIPE_RUN,
    WITHOUT_EDGES,
    vertex_dtype,
)
from penstock.storage.format.writer import GraphWriter
from penstock.storage.ingest.core.edges import EdgeBatch, joined
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.graph_file import GraphFileSource
from penstock.storage.tables.properties import PROPERTIES, open_properties

Watch = Callable[[str, int, int], None]
"""Called with a stage ("select", "out", "in"), and how many of its entries have been read of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOptions:
    """How a part of a graph is taken.

    where: which edges stay. drop_isolated: leave out chosen vertices to which no edge is left. columns: whether what
    is beside edges stays, too. conditions: what chose the vertices, for the file. host_memory, threads, force: as
    `ConvertOptions` has them.
    """

    where: EdgeFilter | None = None
    columns: bool = True
    drop_isolated: bool = False
    conditions: dict[str, Any] = field(default_factory=dict)
    host_memory: int = 1 << 30
    threads: int | None = None
    force: bool = False
    watch: Watch = lambda stage, done, total: None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A part of a graph that is being taken."""

    graph: Graph
    chosen: VertexBitmap
    options: ExtractOptions
    threads: int

    @classmethod
    def of(cls, graph: Graph, chosen: VertexBitmap, options: ExtractOptions) -> Subgraph:
        """Check what was asked for; leave out vertices without an edge, where that is wanted. Raises InputError."""
        part = cls(graph, chosen, options, 1)._affordable()
        return replace(part, chosen=part._with_edges()) if options.drop_isolated else part

    @property
    def left(self) -> int | None:
        """Of a bipartite graph, how many sources stay."""
        return None if self.graph.left is None else self.chosen.below(self.graph.left)

    def provenance(self) -> dict[str, Any]:
        """Where the graph comes from: as the first one, and what was taken of it."""
        kept = _without(self.graph.provenance, WITHOUT_EDGES, PROPERTIES, CHANGES)
        if RISING in kept:
            kept[RISING] = self.chosen.below(kept[RISING])
        taken = {"from": "memory" if self.graph.path is None else str(self.graph.path), **self.options.conditions}
        return kept | {EXTRACTED: taken}

    def rows(self, adjacency: Adjacency, stage: str | None = None) -> Iterator[tuple[SortedRows | None, int]]:
        """Yield the rows that stay of each chunk, and their self-loops."""
        done = 0
        adjacency.index(self.threads)
        where = self.options.where
        read = partial(kept_rows, adjacency, self.chosen, where, columns=self.options.columns)
        possible = range(adjacency.chunks) if where is None else where.possible_chunks(adjacency).nonzero()[0].tolist()
        for rows, loops, entries in pooled_map(read, possible, self.threads, "extract"):
            done += entries
            yield rows, loops
            self.options.watch(stage or adjacency.direction, done, adjacency.edges)

    def batches(self, stage: str) -> Iterator[EdgeBatch]:
        """Yield the edges that stay of each chunk of a list."""
        done, edges = 0, self.graph.edges
        for batch in kept_batches(self.graph, self.chosen, self.options.where):
            done = min(done + self.graph.out.chunk_edges, edges)
            yield batch
            self.options.watch(stage, done, edges)

    def _affordable(self) -> Subgraph:
        """The same with as many threads as the budget allows. Raises BudgetError where it allows none."""
        most = self.options.threads or cores()
        copied = self._copied()
        allowed = (count for count in range(most, 0, -1) if self._needed(count, copied) <= self.options.host_memory)
        threads = next(allowed, 0)
        if threads == 0:
            needed = self._needed(1, copied)
            raise BudgetError(
                "--host-memory",
                f"taking a part of this graph needs {format_bytes(needed)}: row indexes and sets of its "
                f"{self.graph.vertices:,} vertices, ids that are strings, properties, chunks that are read and written",
                -(-needed // (1 << 20)),
            )
        return replace(self, threads=threads)

    def _copied(self) -> int:
        """Bytes that copying properties holds, before edges are read; rows of another order are sorted by id."""
        graph = self.graph
        if not graph.properties:
            return 0
        table = open_properties(graph.path, graph.provenance, graph.vertices)
        return table.copy_bytes + (17 if graph.reordered else 1) * graph.vertices

    def _needed(self, threads: int, copied: int) -> int:
        """Bytes that reading, filtering and writing with so many threads hold, or copying properties."""
        ids, out = self.graph.original, self.graph.out
        names = 3 * ids.text.spec.items + 24 * ids.ends.spec.items if isinstance(ids, StringIdFrames) else 0
        vertices = (1 + 5 * len(self.graph.adjacencies)) * self.graph.vertices
        vertices += 0 if self.chosen.edges is None else self.chosen.edges.nbytes
        pieces = (threads + 2) * piece_bytes(out, len(self.chosen))
        encoded = (3 * threads + 2 + STRIPE_RUN) * CHUNK_EDGES * out.stored_edge_bytes  # GraphWriter's sum
        return names + vertices + max(pieces + encoded, copied)

    def _with_edges(self) -> VertexBitmap:
        """The chosen vertices to which an edge is left."""
        bits = np.zeros((len(self.chosen) + 7) // 8, np.uint8)
        if self.graph.layout == "list":
            for batch in self.batches("select"):
                set_ends(bits, batch.sources)
                set_ends(bits, batch.targets)
        else:
            for rows, _ in self.rows(self.graph.out, "select"):
                if rows is not None:
                    set_rows(bits, rows.first, rows.degrees)
                    if self.graph.directed:
                        set_ends(bits, rows.neighbors)

        def holds(first: int, last: int) -> NDArray[np.bool_]:
            found = self.chosen.mask(first, last)
            low, high = self.chosen.below(first), self.chosen.below(last)
            stay = np.unpackbits(bits[low // 8 : -(-high // 8)], bitorder="little")[low % 8 :][: high - low]
            found[found] = stay
            return found

        left = VertexBitmap.of(self.graph.vertices, holds)
        left.edges = self.chosen.edges
        return left


def check_weighted(graph: Graph) -> None:
    """Raise InputError where a graph has no weights to choose edges by."""
    if graph.weight_dtype is None:
        raise InputError("the graph has no weights to go by; leave out --weights, or convert with --weights")


class KeptList(GraphFileSource):
    """A part of a list, as a source that `convert` takes."""

    def __init__(self, part: Subgraph) -> None:
        assert part.graph.path is not None, "a graph in memory is no file"
        super().__init__(Path(part.graph.path), IngestOptions())
        self._part, self.known_vertices, self.left = part, len(part.chosen), part.left

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges that stay."""
        done, edges = 0, max(1, self._part.graph.edges)
        for batch in self._part.batches("out"):
            done = min(done + self._part.graph.out.chunk_edges, edges)
            self.bytes_done = int(self.total_bytes * done / edges)
            if len(batch):
                yield batch

    def original_ids(self) -> NDArray[Any] | StringArray | None:
        """The ids that the vertices have which stay."""
        return all_kept_ids(self._part.graph, self._part.chosen)

    def properties(self) -> None:
        """None: properties of vertices stay with rows only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractReport:
    """What stayed: vertices, entries of the adjacency, edges as the input counts them; bytes of the file (0: none)."""

    vertices: int
    edges: int
    input_edges: int
    output_bytes: int
    seconds: float


def extract_to_file(graph: Graph, chosen: VertexBitmap, target: Path, options: ExtractOptions) -> ExtractReport:
    """Write the part of a graph as a graph file, whole or not at all.

    Raises:
        InputError: the file may not be written, the memory is too little, or the graph has no weights to go by.
        RunError: the graph cannot be read, or the disk is full or failed.
    """
    began = time.perf_counter()
    keep_inputs(target, graph.files)
    part = Subgraph.of(graph, chosen, options)
    if graph.layout == "list":
        return _list_to_file(part, target, began)
    with kept_properties(graph, part.chosen, target, force=options.force) as properties:
        edges, input_edges, size = _rows_to_file(part, target, properties)
    return ExtractReport(
        vertices=len(part.chosen),
        edges=edges,
        input_edges=input_edges,
        output_bytes=size,
        seconds=time.perf_counter() - began,
    )


def _rows_to_file(part: Subgraph, target: Path, properties: dict[str, Any]) -> tuple[int, int, int]:
    """Write a part of rows; return the entries of its adjacency, its edges, and the bytes of the file."""
    graph, vertices = part.graph, len(part.chosen)
    with GraphWriter(
        target,
        vertices=vertices,
        directed=graph.directed,
        vertex_dtype=vertex_dtype(vertices),
        weight_dtype=graph.weight_dtype,
        force=part.options.force,
        provenance=part.provenance() | properties,
        encoding=graph.out.encoding if graph.path else "packed",
        threads=part.threads,
        columns=[(column.property, column.frames.kind) for column in graph.out.columns],
    ) as writer:
        edgeless = EdgelessCount(vertices, part.options.host_memory // EDGELESS_SHARE, ends=graph.into is None)
        edges, input_edges = _write_adjacencies(part, writer, edgeless)
        writer.without_edges, writer.left = edgeless.count, part.left
        for ids in kept_ids(graph, part.chosen):
            writer.original_ids(ids)
    return edges, input_edges, writer.file_bytes


def _write_adjacencies(part: Subgraph, writer: GraphWriter, edgeless: EdgelessCount | None) -> tuple[int, int]:
    """Write the rows that stay of every adjacency; return the entries of one, and edges as the input counts them."""
    edges = loops = 0
    for adjacency in part.graph.adjacencies:
        sink = RowSink(writer.adjacency(adjacency.direction), len(part.chosen), edgeless)
        loops = 0
        for rows, more in part.rows(adjacency):
            loops += more
            if rows is not None:
                sink.put(rows)
        sink.finish()
        edges = sink.edges
    writer.input_edges = edges if part.graph.directed else (edges + loops) // 2
    return edges, writer.input_edges


def select_to_file(graph: Graph, target: Path, options: ExtractOptions) -> None:
    """Write the edges of which a condition holds, and windows of them, for `as_selection`, and nothing else.

    Raises as `extract_to_file`.
    """
    part = Subgraph.of(graph, VertexBitmap.whole(graph.vertices), options)
    if graph.layout == "list":
        _list_to_file(part, target, time.perf_counter())
        return
    with GraphWriter(
        target,
        vertices=graph.vertices,
        directed=graph.directed,
        vertex_dtype=graph.vertex_dtype,
        weight_dtype=graph.weight_dtype,
        encoding=graph.out.encoding,
        threads=part.threads,
        window_vertices=graph.out.window_vertices,
    ) as writer:
        _write_adjacencies(part, writer, None)
        if graph.out.window_vertices:
            with ThreadPool(part.threads, "windows") as pool:
                write_windows(writer, graph.out.window_vertices, pool, part.threads, lambda done: None)


def as_selection(graph: Graph, made: Graph) -> Graph:
    """The edges that were selected, as a graph of the vertices, ids and properties of the whole."""
    provenance = _without(graph.provenance, WITHOUT_EDGES, CHANGES)
    return replace(made, path=graph.path, original=graph.original, left=graph.left, provenance=provenance)


def _without(provenance: dict[str, Any], *left: str) -> dict[str, Any]:
    """A provenance without what a part of the graph cannot say."""
    return {name: value for name, value in provenance.items() if name not in left}


def extract_to_memory(graph: Graph, chosen: VertexBitmap, options: ExtractOptions) -> Graph:
    """Make the part of a graph a graph in memory. Raises as `extract_to_file`."""
    part = Subgraph.of(graph, chosen, options)
    ids = all_kept_ids(graph, part.chosen)
    original = ids.strings() if isinstance(ids, StringArray) else ids
    made = _list_in_memory(part, original) if graph.layout == "list" else _rows_in_memory(part, original)
    return replace(made, left=part.left, provenance=part.provenance())


def count_extracted(graph: Graph, chosen: VertexBitmap, options: ExtractOptions) -> ExtractReport:
    """Count what would stay, by one pass over the edges. Raises as `extract_to_file`."""
    began = time.perf_counter()
    part = Subgraph.of(graph, chosen, options)
    edges = loops = 0
    if graph.layout == "list":
        edges = sum(len(batch) for batch in part.batches("out"))
    else:
        for rows, more in part.rows(graph.out):
            edges, loops = edges + (0 if rows is None else len(rows.neighbors)), loops + more
    listed = graph.directed or graph.layout == "list"
    return ExtractReport(
        vertices=len(part.chosen),
        edges=edges,
        input_edges=edges if listed else (edges + loops) // 2,
        output_bytes=0,
        seconds=time.perf_counter() - began,
    )


def _list_to_file(part: Subgraph, target: Path, began: float) -> ExtractReport:
    """Write a part of a list: the steps of a conversion."""
    if part.graph.path is None:
        raise InputError("a list in memory cannot become a file; leave out the output, or make the graph of rows")
    report = convert(
        KeptList(part),
        target,
        ConvertOptions(
            layout="list",
            host_memory=max(SMALLEST_MEMORY, part.options.host_memory),
            threads=part.options.threads,
            force=part.options.force,
        ),
    )
    return ExtractReport(
        vertices=report.vertices,
        edges=report.edges,
        input_edges=report.input_edges,
        output_bytes=report.output_bytes,
        seconds=time.perf_counter() - began,
    )


def _list_in_memory(part: Subgraph, original: NDArray[Any] | None) -> Graph:
    """The part of a list."""
    edges = joined(list(part.batches("out")), part.graph.weight_dtype)
    return Graph.from_list(*edges, vertices=len(part.chosen), directed=part.graph.directed, original_id=original)


def _rows_in_memory(part: Subgraph, original: NDArray[Any] | None) -> Graph:
    """The part of a graph of rows."""
    vertices = len(part.chosen)

    def csr(adjacency: Adjacency) -> Csr:
        pieces = (rows for rows, _ in part.rows(adjacency) if rows is not None)
        return csr_of(pieces, vertices, vertex_dtype(vertices), adjacency.weight_dtype)

    out, *others = map(csr, part.graph.adjacencies)
    into = others[0] if others else None
    return Graph.from_arrays(*out, into=into, directed=part.graph.directed, original_id=original)
