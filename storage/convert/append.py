"""Edges are added to a list that is on disk: a new part beside the old files, and a new manifest that names both.

A list with ids of its own, among which new ones may take their places, is converted once more instead, as rows are
(append_rows.py).

No frame of the old files is written again but the last of every array, where it is not full: its items begin the new
part. Spans, degrees and chunk tables, which take a hundredth of the edges, are in the manifest and are written anew. An
old manifest that holds edges itself gets a second name, a hard link, and the new one then takes its first name by
renaming: until that moment the old graph is there, and from then on the new one. Concurrent appends exclude each other.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.convert.append_rows import append_rows
from penstock.storage.convert.convert import read_twice
from penstock.storage.convert.convert_list import COUNTING_SHARE, encoders, write_edges
from penstock.storage.convert.list_writer import KEYS, WEIGHTS, EndCounts, ListBase
from penstock.storage.convert.renumber.input_ids import NeedsTable
from penstock.storage.convert.sort.options import ConvertOptions, ConvertReport
from penstock.storage.convert.sort.workspace import Progress, Workspace, ignore
from penstock.storage.encoding.edge_keys import sources_of_keys, targets_of_keys
from penstock.storage.format import stripe
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.file_set import AppendedTo, FileSet, kept_to_itself
from penstock.storage.format.frames import Frames, OpenedGraph, open_frames
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
    Header,
    ShardEntry,
)
from penstock.storage.ingest.core.source import Source


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
    """Add the edges of a source to a list.

    Edges are taken as the graph took its first ones: undirected, or without self-loops, where those were so. New ids
    make the graph larger.

    Parameters
    ----------
    source : Source
        The edges, with weights if the graph has any.
    graph : Path
        The graph file; of a striped graph the manifest.
    stripes : tuple of Path
        Folders in which to look for its shards first.
    host_memory, scratch, threads, progress
        As for `convert`.
    table : bool
        Whether a table says which ids are vertices, from the beginning, as for ids that no bitmap holds.

    Returns
    -------
    ConvertReport
        Of the whole graph; ``input_bytes`` and ``seconds`` are those of adding.

    Raises
    ------
    InputError
        The graph is a copy whose shards may be another graph's, or the edges do not suit it; it is as it was.
    DamagedError
        The graph is damaged.
    RunError
        The disk is full or failed; the graph is as it was.
    UnsyncedError
        The new graph is in its place, but its folder could not be synced.
    """
    target = graph.resolve() if graph.is_symlink() else graph
    with kept_to_itself(target):
        opened = open_frames(target, stripes)
        header = opened.header
        stripe.check_own(target, header, [shard.path for shard in opened.open_files[1:]])
        own_ids = header.left is not None or {ORIGINAL_ID, NAME_ENDS} & opened.frames.keys()
        if table or own_ids or header.layout == "rows":
            kept = Graph.open(target, stripes=stripes)
            places = dict.fromkeys(shard.path.absolute().parent for shard in opened.open_files[1:])
            same = ConvertOptions(host_memory=host_memory, scratch=scratch, threads=threads, stripes=tuple(places))
            return append_rows(source, kept, target, same, progress, table=table)
        _check(opened, target, source)
        made = header.provenance.get("options")
        options = ConvertOptions(
            layout="list",
            undirected=not header.directed,
            drop_self_loops=isinstance(made, dict) and bool(made.get("drop_self_loops")),
            renumber=False if isinstance(made, dict) and made.get("renumber") is False else None,
            host_memory=host_memory,
            scratch=scratch,
            threads=threads,
            force=True,
        )
        with Workspace(source, target, options, progress) as space:
            old, folders = _files_of(opened, target)
            files = FileSet(target, folders, encoders(space), version=LIST_VERSION, old=old)
            counts = EndCounts(host_memory // COUNTING_SHARE, both=not header.directed)
            _count_old(counts, opened)
            return write_edges(space, files, counts, _base(opened, old))


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


def _check(opened: OpenedGraph, graph: Path, source: Source) -> None:
    header = opened.header
    if getattr(source, "named", False):
        raise InputError(f"{source.name} has ids that are strings, and those of {graph} are numbers")
    if source.undirected and header.directed:
        raise InputError(f"{source.name} says that its edges are undirected, and those of {graph} are directed")


def _files_of(opened: OpenedGraph, graph: Path) -> tuple[AppendedTo, list[Path]]:
    """The files that hold edges already, and the folders of the new ones."""
    header, manifest, shards = opened.header, opened.open_files[0], opened.open_files[1:]
    folder = graph.absolute().parent
    if shards:
        folders = [shard.path.absolute().parent for shard in shards[: header.parts[0].shards]]
        entries = tuple(_kept(graph, header, *pair) for pair in zip(header.shards, shards, strict=True))
        return AppendedTo(header.graph_id, entries, shards, None), folders
    name = stripe.shard_name(graph, 0, os.urandom(4).hex())
    entry = ShardEntry(name, stripe.recorded_folder(graph, folder))
    return AppendedTo(header.graph_id, (entry,), (manifest,), folder / name), [folder]


def _kept(graph: Path, header: Header, entry: ShardEntry, shard: OpenFile) -> ShardEntry:
    """A shard as the new manifest records it: one that stayed behind when the manifest was moved, by its own place."""
    stayed = header.place is not None and shard.path == stripe.recorded_place(Path(header.place.path), entry)
    if not stayed or shard.path == stripe.recorded_place(graph, entry):
        return entry
    return ShardEntry(entry.name, str(shard.path.parent))


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
        tables={path: _table(frames)[:full] for path, frames in arrays.items()},
        spans=spans[: full * (CHUNK_EDGES // LIST_BLOCK)],
        self_loops=opened.header.self_loops - loops,
        keys=rest,
        weights=None if weights is None else _behind(weights, full),
    )


def _behind(frames: Frames, full: int) -> NDArray[Any]:
    """The items of the last chunk, where it is not full."""
    return frames.part(full * CHUNK_EDGES, frames.spec.items)


def _table(frames: Frames) -> NDArray[np.uint64]:
    """The chunk table again."""
    columns = [frames.lengths, frames.checksums] + ([] if frames.payload_words is None else [frames.payload_words])
    return np.stack([column.astype(np.uint64) for column in columns], axis=1)


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
