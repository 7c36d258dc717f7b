"""The steps of a conversion: a raw graph becomes a graph file within a memory budget, whole or not at all.

Edges are read in one of three ways. If the input stores them row by row and no option moves them to other rows, they
stay in the input (`_read_rows`). Mostly they are packed into a spill: runs of edges, first in memory, then in scratch
files (`_read`), in the ids of the input, which become vertices when edges are sorted. Where options or strings give ids
another order, edges are kept in a log until every id is known, then packed into a spill (rename.py). Then each
adjacency is sorted range by range and written while it is sorted. The in-adjacency is
sorted from a second spill, which is filled from the sorted rows of the out-adjacency, so parallel edges that were
joined there are joined here too. With `--layout list` nothing is sorted (convert_list.py). Input formats are in
`ingest`, the file's layout is in `format`.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from penstock.storage.base.atomic import check_target
from penstock.storage.base.errors import InputError
from penstock.storage.companion.job_compiler import listed_job
from penstock.storage.companion.process import end, expect, offer
from penstock.storage.convert.convert_list import write_list
from penstock.storage.convert.csr_passthrough import CsrPassthrough, weight_range
from penstock.storage.convert.rename import InputEdges, read_and_rename
from penstock.storage.convert.renumber.input_ids import InputIds, NeedsTable, known_ids
from penstock.storage.convert.renumber.name_store import pieces_of
from penstock.storage.convert.row_writer import EdgelessCount, RowSink
from penstock.storage.convert.sort import radix
from penstock.storage.convert.sort.groups import check_density, sort_plan
from penstock.storage.convert.sort.options import ConvertOptions, ConvertReport
from penstock.storage.convert.sort.sort_groups import Ordering, SortedRows, Sorter
from penstock.storage.convert.sort.spill import Spill, copy_keys, copy_weights
from penstock.storage.convert.sort.spill_filler import SpillFiller
from penstock.storage.convert.sort.workspace import Progress, Workspace, ignore
from penstock.storage.convert.vertex_properties import sorted_vertices
from penstock.storage.convert.windows import most_windows, window_vertices, write_windows
from penstock.storage.format.file_set import check_unused
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.format.writer import GraphWriter
from penstock.storage.ingest.core.source import Source
from penstock.storage.ingest.formats.csr import CsrSource


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
    check_unused(target)  # it is locked when it is written
    with Workspace(source, target, options, progress) as space, sorted_vertices(space, target):
        rows = options.layout == "rows"
        report = write_graph(space, read_edges(space), target) if rows else write_list(space, target)
        return report if space.table is None else replace(report, properties=space.table.types)


def convert_opened(
    opened: Callable[[], Source],
    output: Path | str,
    options: ConvertOptions,
    progress: Progress = ignore,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[ConvertReport, Source]:
    """Convert the source that ``opened`` gives, as `convert` does, and return it, too.

    Where a late id needs a table, and the source is files, these are opened and read again, and ``note`` says so.
    """

    def converted(source: Source, table: bool) -> ConvertReport:
        return convert(source, output, replace(options, renumber=True) if table else options, progress)

    with compiled_ahead(options):
        return read_twice(opened, converted, note)


def read_twice(
    opened: Callable[[], Source], read: Callable[[Source, bool], ConvertReport], note: Callable[[str], None]
) -> tuple[ConvertReport, Source]:
    """Return what ``read`` makes of a source, and the source; where a late id needs a table, it is read with one."""
    source = opened()
    try:
        return read(source, False), source
    except NeedsTable:
        if source.total_bytes is None:  # a pipe is read once
            raise
    note(f"{source.name} is read again: it has ids that need a table, as --renumber makes it from the beginning")
    source = opened()
    return read(source, True), source


def read_edges(space: Workspace) -> InputEdges:
    """Read the edges in the cheapest of the three ways that input and options allow; refuse ids that are too sparse."""
    edges = _read_rows(space)
    if edges is None:
        space.stage("read")
        ids = InputIds(space)
        edges = read_and_rename(space, ids) if ids.renames else _read(space, ids)
    check_density(edges.vertices, edges.store.edges, space.source.name)
    return replace(edges, input_edges=getattr(space.source, "input_edges", edges.input_edges))


def _read_rows(space: Workspace) -> InputEdges | None:
    """Edges that the input stores row by row, left there; None for other inputs, or where options move them."""
    rows = space.row_source
    if rows is None:
        return None
    space.stage("read")
    extent = weight_range(rows, space.pool, space.packing.in_flight)
    space.read_edges = rows.edges
    return InputEdges(store=rows, vertices=rows.known_vertices or 0, input_edges=rows.edges, weights=extent)


def _read(space: Workspace, ids: InputIds) -> InputEdges:
    """Edges in the ids of the input."""
    spill, packing = space.spill(), replace(space.packing, seen=ids.seen)
    with closing(ids.batches()) as batches:
        try:
            for _ in SpillFiller(spill, packing, space.pool).fill(batches):
                ids.check()
                space.say("read")
        except InputError:
            ids.check()  # an id that no key holds is in no bitmap either, and that says what to do
            raise
    vertices, without_edges, found = ids.numbering(spill.largest)
    original, left = known_ids(space)
    return InputEdges(
        store=spill,
        vertices=vertices,
        input_edges=space.read_edges,
        weights=spill.weight_range,
        original=found or original,
        left=left,
        without_edges=without_edges,
        ids=found,
        renumbered=ids.renumbered,
    )


def ordering_of(space: Workspace, edges: InputEdges, *, reverse: bool = False) -> Ordering:
    """What the rows of the out-adjacency look like; ``reverse``: they also give each edge with its ends exchanged."""
    summed = space.rule == radix.RULES["sum"]
    # wide: ids of 2^32 and more do not fit the narrow sort keys (README.md here, step 1)
    wide = edges.store.wide if isinstance(edges.store, Spill) else edges.vertices > 1 << 32
    columns = space.columns
    weighted = edges.weights is not None and (columns is None or columns.weighted)
    return Ordering(
        vertices=edges.vertices if edges.ids is None else edges.ids.end,
        vertex_dtype=vertex_dtype(edges.vertices),
        weight_dtype=edges.weights.dtype(summed=summed) if edges.weights and weighted else None,
        records=None if columns is None else columns.record,
        columns=None if columns is None else columns.stored(),
        rule=space.rule,
        reverse=reverse,
        wide=wide,
        ids=edges.ids,
    )


def sorted_rows(space: Workspace, store: Spill | CsrSource, ordering: Ordering) -> Generator[SortedRows]:
    """Yield all rows that have edges, sorted, ascending. A spill is freed at the end."""
    # with reverse, the other half packs the exchanged edges (`Workspace.reverse_packing`)
    memory = space.share.sort_bytes // (2 if ordering.reverse else 1)
    plan = sort_plan(memory, ordering.edge_bytes, space.workers)
    sorter = Sorter(space.pool, plan, space.room, space.buckets)
    if isinstance(store, Spill):
        yield from sorter.rows(store, ordering)
        store.free()
    else:
        yield from CsrPassthrough(store, sorter, ordering, space.options.drop_self_loops).rows()


def write_graph(space: Workspace, edges: InputEdges, target: Path) -> ConvertReport:
    """Sort and write the adjacencies and the original ids; on return the graph file is in its place.

    ``space.mirror``: every edge goes to the rows of both its ends (undirected and symmetrized graphs), so that the
    out-adjacency serves as the in-adjacency.
    """
    both = space.options.direction == "both" and not space.mirror
    ordering = ordering_of(space, edges, reverse=both)
    kinds, memory = (ordering.vertex_dtype, ordering.weight_dtype), space.options.host_memory
    most = most_windows(sum(kind.itemsize for kind in kinds if kind is not None), len(space.options.stripes), memory)
    size = window_vertices(space.options.windows, edges.vertices, memory, most)
    windows = -(-edges.vertices // size) if size else 0
    edgeless: EdgelessCount | None = None
    if not isinstance(edges.store, Spill):
        edgeless = EdgelessCount(edges.vertices, space.share.edgeless_bytes, ends=not both)
    with GraphWriter(
        target,
        vertices=edges.vertices,
        directed=not space.mirror,
        vertex_dtype=ordering.vertex_dtype,
        weight_dtype=ordering.weight_dtype,
        stripes=space.options.stripes,
        force=space.options.force,
        provenance=space.provenance(renumbered=edges.renumbered),
        encoding=space.options.encoding,
        threads=space.share.encoders,
        window_vertices=size,
        columns=ordering.columns.known if ordering.columns else (),
    ) as writer:
        backward = space.spill()
        filler = SpillFiller(backward, space.reverse_packing, space.pool)
        sink = RowSink(writer.adjacency("out"), edges.vertices, edgeless, filler)
        _write_rows(space, "out", edges.store, ordering, sink)
        if both:
            # no rule: parallel edges were joined in the out-adjacency
            inward = replace(ordering, reverse=False, rule=None, wide=backward.wide, vertices=edges.vertices, ids=None)
            _write_rows(space, "in", backward, inward, RowSink(writer.adjacency("in"), edges.vertices, edgeless))
        writer.without_edges = without = edges.without_edges if edgeless is None else edgeless.count
        writer.left = edges.left
        for piece in pieces_of(edges.original):
            writer.original_ids(piece)
        writer.input_edges = edges.input_edges
        if windows:
            space.stage("windows")
            total = sink.edges * (2 if both else 1)
            write_windows(
                writer, size, space.pool, space.share.encoders, lambda done: space.say("windows", done, total)
            )
        space.stage("close")
    space.stage("finish")
    return ConvertReport(
        output=target,
        vertices=edges.vertices,
        edges=sink.edges,
        input_edges=edges.input_edges,
        directed=not space.mirror,
        weight_dtype=None if ordering.weight_dtype is None else ordering.weight_dtype.name,
        input_bytes=space.source.bytes_done,
        output_bytes=writer.file_bytes,
        scratch_bytes=space.room.written,
        without_edges=without,
        windows=windows,
        window_vertices=size,
        edge_properties=space.columns.types if space.columns else {},
        seconds=space.seconds,
    )


def _write_rows(
    space: Workspace, direction: Literal["out", "in"], store: Spill | CsrSource, ordering: Ordering, sink: RowSink
) -> None:
    space.stage(direction)
    with closing(sorted_rows(space, store, ordering)) as pieces:
        for rows in pieces:
            sink.put(rows)
            space.say(direction, sink.edges, store.edges)
    sink.finish()


@contextmanager
def compiled_ahead(options: ConvertOptions) -> Iterator[None]:
    """Let a second process compile kernels of a conversion to rows, from the first on that is missing within."""
    expect("convert")
    offer(kernel_job if options.workers > 1 and options.layout == "rows" else None, options.host_memory)
    try:
        yield
    finally:
        end()


def kernel_job() -> dict[str, Any]:
    """The job of nearly every conversion, with ids of 32 bits."""
    from penstock.storage.encoding import bitpack, codec

    keys, numbers, ids = np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros(1, np.uint32)
    calls: list[tuple[Any, ...]] = [  # those that are needed last come first, but for those of weights
        (bitpack.pack, ids, ids, True),
        (codec._differences, keys, keys),
        (radix.split_sources, keys, 0, 0, ids),
        (radix.split_keys, keys, 0, ids, ids),
        (radix.move_digit, keys, ids, (keys[0], keys[0]), numbers, keys, ids),
        (radix.count_digits, keys, keys, keys, np.zeros((1, 1), np.int64)),
        (copy_keys, keys, numbers, numbers, keys),
        (radix.sort_ties, keys, ids),
        (copy_weights, keys, numbers, numbers, numbers, ids),
    ]
    return listed_job(calls)
