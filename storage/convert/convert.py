"""The story of a conversion: a raw graph becomes a graph file, inside its memory, whole or not at all.

Edges are read once. Those whose ids stay are packed straight into the spill; those whose ids change
wait in a log until every id is known. Then each adjacency is sorted range by range and written as
it comes; the in-adjacency is spilled anew from the sorted rows of the out-adjacency, so that what
was joined there is joined here too. Refuses to know formats (ingest) or the file's layout (write).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.atomic import check_target
from penstock.storage.convert.hubs import DegreeCount, hub_order, inverse
from penstock.storage.convert.ids import IdMap, IdSet, distinct_ids
from penstock.storage.convert.log import Log
from penstock.storage.convert.options import ConvertOptions, ConvertReport
from penstock.storage.convert.partition import check_density, sort_plan
from penstock.storage.convert.read import Backlog, closed_after, fill_spill
from penstock.storage.convert.rows import Ordering, Rows, Sorter
from penstock.storage.convert.sort import RULES
from penstock.storage.convert.spill import Spill
from penstock.storage.convert.workspace import Progress, Workspace, ignore
from penstock.storage.convert.write import write_rows
from penstock.storage.edges import EdgeBatch
from penstock.storage.ingest.options import Source
from penstock.storage.ingest.ordered import ordered_map
from penstock.storage.ingest.text import read_ids
from penstock.storage.write import GraphWriter


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
        RunError: the disk is full or failed; nothing is left on disk.
    """
    target = check_target(output, force=options.force)
    with Workspace(source, target, options, progress) as space:
        edges = _read_and_rename(space) if options.renumber or options.hub_sort else _read(space)
        check_density(edges.vertices, edges.spill.edges, source.name)
        _write(space, edges, target)
        space.stage("finish")
        return _report(space, edges, target)


@dataclass(slots=True)
class _Edges:
    """What reading came to (edges in the spill, vertices, original ids if ids were changed), and
    then what was written."""

    spill: Spill
    vertices: int
    input_edges: int
    original_ids: NDArray[Any] | None = None
    weight_dtype: np.dtype[Any] | None = None
    written: int = 0


def _read(space: Workspace) -> _Edges:
    """Read edges whose ids stay as they are."""
    space.stage("read")
    listed = max((int(ids[-1]) for ids in _listed_ids(space)), default=-1)
    spill = space.spill()
    with closed_after(space.source.batches()) as batches:
        for count in fill_spill(spill, batches, space.steps, space.pool):
            space.read_edges += count
            space.say("read")
    vertices = max(spill.largest + 1, listed + 1, space.source.known_vertices or 0)
    return _Edges(spill, vertices, space.read_edges)


def _read_and_rename(space: Workspace) -> _Edges:
    """Read edges, find their new ids, and spill them under those."""
    log = space.log()
    ids = _read_log(space, log)
    space.stage("map")
    names: IdMap | None = None if ids is None else IdMap(ids)
    vertices = space.known_vertices if ids is None else len(ids)
    check_density(vertices, log.edges, space.source.name)
    original = ids
    new_ids: Callable[[NDArray[Any]], NDArray[Any]] | None = names
    if space.options.hub_sort:
        order = _hubs(space, log, names, vertices)
        original = order if ids is None else ids[order]
        new = inverse(order)
        new_ids = IdMap(ids, new) if ids is not None else lambda values: new[values]
    spill = space.spill()
    steps = replace(space.steps, new_ids=new_ids)
    done = 0
    for count in fill_spill(spill, log.drain(), steps, space.pool):
        done += count
        space.say("map", done, log.edges)
    return _Edges(spill, vertices, log.edges, original)


def _read_log(space: Workspace, log: Log) -> NDArray[np.uint64] | None:
    """Read all edges into the log; with ``renumber`` return the ids that occur."""
    space.stage("read")
    renumber = space.options.renumber
    found = IdSet(space.share.id_bytes)
    for listed in _listed_ids(space):
        space.saw_id(int(listed[-1]))
        if renumber:
            found.add(listed)

    def look(batch: EdgeBatch) -> tuple[EdgeBatch, NDArray[np.uint64] | None]:
        return batch, distinct_ids(batch) if renumber else None

    with closed_after(space.source.batches()) as batches:
        for batch, ids in ordered_map(space.pool, look, batches, space.steps.in_flight):
            log.add(batch)
            space.read_edges += len(batch)
            if ids is not None:
                found.add(ids)
            elif len(batch):
                space.saw_id(max(int(batch.sources.max()), int(batch.targets.max())))
            space.say("read")
    return found.merged() if renumber else None


def _hubs(space: Workspace, log: Log, names: IdMap | None, vertices: int) -> NDArray[Any]:
    """Old ids in hub order."""
    space.check_vertex_memory(vertices)
    degrees = DegreeCount(vertices, space.options.workers, space.pool)
    renamed = replace(space.steps, new_ids=names).renamed
    for batch in ordered_map(space.pool, renamed, log.batches(), space.steps.in_flight):
        degrees.add(batch)
    if space.mirror:
        both = degrees.out + degrees.into
        return hub_order(both, both)
    return hub_order(degrees.out, degrees.into)


def _listed_ids(space: Workspace) -> Iterator[NDArray[np.uint64]]:
    """The ids of ``--vertices``, ascending and distinct, a block at a time."""
    if space.options.vertices_file is not None:
        for ids in read_ids(space.options.vertices_file, space.ingest):
            yield np.unique(ids)


def _write(space: Workspace, edges: _Edges, target: Path) -> None:
    """Sort and write the adjacencies, and whatever else the file holds."""
    spill = edges.spill
    both = space.options.direction == "both" and not space.mirror
    rule = space.rule
    summed = rule == RULES["sum"]
    edges.weight_dtype = spill.extent.dtype(summed=summed) if spill.weighted else None
    narrow_ids = edges.vertices <= 1 << 32
    ordering = Ordering(
        vertices=edges.vertices,
        vertex_dtype=np.dtype(np.uint32 if narrow_ids else np.uint64),
        weight_dtype=edges.weight_dtype,
        rule=rule,
        reverse=both,
        wide=spill.wide,
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
        with closed_after(_sorted_into(space, writer, "out", spill, ordering)) as written:
            for rows in written:
                edges.written += len(rows.neighbors)
                if rows.reverse is not None:
                    backlog.add(rows.reverse)
                space.say("out", edges.written, spill.edges)
        backlog.finish()
        spill.free()
        if both:
            again = replace(ordering, reverse=False, rule=None, wide=backward.wide)
            _write_backward(space, writer, backward, again)
        if edges.original_ids is not None:
            writer.original_ids(edges.original_ids)
        writer.input_edges = edges.input_edges
        space.stage("close")


def _write_backward(space: Workspace, writer: GraphWriter, backward: Spill, ordering: Ordering) -> None:
    space.stage("in")
    done = 0
    with closed_after(_sorted_into(space, writer, "in", backward, ordering)) as written:
        for rows in written:
            done += len(rows.neighbors)
            space.say("in", done, backward.edges)


def _sorted_into(
    space: Workspace, writer: GraphWriter, direction: str, spill: Spill, ordering: Ordering
) -> Iterator[Rows]:
    memory = space.share.sort_bytes // (2 if ordering.reverse else 1)
    plan = sort_plan(memory, ordering.edge_bytes, space.options.workers)
    buckets = space.steps.packing.buckets
    sorter = Sorter(space.pool, plan, space.room, space.scratch, buckets)
    rows = sorter.rows(spill, ordering)
    yield from write_rows(writer.adjacency(direction), rows, ordering.vertices)


def _report(space: Workspace, edges: _Edges, target: Path) -> ConvertReport:
    return ConvertReport(
        output=target,
        vertices=edges.vertices,
        edges=edges.written,
        input_edges=edges.input_edges,
        directed=not space.mirror,
        weight_dtype=None if edges.weight_dtype is None else edges.weight_dtype.name,
        input_bytes=space.source.bytes_done,
        output_bytes=space.output_bytes(target),
        scratch_bytes=space.scratch.written,
        seconds=space.seconds,
    )
