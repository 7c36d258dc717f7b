"""Edges are added to a graph that is on disk: new files beside the old ones, and a new manifest that names both.

Rows keep their files, and the new manifest says what is among their edges now (`added_edges.py`). Where that does not
do it, a graph is converted once more instead (`convert_again.py`): where more than a `SHARE` of the edges was added
since the last time, or vertices must move; a list, where its ids are its own. `compact` does so when it is asked to.

A list gets a new part. No frame of the old files is written again but the last of every array, where it is not full:
its items begin the new part. Spans, degrees and chunk tables, which take a hundredth of the edges, are in the manifest
and are written anew.

An old manifest that holds edges itself gets a second name, a hard link, and the new one then takes its first name by
renaming: until that moment the old graph is there, and from then on the new one. Concurrent appends exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.convert.added_edges import append_beside
from penstock.storage.convert.convert import read_twice
from penstock.storage.convert.convert_again import NoEdges, append_rows, check_suits, told_of
from penstock.storage.convert.convert_list import write_edges
from penstock.storage.convert.list_writer import KEYS, WEIGHTS, EndCounts, ListBase
from penstock.storage.convert.renumber.input_ids import NeedsTable
from penstock.storage.convert.sort.options import ConvertOptions, ConvertReport
from penstock.storage.convert.sort.workspace import Progress, Workspace, ignore
from penstock.storage.encoding.edge_keys import sources_of_keys, targets_of_keys
from penstock.storage.format import stripe
from penstock.storage.format.file_set import AppendedTo, FileSet, opened_alone
from penstock.storage.format.frames import Frames, OpenedGraph, StringIdFrames
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import (
    CHUNK_EDGES,
    DEGREES,
    DIRECTIONS,
    LIST_BLOCK,
    LIST_VERSION,
    NAME_ENDS,
    ORIGINAL_ID,
    SPAN_COLUMNS,
    SPANS,
)
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions, Source


def append(
    source: Source,
    graph: Path,
    *,
    stripes: tuple[Path, ...] = (),
    host_memory: int = 1 << 30,
    scratch: Path | None = None,
    threads: int | None = None,
    progress: Progress = ignore,
    table: bool = False,
) -> ConvertReport:
    """Add the edges of a source to a graph file; see `convert_files.append`.

    stripes: folders in which to look for its shards first. host_memory, scratch, threads, progress: as for `convert`.
    table: whether a table says which ids are vertices, from the beginning, as for ids that no bitmap holds. The report
    is of the whole graph; ``input_bytes`` and ``seconds`` are those of adding. Raises InputError where the edges do not
    suit the graph, or its shards may be another's, DamagedError, and RunError; the graph is as it was. Raises
    UnsyncedError where the new one is in its place, and its folder could not be synced.
    """
    with opened_alone(graph, stripes) as opened:
        header, kept, options = opened.header, Graph.of_opened(opened), _same(opened, host_memory, scratch, threads)
        check_suits(source, kept)
        own_ids = header.left is not None or {ORIGINAL_ID, NAME_ENDS} & opened.frames.keys()
        if table or own_ids or header.layout == "rows":
            read: list[EdgeBatch] = []
            batches = source.batches()
            beside = None if table else append_beside(source, batches, read, kept, opened, options, progress)
            both = chain((read.pop(0) for _ in range(len(read))), batches)
            return beside or append_rows(source, both, kept, options, progress, table=table)
        made = told_of(kept)
        listed = replace(
            options,
            layout="list",
            undirected=not header.directed,
            drop_self_loops=bool(made.get("drop_self_loops")),
            renumber=False if made.get("renumber") is False else None,
            stripes=(),
        )
        target = opened.open_files[0].path
        with Workspace(source, target, listed, progress) as space:
            old, folders = AppendedTo.of(opened), _folders(opened, target)
            files = FileSet(target, folders, space.share.encoders, version=LIST_VERSION, old=old)
            counts = EndCounts(space.share.counting_bytes, both=not header.directed)
            _count_old(counts, opened)
            return write_edges(space, files, counts, _base(opened, old))


def _same(opened: OpenedGraph, host_memory: int, scratch: Path | None, threads: int | None) -> ConvertOptions:
    """How a graph is written; its shards are in the folders that they were in. Raises InputError for a copy."""
    header, (manifest, *shards) = opened.header, opened.open_files
    stripe.check_own(manifest.path, header, [shard.path for shard in shards])
    spliced = header.is_spliced and len(shards) == 1  # what was the graph file itself
    places = () if spliced else tuple(dict.fromkeys(shard.path.absolute().parent for shard in shards))
    return ConvertOptions(host_memory=host_memory, scratch=scratch, threads=threads, stripes=places, force=True)


def compact(
    graph: Path,
    *,
    stripes: tuple[Path, ...] = (),
    host_memory: int = 1 << 30,
    scratch: Path | None = None,
    threads: int | None = None,
    progress: Progress = ignore,
) -> ConvertReport | None:
    """Write the edges of a graph file in one again, with what was added and removed beside them.

    All vertices stay, also those without edges; new ids are put in order. Parameters and what is raised are those of
    `append`. Returns None where nothing was added or removed: the file is as it was.
    """
    with opened_alone(graph, stripes) as opened:
        if not opened.header.is_spliced:
            return None
        same = _same(opened, host_memory, scratch, threads)
        return append_rows(NoEdges(), (), Graph.of_opened(opened), same, progress)


def read_as(path: Path, stripes: tuple[Path, ...], reading: IngestOptions) -> IngestOptions:
    """Return how to read what is added to a graph file, or removed: with weights and names if the graph has them."""
    graph = Graph.open(path, stripes=stripes)
    weighted = graph.weight_dtype is not None and len(reading.columns or (0, 1, 2)) == 3
    return replace(
        reading,
        weights=True if weighted and reading.weights is None else reading.weights,
        string_ids=isinstance(graph.original, StringIdFrames) or reading.string_ids,
        sides=graph.left is not None,
    )


def append_opened(
    opened: Callable[[], Source], graph: Path, note: Callable[[str], None] = lambda text: None, **how: Any
) -> ConvertReport:
    """Add the edges of the source that ``opened`` gives, as `append` does; how: its other arguments.

    Where a late id needs a table, and the source is files, these are opened and read again, and ``note`` says so.
    """
    try:
        return read_twice(opened, lambda source, table: append(source, graph, table=table, **how), note)[0]
    except NeedsTable:
        raise InputError(
            f"late ids of what is added to {graph} need a table, for which it is read again, and a pipe is read once; "
            "write it to a file, and append that"
        ) from None


def _folders(opened: OpenedGraph, graph: Path) -> list[Path]:
    """The folders of the new files of a list."""
    shards = opened.open_files[1:]
    if not shards:
        return [graph.absolute().parent]
    return [shard.path.absolute().parent for shard in shards[: opened.header.parts[0].shards]]


def _base(opened: OpenedGraph, old: AppendedTo) -> ListBase:
    """What stays of a graph, and what is behind its full chunks. Raises RunError, InputError."""
    keys, weights = opened.frames[KEYS], opened.frames.get(WEIGHTS)
    full = opened.header.edges // CHUNK_EDGES
    if keys.spec.chunk_items != CHUNK_EDGES:
        raise InputError(f"{keys.files[0]} has chunks of another size; convert all inputs together")
    arrays = {KEYS: keys} | ({} if weights is None else {WEIGHTS: weights})
    rest = _behind(keys, full)
    spans: NDArray[Any] = opened.frames[f"out/{SPANS}"].whole().reshape(-1, SPAN_COLUMNS)
    loops = int(np.count_nonzero(sources_of_keys(rest) == targets_of_keys(rest)))
    return ListBase(
        header=opened.header,
        old=old,
        tables={path: frames.table[:full] for path, frames in arrays.items()},
        spans=spans[: full * (CHUNK_EDGES // LIST_BLOCK)],
        self_loops=opened.header.self_loops - loops,
        keys=rest,
        weights=None if weights is None else _behind(weights, full),
    )


def _behind(frames: Frames, full: int) -> NDArray[Any]:
    """The items of the last chunk, where it is not full."""
    return frames.part(full * CHUNK_EDGES, frames.spec.items)


def _count_old(counts: EndCounts, opened: OpenedGraph) -> None:
    """Go on from the degrees that the graph has; where it has none, or memory is short, count none."""
    header = opened.header
    found = [opened.frames.get(f"{direction}/{DEGREES}") for direction in DIRECTIONS]
    known = [frames for frames in found if frames is not None]
    if not known:
        counts.drop()
        return
    counts.make_room(header.vertices, header.edges)
    for number, frames in enumerate(known):
        counts.add(number, frames.load())
