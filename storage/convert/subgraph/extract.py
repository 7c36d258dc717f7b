"""The story of a part of a graph: chosen vertices and the edges between them become a graph file, or one in memory.

Edges are read once, chunk by chunk, and written as they come: new ids are in the order of the old ones, so that nothing
is sorted. Memory holds a few chunks, a row index and a quarter of a byte a vertex. Which vertices are chosen is decided
elsewhere (`engine/subgraph.py`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from penstock.storage.base.atomic import keep_inputs
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.row_writer import Csr, EdgelessCount, RowSink, csr_of
from penstock.storage.convert.sort.options import SMALLEST_MEMORY, ConvertOptions
from penstock.storage.convert.subgraph.kept_edges import KeptList, all_kept_ids, kept_ids, kept_properties
from penstock.storage.convert.subgraph.part import ExtractOptions, Subgraph
from penstock.storage.convert.subgraph.vertex_bitmap import VertexBitmap
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.edges import joined
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.format.writer import GraphWriter


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
    ) as writer:
        edgeless = EdgelessCount(vertices, part.options.host_memory, ends=graph.into is None)
        edges = loops = 0
        for adjacency in graph.adjacencies:
            sink = RowSink(writer.adjacency(adjacency.direction), vertices, edgeless)
            loops = 0
            for rows, more in part.rows(adjacency):
                loops += more
                if rows is not None:
                    sink.put(rows)
            sink.finish()
            edges = sink.edges
        writer.without_edges, writer.left = edgeless.count, part.left
        writer.input_edges = input_edges = edges if graph.directed else (edges + loops) // 2
        for ids in kept_ids(graph, part.chosen):
            writer.original_ids(ids)
    return edges, input_edges, writer.file_bytes


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
    source = KeptList(
        part.graph, part.chosen, part.options.weights, lambda done: part.options.watch("out", done, part.graph.edges)
    )
    report = convert(
        source,
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
