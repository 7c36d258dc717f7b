"""Edges are added to rows that stay in their files: read, numbered, cleaned as the options say, and given their places.

`splice_edges.py` finds the places, and writes the new manifest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert_again import other_weights, told_of
from penstock.storage.convert.sort.groups import check_density
from penstock.storage.convert.sort.options import ConvertOptions, ConvertProgress, ConvertReport
from penstock.storage.convert.sort.weights import narrow
from penstock.storage.convert.sort.workspace import Progress
from penstock.storage.convert.splice_edges import Change, RowEntries, SplicedRows, can_splice, pairs, write_spliced
from penstock.storage.format import stripe
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.file_set import AppendedTo, kept_to_itself
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.frames import OpenedGraph, open_frames
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import (
    CHANGES,
    LIST_VERTICES,
    RISING,
    WITHOUT_EDGES,
    Header,
    ShardEntry,
)
from penstock.storage.ingest.core.edges import EdgeBatch, joined
from penstock.storage.ingest.core.source import Source

SHARE, LEAST = 16, 1 << 16
"""Rows are converted once more where more than one in so many edges, and more than so many, were added."""

EDGE_BYTES = 128
"""Memory that an added edge takes while its place is found."""


class ReadAgain:
    """A source of which the batches that were read are kept, and are given once more before the others."""

    def __init__(self, source: Source) -> None:
        self.name, self.undirected, self.known_vertices = source.name, source.undirected, source.known_vertices
        self._source, self._rest = source, source.batches()
        self.read: list[EdgeBatch] = []

    @property
    def total_bytes(self) -> int | None:
        """Those of the source."""
        return self._source.total_bytes

    @property
    def bytes_done(self) -> int:
        """Those of the source."""
        return self._source.bytes_done

    def holds_all(self, most: int, watch: Progress) -> bool:
        """Read on; return whether the source has at most so many edges and lone vertices, which then are in `read`."""
        held = 0
        for batch in self._rest:
            self.read.append(batch)
            held += len(batch) + (0 if batch.lone is None else len(batch.lone))
            if held > most:
                return False
            watch(ConvertProgress("read", self.bytes_done, self.total_bytes, held))
        return True

    def batches(self) -> Generator[EdgeBatch]:
        """Yield all batches, once."""
        while self.read:
            yield self.read.pop(0)
        yield from self._rest


def append_beside(
    source: ReadAgain, graph: Graph, opened: OpenedGraph, target: Path, options: ConvertOptions, watch: Progress
) -> ConvertReport | None:
    """Add the edges of a source to rows that stay in their files. Raises as `append`.

    Returns None, and nothing was written, where that does not do it: `append_rows` does then.
    """
    began = time.perf_counter()
    told, before = told_of(graph), graph.out.splice
    rule = told.get("dedupe") or ("first" if told.get("symmetrize") else None)
    if not can_splice(opened) or (rule not in (None, "first") and graph.weight_dtype is not None):
        return None
    room = max(LEAST, graph.edges // SHARE) - (0 if before is None else len(before.at))
    if not source.holds_all(min(room, options.host_memory // EDGE_BYTES), watch):
        return None
    weighted = graph.weight_dtype is not None
    for batch in source.read:
        if len(batch) and (batch.weights is None) == weighted:
            raise InputError(other_weights(graph, source.name, weighted=batch.weights is not None))
    sources, targets, values = joined(source.read, np.float64 if weighted else None)
    numbering = Numbering.of(graph, source, sources, targets)
    weights = values if values is None else narrow(values, source.name)[0].astype(graph.weight_dtype)
    if numbering is None or not (values is None or weights is None or np.array_equal(weights, values)):
        return None
    edges = RowEntries(numbering.vertices_of(sources), numbering.vertices_of(targets), weights)
    read = time.perf_counter()
    rows = {one.direction: SplicedRows(one, options.threads) for one in graph.adjacencies}
    fresh = _fresh(edges, rows["out"], told, rule, directed=graph.directed)
    turn, note = next_change(graph, source.name)
    for direction, one in rows.items():
        one.add(fresh.reversed if direction == "in" else fresh if graph.directed else fresh.mirrored, turn)
    found = time.perf_counter()
    ends = np.unique(np.concatenate([fresh.rows, fresh.neighbors]))
    lone = numbering.count - graph.vertices - int(np.count_nonzero(ends >= graph.vertices))
    change = Change(
        vertices=numbering.count,
        ids=numbering.ids(),
        input_edges=graph.input_edges + len(edges),
        weights=_joined_range(graph, fresh.weights),
        note=note | numbering.note,
        without_edges=lone if graph.without_edges == 0 else None,
    )
    return replaced(opened, target, rows, change, source, (began, read, found), options)


def replaced(
    opened: OpenedGraph,
    target: Path,
    rows: dict[str, SplicedRows],
    change: Change,
    source: Source,
    moments: tuple[float, float, float],
    options: ConvertOptions,
) -> ConvertReport:
    """Write the new manifest, and report."""
    _, read, found = moments
    weights = rows["out"].splice.weights
    header, size = write_spliced(opened, old_files(opened, target), rows, change, options.workers)
    names = ("read", "places", "write")
    ends = (read, found, time.perf_counter())
    return ConvertReport(
        output=target,
        vertices=header.vertices,
        edges=header.edges,
        input_edges=header.input_edges,
        directed=header.directed,
        weight_dtype=None if weights is None else weights.dtype.name,
        input_bytes=source.bytes_done,
        output_bytes=size,
        scratch_bytes=0,
        without_edges=header.provenance.get(WITHOUT_EDGES),
        seconds={name: end - start for name, start, end in zip(names, moments, ends, strict=True)},
    )


def next_change(graph: Graph, name: str, removed: int = 0) -> tuple[int, dict[str, Any]]:
    """The number of a change of a graph, and what its provenance says then: which content each was made of."""
    before, changes = graph.provenance.get("appended"), graph.provenance.get(CHANGES, [])
    times = before.get("times", 0) if isinstance(before, dict) else 0
    note: dict[str, Any] = {CHANGES: [*changes, {"content": fingerprint(graph)["content"], "removed": removed}]}
    return len(changes), note | ({} if removed else {"appended": {"times": times + 1, "last": name}})


def _fresh(
    edges: RowEntries, out: SplicedRows, told: dict[str, Any], rule: str | None, *, directed: bool
) -> RowEntries:
    """The edges that are added: without self-loops, or those there are already, where the options say so."""
    if told.get("drop_self_loops"):
        edges = edges.taken(edges.rows != edges.neighbors)
    if rule is None:
        return edges
    ends = pairs(edges.rows, edges.neighbors)
    if not directed:
        ends = np.minimum(ends, pairs(edges.neighbors, edges.rows))
    edges = edges.taken(np.unique(ends, return_index=True)[1])
    order = np.argsort(pairs(edges.rows, edges.neighbors))
    return edges.taken(order[out.have(edges.taken(order)) == 0])


def _joined_range(graph: Graph, weights: NDArray[Any] | None) -> tuple[float, float, float] | None:
    """Least, mean and greatest weight of a graph and others."""
    if graph.weight_range is None or weights is None or not len(weights):
        return graph.weight_range
    low, mean, high = graph.weight_range
    if not graph.edges:
        low, high = float("inf"), float("-inf")
    total = mean * graph.edges + float(weights.sum(dtype=np.float64))
    ends = min(low, float(weights.min())), max(high, float(weights.max()))
    return ends[0], total / (graph.edges + len(weights)), ends[1]


class Numbering:
    """Which vertices the ids are of a graph's input and of others, which come behind all of its own.

    stored: the graph's, or None where they are 0 to n-1. names: the others, ascending; None where ids are vertices.
    """

    def __init__(self, graph: Graph, stored: NDArray[Any] | None, names: NDArray[Any] | None, count: int) -> None:
        self._graph, self._stored, self._names, self.count = graph, stored, names, count

    @classmethod
    def of(cls, graph: Graph, source: ReadAgain, sources: NDArray[Any], targets: NDArray[Any]) -> Numbering | None:
        """Return it; None where there are more vertices than rows with a splice have."""
        lone = [batch.lone for batch in source.read if batch.lone is not None]
        ids, stored = np.unique(np.concatenate([sources, targets, *lone])), graph.original_ids()
        found = cls(graph, stored, None if stored is None else ids[:0].astype(np.uint64), graph.vertices)
        new, known = ids[~found.knows(ids)], source.known_vertices or 0
        if stored is None and (known > graph.vertices or told_of(graph).get("renumber") is False):
            count = max(graph.vertices, known, int(ids[-1]) + 1 if len(ids) else 0)
            check_density(count, graph.edges + len(sources), source.name)
            found = cls(graph, None, None, count)
        elif len(new) and (stored is not None or int(new[-1]) >= graph.vertices + len(new)):
            found = cls(graph, stored, new, graph.vertices + len(new))
        elif len(new):
            found = cls(graph, None, None, graph.vertices + len(new))
        return found if found.count < LIST_VERTICES else None

    @property
    def note(self) -> dict[str, Any]:
        """What the provenance says of ids that do not rise, or that are stored now."""
        if self._names is None or not len(self._names):
            return {}
        known: dict[str, Any] = {"options": told_of(self._graph) | {"renumber": True}}
        last = self._graph.vertices - 1 if self._stored is None else self._stored[-1] if len(self._stored) else -1
        rises = self._graph.reordered is False and int(self._names[0]) > int(last)
        return known if rises or self._graph.reordered is None else known | {RISING: self._rising}

    @property
    def _rising(self) -> int:
        """How many vertices, from 0 on, have ids that rise."""
        graph = self._graph
        of_all = graph.vertices if self._stored is None or graph.reordered is False else 0
        return int(graph.provenance.get(RISING, of_all))

    def knows(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which ids are those of vertices, or new."""
        if self._stored is None and self._names is None:
            return np.asarray(ids < self.count)
        found = self.vertices_of(ids)
        inside = found < self.count
        names = np.zeros(len(ids), np.uint64)
        names[inside] = self._names_of(found[inside])
        return np.asarray(inside & (names == ids))

    def _names_of(self, vertices: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The ids of some vertices."""
        known, names = self._graph.vertices, self._names
        assert names is not None, "ids that are stored have names"
        out = vertices.astype(np.uint64)
        if self._stored is not None and known:
            out = self._stored[np.minimum(vertices, known - 1)].astype(np.uint64)
        if len(names):
            out[vertices >= known] = names[vertices[vertices >= known] - known]
        return out

    def vertices_of(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Return the vertices of ids that are the graph's, or new; of others any number."""
        if self._stored is None:
            if self._names is None:
                return ids.astype(np.int64)
            head, tail = np.empty(0, np.uint64), self._names
            found, old = np.minimum(ids, np.uint64(1 << 62)).astype(np.int64), ids < self._graph.vertices
            begin = self._graph.vertices
        else:
            assert self._names is not None, "ids that are stored have names"
            begin = self._rising
            head, tail = self._stored[:begin], np.concatenate([self._stored[begin:], self._names])
            found = np.searchsorted(head, ids)
            old = head[np.minimum(found, begin - 1)] == ids if begin else np.zeros(len(ids), np.bool_)
        order = np.argsort(tail)
        at = np.searchsorted(tail, ids[~old], sorter=order)
        found[~old] = begin + np.append(order, len(tail))[at]
        return np.asarray(found)

    def ids(self) -> NDArray[Any] | None:
        """Return the ids of all vertices; None where they are 0 to n-1."""
        if self._names is None:
            return None
        stored = np.arange(self._graph.vertices, dtype=np.uint32) if self._stored is None else self._stored
        wide = len(self._names) and int(self._names[-1]) >= 1 << 32
        return np.concatenate([stored, self._names.astype(np.uint64 if wide else stored.dtype)])


@contextmanager
def opened_alone(graph: Path, stripes: tuple[Path, ...]) -> Iterator[tuple[Path, OpenedGraph]]:
    """Open a graph file to change it, which nobody else does within; yields its place, that behind a link too."""
    target = graph.resolve() if graph.is_symlink() else graph
    with kept_to_itself(target):
        yield target, open_frames(target, stripes)


def old_files(opened: OpenedGraph, graph: Path) -> AppendedTo:
    """The files that hold edges already."""
    header, manifest, shards = opened.header, opened.open_files[0], opened.open_files[1:]
    folder = graph.absolute().parent
    if shards:
        entries = tuple(_kept(graph, header, *pair) for pair in zip(header.shards, shards, strict=True))
        return AppendedTo(header.graph_id, entries, shards, None)
    name = stripe.shard_name(graph, 0, os.urandom(4).hex())
    entry = ShardEntry(name, stripe.recorded_folder(graph, folder))
    return AppendedTo(header.graph_id, (entry,), (manifest,), folder / name)


def _kept(graph: Path, header: Header, entry: ShardEntry, shard: OpenFile) -> ShardEntry:
    """A shard as the new manifest records it: one that stayed behind when the manifest was moved, by its own place."""
    stayed = header.place is not None and shard.path == stripe.recorded_place(Path(header.place.path), entry)
    if not stayed or shard.path == stripe.recorded_place(graph, entry):
        return entry
    return ShardEntry(entry.name, str(shard.path.parent))
