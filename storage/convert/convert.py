"""The story of a conversion: a raw graph becomes a graph file, inside its memory, whole or not at all.

Edges are read once. Those whose ids stay are packed straight into the spill; those whose ids change
wait in a log until every id is known; those that lie row by row and stay so need neither. Then each
adjacency is sorted range by range and written as it comes; the in-adjacency is spilled anew from the
sorted rows of the out-adjacency, so that what was joined there is joined here too. Refuses to know
formats (ingest) or the file's layout (write).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from penstock.storage.base.atomic import check_target
from penstock.storage.convert.csr_passthrough import CsrRowsReader, weight_range
from penstock.storage.convert.rename import Original, read_and_rename
from penstock.storage.convert.renumber.id_mapping import NameStore
from penstock.storage.convert.row_writer import write_rows
from penstock.storage.convert.sort.groups import check_density, sort_plan
from penstock.storage.convert.sort.isolated_vertices import IsolatedVertices
from penstock.storage.convert.sort.options import ConvertOptions, ConvertReport
from penstock.storage.convert.sort.radix import RULES
from penstock.storage.convert.sort.read import Backlog, closed_after, fill_spill
from penstock.storage.convert.sort.sort_groups import Ordering, SortedRows, Sorter
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.convert.sort.weights import WeightRange
from penstock.storage.convert.sort.workspace import Progress, Workspace, ignore
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.writer import GraphWriter
from penstock.storage.ingest.core.source import RowSource, Source


def convert(
    source: Source,
    output: Path | str,
    options: ConvertOptions,
    progress: Progress = ignore,
) -> ConvertReport:
    """Convert ``source`` into the graph file ``output``.

    ``progress`` is called now and then with a `ConvertProgress`, in this thread.

    Raises:
        InputError: the input, an option or the output cannot be used; nothing is left on disk.
        RunError: the disk is full or failed; nothing is left on disk, and a graph that was there stays.
        UnsyncedError: the graph is in its place, but its folder could not be synced.
    """
    target = check_target(output, force=options.force)
    with Workspace(source, target, options, progress) as space:
        edges = taken_in(space)
        check_density(edges.vertices, edges.count, source.name)
        _write(space, edges, target)
        space.stage("finish")
        return _report(space, edges, target)


@dataclass(slots=True, kw_only=True)
class ConvertedEdges:
    """What reading came to (how many edges, of which vertices, with what weights; how to get their
    sorted rows; original ids if ids were changed; of two sides, how many sources), and then what was written."""

    count: int
    vertices: int
    input_edges: int
    extent: WeightRange | None
    wide: bool
    rows: Callable[[Sorter, Ordering], Iterator[SortedRows]]
    original: Original = None
    left: int | None = None
    weight_dtype: np.dtype[Any] | None = None
    written: int = 0
    without_edges: int | None = None
    output_bytes: int = 0


def taken_in(space: Workspace) -> ConvertedEdges:
    """Get hold of the edges by the shortest way that the options allow."""
    if space.row_source is not None:
        return _straight(space, space.row_source)
    if space.renames:
        renamed = read_and_rename(space)
        edges = _spilled(renamed.spill, renamed.numbered.vertices, renamed.edges)
        edges.original, edges.left = renamed.original, renamed.numbered.left
        return edges
    return _read(space)


def _straight(space: Workspace, source: RowSource) -> ConvertedEdges:
    """Take edges that lie row by row as they are."""
    space.stage("read")
    vertices = source.known_vertices or 0
    extent = weight_range(source, space.pool, space.steps.in_flight)

    def rows(sorter: Sorter, ordering: Ordering) -> Iterator[SortedRows]:
        return CsrRowsReader(source, sorter, ordering, space.options.drop_self_loops).rows()

    count = space.read_edges = source.edges
    wide = vertices > 1 << 32
    return ConvertedEdges(count=count, vertices=vertices, input_edges=count, extent=extent, wide=wide, rows=rows)


def _spilled(spill: Spill, vertices: int, input_edges: int) -> ConvertedEdges:
    """Edges that lie in a spill, which ends with its rows."""

    def rows(sorter: Sorter, ordering: Ordering) -> Iterator[SortedRows]:
        yield from sorter.rows(spill, ordering)
        spill.free()

    return ConvertedEdges(
        count=spill.edges,
        vertices=vertices,
        input_edges=input_edges,
        extent=spill.extent if spill.weighted else None,
        wide=spill.wide,
        rows=rows,
    )


def _read(space: Workspace) -> ConvertedEdges:
    """Read edges whose ids stay as they are."""
    space.stage("read")
    spill = space.spill()
    with closed_after(space.source.batches()) as batches:
        for count in fill_spill(spill, _noted(space, batches), space.steps, space.pool):
            space.read_edges += count
            space.say("read")
    vertices = max(spill.largest + 1, space.known_vertices)
    return _spilled(spill, vertices, space.read_edges)


def _noted(space: Workspace, batches: Iterator[EdgeBatch]) -> Iterator[EdgeBatch]:
    """Pass batches on, noting vertices without edges."""
    for batch in batches:
        if batch.lone is not None:
            space.saw_id(int(batch.lone.max()))
        if len(batch):
            yield batch


def _write(space: Workspace, edges: ConvertedEdges, target: Path) -> None:
    """Sort and write the adjacencies, and whatever else the file holds; all of it is in place then."""
    both = space.options.direction == "both" and not space.mirror
    rule = space.rule
    summed = rule == RULES["sum"]
    edges.weight_dtype = None if edges.extent is None else edges.extent.dtype(summed=summed)
    narrow_ids = edges.vertices <= 1 << 32
    ordering = Ordering(
        vertices=edges.vertices,
        vertex_dtype=np.dtype(np.uint32 if narrow_ids else np.uint64),
        weight_dtype=edges.weight_dtype,
        rule=rule,
        reverse=both,
        wide=edges.wide,
    )
    with GraphWriter(
        target,
        vertices=edges.vertices,
        directed=not space.mirror,
        vertex_dtype=ordering.vertex_dtype,
        weight_dtype=edges.weight_dtype,
        stripes=space.options.stripes,
        force=space.options.force,
        provenance=space.provenance(),
        encoding=space.options.encoding,
        threads=space.share.encoders,
    ) as writer:
        space.stage("out")
        backward = space.spill()
        backlog = Backlog(backward, space.reverse_steps, space.pool)
        edgeless = IsolatedVertices(edges.vertices, space.options.host_memory)
        with closed_after(_written(space, writer, "out", edges.rows, ordering)) as written:
            for rows in written:
                edges.written += len(rows.neighbors)
                edgeless.rows(rows.first, rows.degrees)
                if not both and not space.mirror:
                    edgeless.ends(rows.neighbors)
                if rows.reverse is not None:
                    backlog.add(rows.reverse)
                space.say("out", edges.written, edges.count)
        backlog.finish()
        if both:
            again = replace(ordering, reverse=False, rule=None, wide=backward.wide)
            _write_backward(space, writer, backward, again, edgeless)
        edges.without_edges = writer.without_edges = edgeless.count
        _write_original(writer, edges)
        writer.input_edges = edges.input_edges
        space.stage("close")
    edges.output_bytes = writer.file_bytes


def _write_original(writer: GraphWriter, edges: ConvertedEdges) -> None:
    """Write the ids that vertices had, and which of them are sources of a bipartite graph."""
    writer.left = edges.left
    if isinstance(edges.original, NameStore):
        for names in edges.original.pieces():
            writer.original_names(names)
    elif edges.original is not None:
        writer.original_ids(edges.original)


def _write_backward(
    space: Workspace, writer: GraphWriter, backward: Spill, ordering: Ordering, edgeless: IsolatedVertices
) -> None:
    space.stage("in")
    done = 0
    edges = _spilled(backward, ordering.vertices, backward.edges)
    with closed_after(_written(space, writer, "in", edges.rows, ordering)) as written:
        for rows in written:
            done += len(rows.neighbors)
            edgeless.rows(rows.first, rows.degrees)
            space.say("in", done, backward.edges)


def _written(
    space: Workspace,
    writer: GraphWriter,
    direction: str,
    rows: Callable[[Sorter, Ordering], Iterator[SortedRows]],
    ordering: Ordering,
) -> Iterator[SortedRows]:
    sorted_rows = rows(sorter_for(space, ordering), ordering)
    yield from write_rows(writer.adjacency(direction), sorted_rows, ordering.vertices)


def sorter_for(space: Workspace, ordering: Ordering) -> Sorter:
    """What sorts one adjacency."""
    memory = space.share.sort_bytes // (2 if ordering.reverse else 1)
    plan = sort_plan(memory, ordering.edge_bytes, space.options.workers)
    return Sorter(space.pool, plan, space.room, space.scratch, space.steps.packing.buckets)


def _report(space: Workspace, edges: ConvertedEdges, target: Path) -> ConvertReport:
    return ConvertReport(
        output=target,
        vertices=edges.vertices,
        edges=edges.written,
        input_edges=edges.input_edges,
        directed=not space.mirror,
        weight_dtype=None if edges.weight_dtype is None else edges.weight_dtype.name,
        input_bytes=space.source.bytes_done,
        output_bytes=edges.output_bytes,
        scratch_bytes=space.scratch.written,
        without_edges=edges.without_edges,
        seconds=space.seconds,
    )
