"""Edges are added to sorted rows, and removed from them, beside the file that has them: the story of a small change.

A changed edge gets a place among the stored ones (`storage/format/splice.py`), for which only the chunks of its row are
read. The new manifest has degrees and ids anew, the chunk tables as they were, and what was added and removed in all
since the edges were written; these stay where they are. What is large, or moves vertices, takes a conversion instead
(`append.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.threads import PerThread, pooled_map
from penstock.storage.encoding.codec import Coding, Decoder
from penstock.storage.format import stripe
from penstock.storage.format.adjacency_writer import vertex_array
from penstock.storage.format.file_set import AppendedTo, FileSet
from penstock.storage.format.frames import Frames, OpenedGraph, striped
from penstock.storage.format.graph import Adjacency
from penstock.storage.format.index import Index
from penstock.storage.format.schema import (
    ADDED_AT,
    ADDED_IDS,
    ADDED_TURN,
    ADDED_WEIGHTS,
    CHUNK_VERTICES,
    DEGREES,
    FORMAT_VERSION,
    LIST_VERTICES,
    NAME_ENDS,
    REMOVED_AT,
    WITHOUT_EDGES,
    Header,
    count_dtype,
    values_encoding,
)
from penstock.storage.format.splice import NO_TURNS, NONE, Splice
from penstock.storage.format.writer import IdWriter


@dataclass(frozen=True, slots=True)
class RowEntries:
    """Entries of an adjacency by row, then neighbor, then weight: row, neighbor, weight (None without) of each."""

    rows: NDArray[np.int64]
    neighbors: NDArray[np.int64]
    weights: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.rows)

    def order(self) -> NDArray[np.int64]:
        """Return what sorts them; equal ones stay in order."""
        if self.weights is None:
            return np.argsort(pairs(self.rows, self.neighbors), kind="stable")
        return np.lexsort((self.weights, pairs(self.rows, self.neighbors)))

    def sorted(self) -> RowEntries:
        """The same in order."""
        return self.taken(self.order())

    def taken(self, which: NDArray[Any]) -> RowEntries:
        """Some of them."""
        weights = None if self.weights is None else self.weights[which]
        return RowEntries(self.rows[which], self.neighbors[which], weights)

    def joined(self, other: RowEntries) -> RowEntries:
        """These, then others."""
        weights = None if self.weights is None else np.concatenate([self.weights, other.weights])
        return RowEntries(
            np.concatenate([self.rows, other.rows]), np.concatenate([self.neighbors, other.neighbors]), weights
        )

    @property
    def reversed(self) -> RowEntries:
        """With ends exchanged."""
        return RowEntries(self.neighbors, self.rows, self.weights)

    @property
    def mirrored(self) -> RowEntries:
        """Undirected edges as entries of the rows of both their ends, self-loops once."""
        return self.joined(self.reversed.taken(self.rows != self.neighbors))


@dataclass(frozen=True, slots=True)
class Places:
    """Of sorted entries: the stored edges first..last-1 that have their ends, and the one that they would come before.

    Edges that were removed are stored, too.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    at: NDArray[np.int64]


class SplicedRows:
    """An adjacency in a file that is being changed: its splice so far, and how many edges rows win or lose."""

    def __init__(self, rows: Adjacency, threads: int | None) -> None:
        assert rows.neighbors is not None, "the graph is in a file"
        self._rows, self._threads, self._frames = rows, threads, rows.neighbors
        self.index: Index = rows.index(threads)
        nothing = np.empty(0, rows.neighbor_dtype)
        weights = None if rows.weight_dtype is None else np.empty(0, rows.weight_dtype)
        self.splice = rows.splice or Splice(self._frames.spec.items, NONE, nothing, weights, NONE, NO_TURNS)
        self._changed, self._by = NONE, NONE

    def added(self) -> RowEntries:
        """What was added so far."""
        splice = self.splice
        return RowEntries(self.index.rows_of(splice.places), splice.neighbors.astype(np.int64), splice.weights)

    def locate(self, wanted: RowEntries) -> Places:
        """Find sorted entries among the stored edges; their chunks are read. Raises RunError."""
        known = np.minimum(wanted.rows, self.index.vertices)
        low = self.splice.stored_before(self.index.starts_of(known))
        ends = self.index.starts_of(np.minimum(known + 1, self.index.vertices))
        high = np.maximum(low, self.splice.stored_before(ends, last=True))
        found, size = Places(low.copy(), low.copy(), low.copy()), self._rows.chunk_edges
        has = low < high
        crossed = np.zeros(self._frames.spec.chunks + 1, np.int64)
        np.add.at(crossed, low[has] // size, 1)
        np.add.at(crossed, (high[has] - 1) // size + 1, -1)
        chunks, own = np.flatnonzero(np.cumsum(crossed)), PerThread(Decoder)

        def look(chunk: int) -> tuple[slice, tuple[NDArray[np.int64], ...]]:
            here = slice(np.searchsorted(high, chunk * size, "right"), np.searchsorted(low, (chunk + 1) * size))
            items = _decoded(self._frames, chunk, own())
            begin, end = (np.clip(side[here] - chunk * size, 0, len(items)) for side in (low, high))
            first, last = (bisect(items, begin, end, wanted.neighbors[here], right=right) for right in (False, True))
            at = last
            if wanted.weights is not None and self._rows.weights is not None and (first < last).any():
                at = bisect(_decoded(self._rows.weights, chunk, own()), first, last, wanted.weights[here], right=True)
            return here, (first - begin, last - begin, at - begin)

        for here, moved in pooled_map(look, chunks.tolist(), self._threads, "places"):
            for side, by in zip((found.first, found.last, found.at), moved, strict=True):
                side[here] += by
        return found

    def add(self, more: RowEntries, turn: int) -> None:
        """Add entries in any order, those of change number `turn`. Raises RunError."""
        more = more.sorted()
        before, at = self.added(), self.locate(more).at
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
        self._changes(more.rows, 1)

    def have(self, wanted: RowEntries) -> NDArray[np.int64]:
        """Return how many edges have the ends of each of some sorted entries. Raises RunError."""
        removed, found, added = self.splice.removed, self.locate(wanted), self.added()
        kept = found.last - found.first
        kept -= np.searchsorted(removed, found.last) - np.searchsorted(removed, found.first)
        ends = [pairs(one.rows, one.neighbors) for one in (added, wanted)]
        return np.asarray(kept + np.searchsorted(ends[0], ends[1], "right") - np.searchsorted(ends[0], ends[1]))

    def remove(self, ends: RowEntries) -> None:
        """Remove all edges with the ends of some sorted entries. Raises RunError."""
        found, added = self.locate(ends), self.added()
        counts = found.last - found.first
        gone = np.repeat(found.first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        fresh = ~np.isin(gone, self.splice.removed)
        leaves = np.isin(pairs(added.rows, added.neighbors), pairs(ends.rows, ends.neighbors))
        self._changes(np.concatenate([np.repeat(ends.rows, counts)[fresh], added.rows[leaves]]), -1)
        splice, stay = self.splice, ~leaves
        self.splice = replace(
            splice,
            at=splice.at[stay],
            neighbors=splice.neighbors[stay],
            weights=None if splice.weights is None else splice.weights[stay],
            turns=splice.turns[stay],
            removed=np.union1d(splice.removed, gone),
        )

    def _changes(self, rows: NDArray[np.int64], by: int) -> None:
        """Note that each of these rows wins or loses an entry."""
        found, counts = np.unique(rows, return_counts=True)
        self._changed, self._by = found, by * counts

    def degrees(self, vertices: int) -> Iterator[NDArray[np.int64]]:
        """Yield the degrees of so many vertices."""
        for first in range(0, vertices, CHUNK_VERTICES):
            last = min(first + CHUNK_VERTICES, vertices)
            found = np.zeros(last - first, np.int64)
            known = min(last, self.index.vertices)
            if first < known:
                self.index.add_lengths(first, found[: known - first])
            here = slice(*np.searchsorted(self._changed, [first, last]))
            found[self._changed[here] - first] += self._by[here]
            yield found


def pairs(rows: NDArray[np.int64], neighbors: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for both ends of each entry that sorts as they do; vertices are below 2^32."""
    return rows.astype(np.uint64) << np.uint64(32) | neighbors.astype(np.uint64)


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


@dataclass(frozen=True, slots=True)
class Change:
    """What a changed graph is, beside its rows.

    vertices: how many. ids: those of the input, None where there are none. input_edges: how many edges were given, less
    those removed. weights: what is known of all. note: what the provenance says of the change. without_edges: how many
    vertices have none, where rows of one direction do not say it and it is known.
    """

    vertices: int
    ids: Any
    input_edges: int
    weights: tuple[float, float, float] | None
    note: dict[str, Any]
    without_edges: int | None = None


def can_splice(opened: OpenedGraph) -> bool:
    """Whether edges of a graph file may stay where they are: plain rows, in files that are its own, and found again."""
    header, frames = opened.header, opened.frames
    if header.layout == "list" or NAME_ENDS in frames or header.vertices >= LIST_VERTICES:
        return False
    if header.window_vertices or header.edge_properties or header.left is not None:
        return False
    manifest, *shards = (file.path for file in opened.open_files)
    own = header.place is None or stripe.is_own(manifest, header)
    places = zip(header.shards, shards, strict=True)
    found = all(shard in stripe.candidates(manifest, header, entry, ()) for entry, shard in places)
    return own and found and all(one.is_sized for one in frames.values())


def write_spliced(
    opened: OpenedGraph, old: AppendedTo, rows: dict[str, SplicedRows], change: Change, threads: int
) -> tuple[Header, int]:
    """Write a new manifest over the stored edges; on return it is in the graph's place. Raises as `FileSet`.

    Returns its header, and the bytes of all files.
    """
    header = opened.header
    files = FileSet(opened.open_files[0].path, (), threads, version=FORMAT_VERSION, old=old)
    try:
        files.open(force=True)
        for spec in header.arrays:
            if striped(spec):
                frames = opened.frames[spec.path]
                files.add(spec.path, Coding(spec.encoding, spec.kind, spec.chunk_items, 0), spec.items, frames.table)
        for name, one in rows.items():
            _write_degrees(files, f"{name}/{DEGREES}", one, change.vertices)
            _write_splice(files, name, one.splice)
        ids = IdWriter(files)
        for first in range(0, 0 if change.ids is None else change.vertices, CHUNK_VERTICES):
            ids.append(change.ids[first : first + CHUNK_VERTICES])
        ids.finish(change.vertices)
        counted = len(rows) == 2 or not header.directed
        without = _edgeless(rows, change.vertices) if counted else change.without_edges
        edgeless = {} if without is None else {WITHOUT_EDGES: without}
        kept = {name: value for name, value in header.provenance.items() if name != WITHOUT_EDGES}
        found = replace(
            header,
            vertices=change.vertices,
            edges=rows["out"].splice.edges,
            input_edges=change.input_edges,
            shards=files.shard_entries,
            arrays=tuple(files.specs),
            provenance=kept | edgeless | change.note,
            weight_range=change.weights,
        )
        found.check()
        files.commit(found)
    except BaseException as error:
        files.abandon(error)
        raise
    return found, files.file_bytes


def _write_degrees(files: FileSet, path: str, rows: SplicedRows, vertices: int) -> None:
    most = max((int(part.max()) for part in rows.degrees(vertices)), default=0)
    kind = count_dtype(most)
    array = vertex_array(files, path, kind, values_encoding(kind))
    for part in rows.degrees(vertices):
        array.append(part.astype(kind))
    array.finish()


def _write_splice(files: FileSet, name: str, splice: Splice) -> None:
    """Write what was added to an adjacency and removed, where anything was."""
    added = [(ADDED_AT, splice.at.astype(np.uint64), "delta"), (ADDED_IDS, splice.neighbors, "plain")]
    added.append((ADDED_TURN, splice.turns, "plain"))
    if splice.weights is not None:
        added.append((ADDED_WEIGHTS, splice.weights, "plain"))
    for part, items, encoding in [*added, (REMOVED_AT, splice.removed.astype(np.uint64), "delta")]:
        if len(items):
            array = vertex_array(files, f"{name}/{part}", items.dtype, encoding)
            array.append(items)
            array.finish()


def _edgeless(rows: dict[str, SplicedRows], vertices: int) -> int:
    """How many vertices have no edge."""
    parts = zip(*(one.degrees(vertices) for one in rows.values()), strict=True)
    return sum(int(np.count_nonzero(np.sum(some, axis=0) == 0)) for some in parts)
