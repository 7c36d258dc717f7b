"""Edges are added to sorted rows, and removed from them, beside the file that has them: the story of a small change.

A changed edge gets a place among the stored ones (`storage/format/splice.py`), for which only the chunks of its row are
read; windows have their own. The new manifest has degrees and ids anew, the chunk tables as they were, and what was
added and removed in all since the edges were written; these stay where they are. What is large, or moves vertices,
takes a conversion instead (`append.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.graph_queries import names_of
from penstock.storage.base.threads import PerThread, pooled_map
from penstock.storage.convert.sort.options import ConvertReport
from penstock.storage.encoding.codec import Coding, Decoder
from penstock.storage.encoding.edge_keys import edge_keys, sources_of_keys, targets_of_keys
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format import stripe
from penstock.storage.format.adjacency_writer import vertex_array
from penstock.storage.format.file_set import AppendedTo, FileSet
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.frames import Frames, OpenedGraph, striped
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.index import Index
from penstock.storage.format.schema import (
    ADDED_AT,
    ADDED_IDS,
    ADDED_TURN,
    ADDED_WEIGHTS,
    CHANGES,
    CHUNK_VERTICES,
    DEGREES,
    FORMAT_VERSION,
    LIST_VERTICES,
    REMOVED_AT,
    WITHOUT_EDGES,
    Header,
    count_dtype,
    values_encoding,
)
from penstock.storage.format.splice import NO_TURNS, NONE, Splice
from penstock.storage.format.writer import IdWriter
from penstock.storage.ingest.core.source import Source


@dataclass(frozen=True, slots=True)
class RowEntries:
    """Entries of an adjacency: the key of each, row << 32 | neighbor, and its weight (None without)."""

    keys: NDArray[np.uint64]
    weights: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each."""
        return sources_of_keys(self.keys).astype(np.int64)

    @property
    def neighbors(self) -> NDArray[np.uint32]:
        """The neighbor of each."""
        return targets_of_keys(self.keys)

    def order(self) -> NDArray[np.int64]:
        """Return what sorts them by row, then neighbor, then weight; equal ones stay in order."""
        return np.argsort(self.keys, kind="stable") if self.weights is None else np.lexsort((self.weights, self.keys))

    def sorted(self) -> RowEntries:
        """The same in order."""
        return self.taken(self.order())

    def taken(self, which: NDArray[Any]) -> RowEntries:
        """Some of them."""
        return RowEntries(self.keys[which], None if self.weights is None else self.weights[which])

    def joined(self, other: RowEntries) -> RowEntries:
        """These, then others."""
        weights = None if self.weights is None else np.concatenate([self.weights, other.weights])
        return RowEntries(np.concatenate([self.keys, other.keys]), weights)

    @property
    def reversed(self) -> RowEntries:
        """With ends exchanged."""
        return RowEntries(edge_keys(targets_of_keys(self.keys), sources_of_keys(self.keys)), self.weights)

    @property
    def mirrored(self) -> RowEntries:
        """Undirected edges as entries of the rows of both their ends, self-loops once."""
        return self.joined(self.reversed.taken(self.rows != self.neighbors))


class SplicedRows:
    """An adjacency in a file that is being changed: its splice so far, and how many edges rows win or lose.

    window: the vertices, first and past the last, to which its edges lead.
    """

    def __init__(self, rows: Adjacency, directed: bool, window: tuple[int, int], threads: int | None) -> None:
        assert rows.neighbors is not None, "the graph is in a file"
        self._rows, self._threads, self._frames = rows, threads, rows.neighbors
        self._directed, self._window = directed, window
        self.index: Index = rows.index(threads)
        nothing = np.empty(0, rows.neighbor_dtype)
        weights = None if rows.weight_dtype is None else np.empty(0, rows.weight_dtype)
        self.splice = rows.splice or Splice(self._frames.spec.items, NONE, nothing, weights, NONE, NO_TURNS)
        self._changed, self._by = NONE, 0

    def entries(self, edges: RowEntries) -> RowEntries:
        """Edges of the graph as sorted entries of these rows."""
        backward = self._rows.direction.startswith("in")
        found = edges.reversed if backward else edges if self._directed else edges.mirrored
        low, high = self._window
        return found.taken((found.neighbors >= low) & (found.neighbors < high)).sorted()

    def added(self) -> RowEntries:
        """What was added so far."""
        rows = self.index.rows_of(self.splice.places)
        return RowEntries(edge_keys(rows, self.splice.neighbors), self.splice.weights)

    def locate(self, wanted: RowEntries) -> NDArray[np.int64]:
        """Find sorted entries among the stored edges, whose chunks are read. Raises RunError.

        Returns for each the first stored edge that has its ends, one past the last, and the edge that it would come
        before, int64 (3, entries). Edges that were removed are stored, too.
        """
        known = np.minimum(wanted.rows, self.index.vertices)
        low = self.splice.stored_before(self.index.starts_of(known))
        ends = self.index.starts_of(np.minimum(known + 1, self.index.vertices))
        high = np.maximum(low, self.splice.stored_before(ends, last=True))
        found, size, has = np.stack([low, low, low]), self._rows.chunk_edges, low < high
        crossed = np.zeros(self._frames.spec.chunks + 1, np.int64)
        np.add.at(crossed, low[has] // size, 1)
        np.add.at(crossed, (high[has] - 1) // size + 1, -1)
        chunks, own = np.flatnonzero(np.cumsum(crossed)), PerThread(Decoder)

        def look(chunk: int) -> tuple[slice, NDArray[np.int64]]:
            here = slice(np.searchsorted(high, chunk * size, "right"), np.searchsorted(low, (chunk + 1) * size))
            items = _decoded(self._frames, chunk, own())
            begin, end = (np.clip(side[here] - chunk * size, 0, len(items)) for side in (low, high))
            first, last = (bisect(items, begin, end, wanted.neighbors[here], right=right) for right in (False, True))
            at = last
            if wanted.weights is not None and self._rows.weights is not None and (first < last).any():
                at = bisect(_decoded(self._rows.weights, chunk, own()), first, last, wanted.weights[here], right=True)
            return here, np.stack([first, last, at]) - begin

        for here, moved in pooled_map(look, chunks.tolist(), self._threads, "places"):
            found[:, here] += moved
        return found

    def add(self, more: RowEntries, turn: int) -> None:
        """Add sorted entries, those of change number `turn`. Raises RunError."""
        before, (_, _, at) = self.added(), self.locate(more)
        both = before.joined(more)
        order = both.order()
        both, turns = both.taken(order), np.full(len(more), turn, self.splice.turns.dtype)
        places = np.concatenate([self.splice.at, at])[order]
        self.splice = replace(
            self.splice,
            at=np.maximum.accumulate(places),  # where they fall, all edges between the two were removed
            neighbors=both.neighbors.astype(self._rows.neighbor_dtype),
            weights=both.weights,
            turns=np.concatenate([self.splice.turns, turns])[order],
        )
        self._changed, self._by = more.rows, 1

    def have(self, wanted: RowEntries) -> NDArray[np.int64]:
        """Return how many edges have the ends of each of some sorted entries. Raises RunError."""
        removed, (first, last, _), added = self.splice.removed, self.locate(wanted), self.added().keys
        kept = last - first - (np.searchsorted(removed, last) - np.searchsorted(removed, first))
        return np.asarray(kept + np.searchsorted(added, wanted.keys, "right") - np.searchsorted(added, wanted.keys))

    def remove(self, ends: RowEntries) -> None:
        """Remove all edges with the ends of some sorted entries. Raises RunError."""
        (first, last, _), added, splice = self.locate(ends), self.added(), self.splice
        counts = last - first
        gone = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        fresh, stay = ~np.isin(gone, splice.removed), ~np.isin(added.keys, ends.keys)
        self._changed, self._by = np.sort(np.concatenate([np.repeat(ends.rows, counts)[fresh], added.rows[~stay]])), -1
        self.splice = replace(
            splice,
            at=splice.at[stay],
            neighbors=splice.neighbors[stay],
            weights=None if splice.weights is None else splice.weights[stay],
            turns=splice.turns[stay],
            removed=np.union1d(splice.removed, gone),
        )

    def degrees(self, vertices: int) -> Iterator[NDArray[np.int64]]:
        """Yield the degrees of so many vertices."""
        for first in range(0, vertices, CHUNK_VERTICES):
            last = min(first + CHUNK_VERTICES, vertices)
            found = np.zeros(last - first, np.int64)
            known = min(last, self.index.vertices)
            if first < known:
                self.index.add_lengths(first, found[: known - first])
            here = slice(*np.searchsorted(self._changed, [first, last]))
            np.add.at(found, self._changed[here] - first, self._by)
            yield found

    def write(self, files: FileSet, vertices: int) -> None:
        """Write the degrees of so many vertices, and what was added and removed, where anything was."""
        name, splice = self._rows.direction, self.splice
        kind = count_dtype(max((int(part.max()) for part in self.degrees(vertices)), default=0))
        arrays: dict[str, tuple[Iterator[NDArray[Any]] | Sequence[NDArray[Any]], np.dtype[Any], str]] = {
            DEGREES: (self.degrees(vertices), kind, values_encoding(kind))
        }
        added = {ADDED_AT: splice.at, ADDED_IDS: splice.neighbors, ADDED_TURN: splice.turns}
        for part, items in (added | {ADDED_WEIGHTS: splice.weights, REMOVED_AT: splice.removed}).items():
            if items is not None and len(items):
                is_place = part in (ADDED_AT, REMOVED_AT)
                stored = items.astype(np.uint64) if is_place else items
                arrays[part] = [stored], stored.dtype, "delta" if is_place else "plain"
        for part, (pieces, dtype, encoding) in arrays.items():
            array = vertex_array(files, f"{name}/{part}", dtype, encoding)
            for piece in pieces:
                array.append(piece.astype(dtype, copy=False))
            array.finish()


def bisect(
    items: NDArray[Any], low: NDArray[np.int64], high: NDArray[np.int64], keys: NDArray[Any], *, right: bool
) -> NDArray[np.int64]:
    """Return where each key belongs in its range low..high-1 of ``items``, which rises there; right: behind equals."""
    low, high = low.copy(), high.copy()
    while (left := np.flatnonzero(low < high)).size:
        middle = (low[left] + high[left]) >> 1
        below = items[middle] <= keys[left] if right else items[middle] < keys[left]
        low[left] = np.where(below, middle + 1, low[left])
        high[left] = np.where(below, high[left], middle)
    return low


def _decoded(frames: Frames, chunk: int, decoder: Decoder) -> NDArray[Any]:
    items = np.empty(frames.spec.chunk_length(chunk), frames.kind)
    frames.decode(chunk, frames.read(chunk), decoder, items)
    return items


def can_splice(opened: OpenedGraph) -> bool:
    """Whether edges of a graph file may stay where they are: plain rows, in files that are its own, and found again."""
    header, frames = opened.header, opened.frames
    if header.layout == "list" or header.edge_properties or header.vertices >= LIST_VERTICES:
        return False
    manifest, *shards = (file.path for file in opened.open_files)
    own = header.place is None or stripe.is_own(manifest, header)
    places = zip(header.shards, shards, strict=True)
    found = all(shard in stripe.candidates(manifest, header, entry, ()) for entry, shard in places)
    return own and found and all(one.is_sized for one in frames.values())


class Change:
    """A graph file that is being changed, and its adjacencies, windows too, by their names.

    source: of what is added or removed. began: when its reading did.
    """

    def __init__(self, opened: OpenedGraph, graph: Graph, source: Source, threads: int | None, began: float) -> None:
        self._opened, self._graph, self._source = opened, graph, source
        self._began, self._read = began, time.perf_counter()
        self._before = graph.provenance.get(CHANGES, [])
        self.turn = len(self._before)
        self.rows: dict[str, SplicedRows] = {}
        for adjacency in graph.adjacencies:
            size = adjacency.window_vertices
            windows = [(number * size, (number + 1) * size) for number in range(len(adjacency.windows))]
            for rows, window in zip((adjacency, *adjacency.windows), [(0, LIST_VERTICES), *windows], strict=True):
                self.rows[rows.direction] = SplicedRows(rows, graph.directed, window, threads)

    def write(self, header: Header, new: NDArray[Any] | None, removed: int, threads: int) -> ConvertReport:
        """Write a new manifest over the stored edges; on return it is in the graph's place. Raises as `FileSet`.

        header: the old one, with what it says now of vertices, input, weights and ids. new: the ids of vertices behind
        the graph's own, in the dtype of all; None: ids are vertices. removed: how many edges are.
        """
        graph, rows, began = self._graph, self.rows, time.perf_counter()
        told = header.provenance | {
            CHANGES: [*self._before, {"content": fingerprint(graph)["content"], "removed": removed}]
        }
        if not removed:
            last = told.get("appended")
            times = last.get("times", 0) if isinstance(last, dict) else 0
            told["appended"] = {"times": times + 1, "last": self._source.name}
        if "in" in rows or not header.directed:
            parts = zip(*(rows[name].degrees(header.vertices) for name in ("out", "in") if name in rows), strict=True)
            told[WITHOUT_EDGES] = sum(int(np.count_nonzero(np.sum(some, axis=0) == 0)) for some in parts)
        old = AppendedTo.of(self._opened)
        files = FileSet(self._opened.open_files[0].path, (), threads, version=FORMAT_VERSION, old=old)
        try:
            files.open(force=True)
            for spec in header.arrays:
                if striped(spec):
                    table = self._opened.frames[spec.path].table
                    files.add(spec.path, Coding(spec.encoding, spec.kind, spec.chunk_items, 0), spec.items, table)
            for one in rows.values():
                one.write(files, header.vertices)
            writer = IdWriter(files)
            if new is not None:
                ids = names_of(graph)
                ids = np.arange(graph.vertices, dtype=new.dtype) if ids is None else ids
                writer.append(ids if isinstance(ids, StringArray) else ids.astype(new.dtype, copy=False))
                writer.append(new)
            writer.finish(header.vertices)
            header = replace(
                header,
                edges=rows["out"].splice.edges,
                shards=files.shard_entries,
                arrays=tuple(files.specs),
                provenance=told,
            )
            header.check()
            files.commit(header)
        except BaseException as error:
            files.abandon(error)
            raise
        weights = rows["out"].splice.weights
        return ConvertReport(
            output=files.path,
            vertices=header.vertices,
            edges=header.edges,
            input_edges=header.input_edges,
            directed=header.directed,
            weight_dtype=None if weights is None else weights.dtype.name,
            input_bytes=self._source.bytes_done,
            output_bytes=files.file_bytes,
            scratch_bytes=0,
            without_edges=told.get(WITHOUT_EDGES),
            seconds={
                "read": self._read - self._began,
                "places": began - self._read,
                "write": time.perf_counter() - began,
            },
        )
