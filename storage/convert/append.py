"""Edges are added to a list that is on disk: a new part beside the old files, and a new manifest that names both.

A list with ids of its own, among which new ones may take their places, is converted once more instead, as rows are:
every edge is read, sorted and written again, within the memory and with scratch files of any conversion, and the new
file takes the old one's name when it is whole. Options are those that the graph was made with. Vertices keep the ids of
the input; where ids were numbered, they are numbered anew.

No frame of the old files is written again but the last of every array, where it is not full: its items begin the new
part. Spans, degrees and chunk tables, which take a hundredth of the edges, are in the manifest and are written anew. An
old manifest that holds edges itself gets a second name, a hard link, and the new one then takes its first name by
renaming: until that moment the old graph is there, and from then on the new one. Concurrent appends exclude each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.graph_queries import names_of
from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert, read_twice
from penstock.storage.convert.convert_list import write_edges
from penstock.storage.convert.list_writer import KEYS, WEIGHTS, EndCounts, ListBase
from penstock.storage.convert.renumber.input_ids import NeedsTable
from penstock.storage.convert.sort.options import SMALLEST_MEMORY, ConvertOptions, ConvertReport
from penstock.storage.convert.sort.run import MAX_VERTICES
from penstock.storage.convert.sort.workspace import Progress, Workspace, ignore
from penstock.storage.encoding.edge_keys import sources_of_keys, targets_of_keys
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format import stripe
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.file_set import AppendedTo, FileSet, kept_to_itself
from penstock.storage.format.frames import Frames, OpenedGraph, StringIdFrames, open_frames
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
from penstock.storage.ingest.core.edges import EdgeBatch, local_names, places_of
from penstock.storage.ingest.core.source import Source
from penstock.storage.tables.edge_pieces import EdgePieces, ListPieces

KEPT = ("symmetrize", "dedupe", "drop_self_loops", "bipartite", "order")
"""Options that are as they were; the others follow from the graph itself."""
ID_BLOCK = 1 << 16
"""Vertices whose ids are given at once."""


class GrownGraph:
    """The edges of a graph, then those of another source, in ids of the input. See `core.source.Source`."""

    undirected = False
    """What the options say of both."""

    def __init__(self, graph: Graph, more: Source) -> None:
        self.name = f"{graph.path} and {more.name}"
        self._graph, self._more = graph, more
        self._old_bytes = int(graph.out.chunk_bytes(graph.weight_dtype is not None).sum())
        self._done = 0
        self.ids = names_of(graph)
        self.named = isinstance(graph.original, StringIdFrames)
        self.known_vertices: int | None = None if graph.original is not None else more.known_vertices

    @property
    def total_bytes(self) -> int | None:
        """Bytes of the graph's edges and of the other source."""
        return None if self._more.total_bytes is None else self._old_bytes + self._more.total_bytes

    @property
    def bytes_done(self) -> int:
        """How many of these were read."""
        return self._done + self._more.bytes_done

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the graph's edges, each once, the vertices without any, and the other edges. Raises as its parts."""
        graph = self._graph
        rows = graph.layout == "rows"
        pieces = EdgePieces(graph.out, once=not graph.directed) if rows else ListPieces(graph.out, both=False)
        for number in range(pieces.count):
            yield self._batch(*pieces.read(number))
            self._done = self._old_bytes * (number + 1) // pieces.count
        if self._graph.left is None:  # vertices of two sides have edges, or were in no input
            for first in range(0, self._graph.vertices, ID_BLOCK):
                yield self._vertices(np.arange(first, min(first + ID_BLOCK, self._graph.vertices)))
        for batch in self._more.batches():
            if (batch.weights is None) != (self._graph.weight_dtype is None) and len(batch):
                raise InputError(self._other_weights(batch))
            yield batch

    def _batch(self, sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None) -> EdgeBatch:
        """Edges between internal ids, in ids of the input."""
        if self.ids is None:
            return EdgeBatch(sources, targets, weights)
        if not isinstance(self.ids, StringArray):
            return EdgeBatch(self.ids[sources], self.ids[targets], weights)
        both = self.ids.taken(np.stack([sources, targets], 1).reshape(-1))
        places = places_of(both.lengths.astype(np.int32))
        names, numbers = local_names(both.text, places, self._graph.left is not None)
        return EdgeBatch(numbers[:, 0].copy(), numbers[:, 1].copy(), weights, names=names)

    def _vertices(self, vertices: NDArray[np.int64]) -> EdgeBatch:
        """Vertices, which may have no edge."""
        none = np.empty(0, np.uint32)
        if isinstance(self.ids, StringArray):
            return EdgeBatch(none, none, None, names=self._batch(vertices, vertices, None).names)
        ids = vertices if self.ids is None else self.ids[vertices]
        return EdgeBatch(none, none, None, lone=ids.astype(np.uint64))

    def _other_weights(self, batch: EdgeBatch) -> str:
        if batch.weights is None:
            return f"{self._graph.path} has weights, and {self._more.name} has none; --weights or --columns takes them"
        return f"{self._more.name} has weights, and {self._graph.path} has none; --no-weights leaves them out"


def append_rows(
    source: Source, graph: Graph, target: Path, options: ConvertOptions, watch: Progress, *, table: bool = False
) -> ConvertReport:
    """Write the graph with the edges of the source in its place. Raises as `convert`; before that it is as it was.

    options: memory, threads, scratch and folders of stripes; all others are the graph's own. table: as for `append`.
    """
    made = graph.provenance.get("options")
    told = made if isinstance(made, dict) else {}
    if graph.properties or told.get("vertices_file"):
        raise InputError(
            f"{target} has exactly the vertices of {told.get('vertices_file', 'a table')}; convert all inputs together"
        )
    if graph.edge_properties:
        listed = ", ".join(graph.edge_properties)
        raise InputError(f"{target} keeps {listed} beside its edges; convert all inputs together (--edge-properties)")
    if source.undirected and graph.directed:
        raise InputError(f"{source.name} says that its edges are undirected, and those of {target} are directed")
    strings = isinstance(graph.original, StringIdFrames)
    if strings != bool(getattr(source, "named", False)):
        kinds = ("strings", "numbers") if strings else ("numbers", "strings")
        raise InputError(f"the ids of {target} are {kinds[0]}, and those of {source.name} are {kinds[1]}")
    kept = {name: told[name] for name in KEPT if name in told}
    both = GrownGraph(graph, source)
    by_table = table or (isinstance(both.ids, np.ndarray) and int(both.ids.max(initial=0)) >= MAX_VERTICES)
    grown = ConvertOptions(
        layout="list" if graph.layout == "list" else "rows",
        direction="both" if graph.directed and graph.into is not None else "out",
        undirected=not graph.directed and not kept.get("symmetrize"),
        renumber=False if told.get("renumber") is False else (by_table and not kept.get("bipartite")) or None,
        windows=len(graph.out.windows) or None,
        encoding="packed" if graph.layout == "list" else graph.out.encoding,
        host_memory=_room(both, options.host_memory),
        scratch=options.scratch,
        threads=options.threads,
        stripes=options.stripes,
        force=True,
        **kept,
    )
    return convert(both, target, grown, watch)


def _room(graph: GrownGraph, host_memory: int) -> int:
    """What a conversion may take beside the ids of the graph. Raises BudgetError where that is too little."""
    held = 0 if graph.ids is None else graph.ids.nbytes
    if host_memory < held + SMALLEST_MEMORY:
        why = f"the ids of the graph take {format_bytes(held)}, and converting it once more at least "
        why += format_bytes(SMALLEST_MEMORY)
        raise too_small("--host-memory", host_memory, why, held + SMALLEST_MEMORY)
    return host_memory - held


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
            files = FileSet(target, folders, space.share.encoders, version=LIST_VERSION, old=old)
            counts = EndCounts(space.share.counting_bytes, both=not header.directed)
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
