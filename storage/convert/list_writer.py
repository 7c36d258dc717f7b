"""Writes a graph that keeps the order of its input: takes edges in any pieces, and leaves a whole file or none.

Keys are encoded and written as they come, in one pass. What is known only at the end waits until then: spans of blocks
(16 bytes for each `schema.LIST_BLOCK` edges), degrees in memory, and weights in a store, because the narrowest dtype
that holds all is known when all have passed. `ListBase` is a graph that is appended to: its chunks stay in their files,
and only one that is not full is written again, at the head of the new part.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.convert.renumber.name_store import NameStore, Original, pieces_of
from penstock.storage.convert.sort.seen_ids import OccurringIds
from penstock.storage.convert.sort.spill_room import ArrayStore, StoredArrays
from penstock.storage.encoding.codec import LEVELS, PLAIN_WEIGHT_LEVEL, Coding
from penstock.storage.encoding.edge_keys import count_ends, fill_keys, sources_of_keys, spans_of, targets_of_keys
from penstock.storage.format import schema
from penstock.storage.format.adjacency_writer import StripedArrays, WeightStats, vertex_array
from penstock.storage.format.file_set import AppendedTo, FileSet
from penstock.storage.format.schema import CHUNK_EDGES, LIST_BLOCK, STRIPE_RUN, Header, ListPart
from penstock.storage.format.writer import IdWriter
from penstock.storage.ingest.core.edges import EdgeBatch

NARROW = 1 << 32
"""Up to so many ends 32 bits hold every count."""


class EndCounts:
    """Counts of the ends of edges by vertex: of sources and of targets apart, or with ``both`` in one array.

    room_bytes: how much memory they may take; where that is too little they are dropped.
    """

    def __init__(self, room_bytes: int, *, both: bool) -> None:
        self._room, self._both = room_bytes, both
        self._counts: list[NDArray[Any]] | None = [np.zeros(0, np.uint32) for _ in range(1 if both else 2)]
        self._low = [np.zeros(0, np.uint8) for _ in self._counts]
        self._edges = 0

    def drop(self) -> None:
        """Count nothing any more."""
        self._counts = None

    def add(self, number: int, blocks: Iterable[NDArray[Any]]) -> None:
        """Add counts of vertices 0, 1, … to one of the arrays, for which there must be room."""
        at = 0
        for block in blocks if self._counts is not None else ():
            part = (self._counts or [])[number][at : at + len(block)]
            part += block.astype(part.dtype, copy=False)
            at += len(block)

    def make_room(self, vertices: int, edges: int) -> None:
        """Make room for so many vertices, and for so many edges more."""
        self._edges += edges
        if self._counts is None:
            return
        kind = np.dtype(np.uint64 if 2 * self._edges >= NARROW else np.uint32)
        before = self._counts[0]
        if vertices <= len(before) and kind == before.dtype:
            return
        # the old arrays are there while the new ones are made
        each = len(self._counts) * (kind.itemsize + before.itemsize + 2 * self._low[0].itemsize)
        if vertices * each > self._room:
            self.drop()
            return
        size = max(vertices, min(2 * len(before), self._room // each))
        for arrays, dtype in ((self._counts, kind), (self._low, np.dtype(np.uint8))):
            for number, counts in enumerate(arrays):
                arrays[number] = np.zeros(size, dtype)
                arrays[number][: len(counts)] = counts

    def count(self, sources: NDArray[Any], targets: NDArray[Any]) -> None:
        """Count the ends of edges. There must be room."""
        if self._counts is not None:
            count_ends(sources, targets, self._low, self._counts)

    def of(self, vertices: int) -> list[NDArray[Any]]:
        """The counts of so many vertices, of sources first; none where they were dropped."""
        self.make_room(vertices, 0)
        return [counts[:vertices] + low[:vertices] for counts, low in zip(self._counts or [], self._low, strict=False)]


KEYS, WEIGHTS = f"out/{schema.NEIGHBORS}", f"out/{schema.WEIGHTS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBase:
    """What a graph that is appended to has, as far as it stays.

    header: its own. old: its files. tables: the rows of the chunk tables of keys and weights, of full chunks. spans,
    self_loops: those of full chunks. keys, weights: what is behind them, in a chunk that is not full.
    """

    header: Header
    old: AppendedTo
    tables: Mapping[str, NDArray[np.uint64]]
    spans: NDArray[np.uint32]
    self_loops: int
    keys: NDArray[np.uint64]
    weights: NDArray[Any] | None

    @property
    def chunks(self) -> int:
        """Full chunks, which stay."""
        return len(self.tables[KEYS])


_Chunk = tuple[NDArray[np.uint64], NDArray[np.uint32], int]
"""The keys of one chunk, the spans of its blocks, and how many self-loops it has."""


def _chunk_of(pieces: list[tuple[NDArray[Any], NDArray[Any]]], ids: OccurringIds | None) -> _Chunk:
    """Put the edges of some pieces together, in a thread; ids: those that they are in (None: they are in vertices)."""
    keys = np.empty(sum(len(sources) for sources, _ in pieces), np.uint64)
    fill, at = fill_keys if ids is None else ids.keys, 0
    for sources, targets in pieces:
        fill(sources, targets, keys[at : at + len(sources)])
        at += len(sources)
    pieces.clear()
    return keys, *spans_of(keys, LIST_BLOCK)


class ListWriter:
    """A list being written; a context manager that finishes its files as `GraphWriter` does.

    Parameters
    ----------
    files : FileSet
        The files, not open yet.
    store : ArrayStore
        Where weights wait.
    counts : EndCounts
        The degrees.
    force : bool
        Whether a graph of that name may be replaced.
    base : ListBase, optional
        The graph that is appended to.
    """

    def __init__(
        self, files: FileSet, store: ArrayStore, counts: EndCounts, *, force: bool, base: ListBase | None = None
    ) -> None:
        self._files, self._store, self._counts, self._force, self._base = files, store, counts, force, base
        self._pieces: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._filled = 0
        self._making: deque[Future[_Chunk]] = deque()
        self._spans: list[NDArray[np.uint32]] = []
        self._weights: list[tuple[StoredArrays, int]] = []
        self._weighted: bool | None = None
        self._ids: OccurringIds | None = None
        self._counted = 0
        self.edges = 0
        self.self_loops = 0
        if base is not None:
            self._continue(base)

    def _continue(self, base: ListBase) -> None:
        """Begin with what is behind the full chunks of an older graph, which its counts have already.

        These edges are in vertices, and in ids as well: vertices of an older graph occur, and are the smallest ids.
        """
        self.self_loops = base.self_loops
        self._spans.append(base.spans)
        self._filled = self._counted = len(base.keys)
        self._pieces.append((sources_of_keys(base.keys), targets_of_keys(base.keys)))
        self._weighted = None if base.header.edges == 0 else base.header.weight_range is not None
        if base.weights is not None and len(base.weights):
            self._weights.append((self._store.keep(base.weights), len(base.weights)))
        self.edges = base.header.edges

    @property
    def file_bytes(self) -> int:
        """Bytes of all the files, when the block has ended."""
        return self._files.file_bytes

    def __enter__(self) -> "ListWriter":
        try:
            self._files.open(force=self._force)
            coding = Coding(schema.KEY_ENCODING, np.dtype(np.uint64), CHUNK_EDGES, LEVELS["shuffled"])
            self._keys = StripedArrays(self._files, {KEYS: coding}, self._files.threads + 1)
        except BaseException as error:
            self._files.abandon(error)
            raise
        return self

    def append(self, batch: EdgeBatch, vertices: int, ids: OccurringIds | None) -> None:
        """Add edges, between the first ``vertices`` vertices, and their weights. Raises InputError, RunError.

        ids: those that all edges are in, the same each time; None where they are in vertices.
        """
        if len(batch) == 0:
            return
        if self._weighted is None:
            self._weighted = batch.weights is not None
        if self._weighted != (batch.weights is not None):
            raise InputError("some of the input has weights and some has none; drop the weights")
        self._counts.make_room(vertices, len(batch))
        self._ids = ids
        at = 0
        while at < len(batch):
            step = min(len(batch) - at, CHUNK_EDGES - self._filled)
            self._pieces.append((batch.sources[at : at + step], batch.targets[at : at + step]))
            self._filled += step
            at += step
            if self._filled == CHUNK_EDGES:
                self._cut()
        if batch.weights is not None:
            self._weights.append((self._store.keep(batch.weights), len(batch)))
        self.edges += len(batch)

    def _cut(self) -> None:
        self._making.append(self._files.pool.submit(_chunk_of, self._pieces, self._ids))
        self._pieces, self._filled = [], 0
        self._collect(self._files.threads)

    def _collect(self, most: int) -> None:
        """Count the edges of finished chunks and hand these to their encoder, until at most ``most`` are being made."""
        while len(self._making) > most:
            keys, spans, self_loops = self._making.popleft().result()
            new = keys[self._counted :]
            self._counted = 0
            self._counts.count(sources_of_keys(new), targets_of_keys(new))
            self._spans.append(spans)
            self.self_loops += self_loops
            self._keys.append(keys)

    def finish_edges(self, weight_dtype: np.dtype[Any] | None) -> tuple[float, float, float] | None:
        """Write what is left of keys, then weights and spans; return the range of the weights."""
        if self._filled:
            self._cut()
        self._collect(0)
        base = self._base
        chunks = 0 if base is None else base.chunks
        tables = {} if base is None else base.tables
        (written,) = self._keys.lengths
        self._stored = -(-written // CHUNK_EDGES)
        self._keys.finish(tables.get(KEYS), chunks * CHUNK_EDGES)
        stats = None if weight_dtype is None else self._write_weights(weight_dtype, tables.get(WEIGHTS), chunks)
        spans = vertex_array(self._files, f"out/{schema.SPANS}", np.dtype(np.uint32), "plain")
        for part in self._spans:
            spans.append(part.reshape(-1))
        spans.finish()
        return stats

    def _write_weights(
        self, kind: np.dtype[Any], before: NDArray[np.uint64] | None, chunks: int
    ) -> tuple[float, float, float]:
        encoding = schema.values_encoding(kind)
        level = PLAIN_WEIGHT_LEVEL if encoding == "plain" else LEVELS[encoding]
        coding, stats = Coding(encoding, kind, CHUNK_EDGES, level), WeightStats()
        array = StripedArrays(self._files, {WEIGHTS: coding}, self._files.threads + 1)
        if self._base is not None and self._base.header.weight_range is not None:
            stats.low, mean, stats.high = self._base.header.weight_range
            stats.count = chunks * CHUNK_EDGES
            whole = self._base.header.edges
            rest = 0.0 if self._base.weights is None else float(self._base.weights.sum(dtype=np.float64))
            stats.total = mean * whole - rest
        for stored, edges in self._weights:
            for first in range(0, edges, CHUNK_EDGES):
                values = self._store.read(stored, 0, first, min(edges, first + CHUNK_EDGES)).astype(kind)
                stats.append(values)
                array.append(values)
            self._store.forget(stored)
        array.finish(before, chunks * CHUNK_EDGES)
        return stats.value

    def finish_vertices(self, vertices: int, original: Original) -> int | None:
        """Write degrees and original ids; return how many vertices have no edge, None where that is not known."""
        counts = self._counts.of(vertices)
        for direction, degrees in zip(schema.DIRECTIONS, counts, strict=False):
            kind = schema.count_dtype(int(degrees.max(initial=0)))
            path = f"{direction}/{schema.DEGREES}"
            array = vertex_array(self._files, path, kind, schema.values_encoding(kind))
            for first in range(0, vertices, schema.CHUNK_VERTICES):
                array.append(degrees[first : first + schema.CHUNK_VERTICES])
            array.finish()
        ids = IdWriter(self._files, strings=isinstance(original, NameStore))
        for piece in pieces_of(original):
            ids.append(piece)
        ids.finish(vertices)
        if not counts:
            return None
        step, found = schema.CHUNK_VERTICES, 0
        for first in range(0, vertices, step):
            found += int(np.count_nonzero(np.any([part[first : first + step] for part in counts], axis=0)))
        return vertices - found

    def commit(self, facts: Mapping[str, Any]) -> None:
        """Finish the files and give them their names; facts: the other fields of the header. Raises as `FileSet`."""
        files, base = self._files, self._base
        parts = [ListPart(len(files.stripes), self._stored, self._stored)]
        if base is not None:
            before = base.header.parts
            if base.old.manifest is not None:
                before = (ListPart(1, before[0].stored, before[0].used),)
            full = base.chunks - sum(part.used for part in before[:-1])
            parts = [*before[:-1], ListPart(before[-1].shards, before[-1].stored, full), *parts]
        header = Header(
            graph_id=files.graph_id,
            edges=self.edges,
            stripe_run=STRIPE_RUN,
            shards=files.shard_entries,
            arrays=tuple(files.specs),
            layout="list",
            parts=tuple(parts),
            self_loops=self.self_loops,
            **facts,
        )
        header.check()
        files.commit(header)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._files.abandon(error)
