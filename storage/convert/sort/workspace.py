"""Owns what one conversion works with: threads, shares of its memory, scratch files, its clock, the log.

The budget is divided once, see `shares`. Everything is released when the block ends, however it ends.

The log has edges in input order with the ids they came with, until those can be mapped: only conversions that change
ids need it. Edges that the input can give once more are not kept: to read them again takes less than to write them to
fresh memory, and no memory.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock import __version__
from penstock.storage.base.budget import LIBRARY_BYTES, check_room, format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.freed_memory import give_back_freed_memory
from penstock.storage.base.threads import ThreadPool, ordered_map
from penstock.storage.convert.sort.groups import (
    LEAST_EDGE_BYTES,
    bucket_count,
    chosen_bits,
    largest_load,
    octave_count,
    shares,
)
from penstock.storage.convert.sort.options import ConvertOptions, ConvertProgress, ConvertStage
from penstock.storage.convert.sort.radix import RULES
from penstock.storage.convert.sort.run import KeyPacking
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.convert.sort.spill_filler import Packing
from penstock.storage.convert.sort.spill_room import ArrayStore, SpillRoom, StoredArrays
from penstock.storage.convert.sort.weights import narrow
from penstock.storage.ingest.core.edge_columns import EdgeColumns
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions, Source
from penstock.storage.ingest.formats.csr import CsrSource
from penstock.storage.ingest.formats.graph_file import GraphFileSource
from penstock.storage.ingest.tables.vertex_table import SortedTable
from penstock.storage.tables.properties import PROPERTIES, property_facts

Entry = tuple[Callable[[], EdgeBatch], StoredArrays | None]
"""How to read a batch, and where it is if the log keeps it."""


class EdgeLog:
    """Batches in input order, ids as they came; in memory while there is room, then on disk.

    pool: reads them, at most ``ahead`` at a time.
    """

    def __init__(self, room: SpillRoom, name: str, *, pool: Executor, ahead: int) -> None:
        self.edges = 0
        self.payload_bytes = self.weight_bytes = 0
        self._name, self._pool, self._ahead = name, pool, ahead
        self._store = ArrayStore(room)
        self._batches: deque[Entry] = deque()

    @property
    def in_memory(self) -> bool:
        """Whether memory holds all of it."""
        return not self._store.on_disk and self.payload_bytes > 0

    def add(self, batch: EdgeBatch) -> None:
        """Keep a batch, its weights narrowed. Raises as `narrow` and `ArrayStore.keep`."""
        self.edges += len(batch)
        if batch.again is not None:
            self._batches.append((batch.again, None))
            return
        weights = () if batch.weights is None else (narrow(batch.weights, self._name)[0],)
        arrays = (batch.sources, batch.targets, *weights)
        self.payload_bytes += sum(array.nbytes for array in arrays)
        self.weight_bytes += sum(array.nbytes for array in weights)
        stored = self._store.keep(*arrays)
        self._batches.append((partial(self._stored, stored, len(batch)), stored))

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order. Raises RunError where the disk failed, or the input was changed."""
        return (batch for batch, _ in self._read(self._batches))

    def drain(self) -> Iterator[EdgeBatch]:
        """Yield the batches again, in order; what was yielded is forgotten. Raises as `batches`."""
        for batch, stored in self._read(self._batches.popleft() for _ in range(len(self._batches))):
            yield batch
            if stored is not None:
                self._store.forget(stored)
        self._store.close()

    def _read(self, some: Iterable[Entry]) -> Generator[tuple[EdgeBatch, StoredArrays | None]]:
        return ordered_map(self._pool, lambda one: (one[0](), one[1]), some, self._ahead)

    def _stored(self, stored: StoredArrays, edges: int) -> EdgeBatch:
        arrays = [self._store.read(stored, number, 0, edges) for number in range(len(stored.dtypes))]
        return EdgeBatch(arrays[0], arrays[1], arrays[2] if arrays[2:] else None)


Progress = Callable[[ConvertProgress], None]
PROGRESS_SECONDS = 0.1
_RECORDED = (
    "direction",
    "undirected",
    "symmetrize",
    "dedupe",
    "drop_self_loops",
    "renumber",
    "bipartite",
    "order",
    "vertices_file",
)
ROOMY_BYTES = 1 << 30
OCTAVE_SHARE = 4
"""Octaves of ids may have so many times as many edges as they would have if each had as many."""
VERTEX_BYTES = {"degree": 12, "hubs": 24, "paths": 40}
"""What an order takes a vertex: degrees and both directions of the new ids, the score of hubs, the forest of paths."""
SPARE = 8
"""One part in so many is announced on top: later batches pack worse, and a bucket that is split is written twice."""


def ignore(_: ConvertProgress) -> None:
    """Take a progress record and do nothing."""


class Workspace:
    """One conversion's means. Use as a context manager.

    Attributes
    ----------
    read_edges : int
        Edges that the source gave so far.
    table : SortedTable or None
        Of vertices, once it is sorted, if there is one.
    columns : EdgeColumns or None
        What is kept beside edges.
    renames : bool
        Whether options or the source need a log of the edges, until all ids are known.
    compacts : bool
        Whether, by default, only the ids that occur are vertices; False where other options say which are.
    workers : int
        Threads that parse, sort and encode.
    """

    def __init__(self, source: Source, target: Path, options: ConvertOptions, progress: Progress) -> None:
        check_room(LIBRARY_BYTES, "a conversion")
        self.source = source
        self.options = options
        self.read_edges = 0
        self.table: SortedTable | None = None
        self.seconds: dict[str, float] = {}
        self.mirror = options.undirected or options.symmetrize or source.undirected
        self.columns: EdgeColumns | None = getattr(source, "edge_columns", None)
        self._check_columns()
        self.named = bool(getattr(source, "named", False))
        numbered = options.numbers_vertices or self.named
        self.renames = numbered or options.order != "none"
        self.compacts = options.renumber is None and not numbered and options.vertex_count is None
        stays = not self.mirror and not self.renames
        self.row_source = source if stays and isinstance(source, CsrSource) else None
        if isinstance(source, GraphFileSource):
            self._check_ids(source)
        memory, workers = options.host_memory, options.workers
        self.workers = workers
        self.share = shares(memory, workers, maps=self.renames)
        folder = options.scratch or target.parent
        self.room = SpillRoom(self.share.spill_bytes, folder, self._expected_scratch)
        self.pool = ThreadPool(workers, "convert")
        self.ingest = IngestOptions(host_memory=memory, threads=workers)
        copies = 2 if self.mirror else 1
        run_edges = self.share.run_edges // copies
        if self.columns is not None:  # records in the place of weights
            run_edges //= 1 + len(self.columns.names) // 2
        self.buckets = bucket_count(source.total_bytes, self.share, copies)
        self.packing = Packing(
            run_edges=run_edges,
            in_flight=workers + 1,
            keys=KeyPacking(
                buckets=self.buckets,
                mirror=self.mirror,
                drop_loops=options.drop_self_loops,
                name=source.name,
            ),
        )
        self.reverse_packing = replace(
            self.packing,
            run_edges=min(run_edges, max(4096, self.share.sort_bytes // 2 // (workers + 2) // 40)),
            keys=replace(self.packing.keys, mirror=False),
        )
        self._progress = progress
        self._largest = -1
        self._spills: list[Spill] = []
        self._log: EdgeLog | None = None
        self._stage = ""
        self._since = time.perf_counter()
        self._said = 0.0

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        for spill in self._spills:
            spill.free()
        self.room.close()

    def _check_columns(self) -> None:
        """Refuse columns beside edges where edges are a list, or become sums."""
        if self.columns is not None and self.options.layout == "list":
            raise InputError("--edge-properties is for sorted rows, and a list has weights only; leave one out")
        if self.columns is not None and self.options.dedupe == "sum":
            raise InputError(
                "--dedupe sum makes one edge of several, and no column of --edge-properties is that of their sum; "
                "first, min and max keep the columns of one of them"
            )

    def _check_ids(self, source: GraphFileSource) -> None:
        """Refuse new numbers for vertices that have original ids already."""
        new = self.options.numbers_vertices or self.options.vertex_count is not None
        if new and source.original is not None:
            raise InputError(f"{source.name}: its vertices are numbered, and keep their ids; leave that option out")

    @property
    def rule(self) -> int | None:
        """What becomes of parallel edges; None keeps them."""
        how = self.options.dedupe or ("first" if self.options.symmetrize else None)
        return None if how is None else RULES[how]

    @property
    def known_vertices(self) -> int:
        """Vertices as far as ids were seen or the source states them."""
        return max(self._largest + 1, self.source.known_vertices or 0)

    def saw_id(self, largest: int) -> None:
        """Note the largest id of a batch."""
        self._largest = max(self._largest, largest)

    def spill(self) -> Spill:
        """A new, empty spill."""
        spill = Spill(self.room)
        self._spills.append(spill)
        return spill

    def log(self) -> EdgeLog:
        """A new, empty log."""
        self._log = EdgeLog(self.room, self.source.name, pool=self.pool, ahead=self.packing.in_flight)
        return self._log

    def balance_buckets(self, new_ids: NDArray[Any], degrees: NDArray[np.uint32], edges: int) -> None:
        """Let buckets widen with the ids where an order by degree makes the first ones too heavy.

        ``degrees`` (1 or 2, vertices) of every vertex, whose id is to be ``new_ids[v]``.
        """
        vertices, equal = len(new_ids), self.packing.keys.buckets
        shift = max(0, max(vertices - 1, 1).bit_length() - (equal.bit_length() - 1))
        most = bucket_count(OCTAVE_SHARE * LEAST_EDGE_BYTES * edges, self.share, 2 if self.mirror else 1)
        found = chosen_bits(
            vertices, lambda width, bits: largest_load(new_ids, degrees, width, bits, max(most, equal)), shift, most
        )
        if found is not None:
            count = octave_count(vertices - 1, found)
            keys = replace(self.packing.keys, buckets=count, octave_bits=found)
            self.packing = replace(self.packing, keys=keys)
            self.reverse_packing = replace(self.reverse_packing, keys=replace(keys, mirror=False))

    def check_vertex_memory(self, vertices: int) -> None:
        """Refuse a permutation of more vertices than memory holds.

        Raises:
            InputError: naming ``--host-memory``.
        """
        needed = vertices * VERTEX_BYTES[self.options.order]
        if needed > self.share.state_bytes:
            raise InputError(
                f"--order {self.options.order} of {vertices} vertices needs {format_bytes(needed)} for the state "
                "of vertices, half of what is allowed at most; "
                f"give --host-memory {-(-2 * needed >> 20)}MiB or more"
            )

    def stage(self, name: str) -> None:
        """Begin a stage; its seconds end when the next begins, and what it freed is given back."""
        give_back_freed_memory()
        now = time.perf_counter()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = name, now

    def say(
        self,
        stage: ConvertStage,
        done: int | None = None,
        total: int | None = None,
    ) -> None:
        """Report progress, at most ten times a second; with little memory, give back what is free."""
        now = time.perf_counter()
        if now - self._said < PROGRESS_SECONDS:
            return
        self._said = now
        if self.options.host_memory < ROOMY_BYTES:
            give_back_freed_memory()
        if done is None:
            done, total = self.source.bytes_done, self.source.total_bytes
        announced = self.room.announced
        self._progress(ConvertProgress(stage, done, total, self.read_edges, announced, self.room.folder))

    def provenance(self, *, renumbered: bool) -> dict[str, Any]:
        """Where the graph comes from, for its file; renumbered: whether the ids that occur are not 0 to n-1."""
        options = self.options
        changed = {name: value for name in _RECORDED if (value := getattr(options, name)) not in (None, False, "none")}
        if renumbered or options.renumber is False:
            changed["renumber"] = renumbered
        if isinstance(self.source, GraphFileSource):
            changed = self.source.options | changed
        table = self.table
        return {
            "source": self.source.name,
            "source_bytes": self.source.total_bytes or self.source.bytes_done,
            "options": changed,
            "software": f"penstock {__version__}",
            **({} if table is None else {PROPERTIES: property_facts(table.identity, table.types)}),
        }

    def _expected_scratch(self) -> int | None:
        """Temporary bytes needed at once, at most, judged from the edges that the source gave so far."""
        total, done = self.source.total_bytes, self.source.bytes_done
        if not total or not done:
            return None
        rows = self.row_source is not None  # all edges are known then, and they stay where they are
        edges = self.read_edges * (1.0 if rows else max(1.0, total / done))
        begun = [store for store in (*self._spills, self._log) if store is not None and store.payload_bytes]
        if not begun:
            return None  # weights of a list, or names of vertices
        entries = edges * begun[0].payload_bytes / begun[0].edges
        logged = entries if self._log is not None and self._log.payload_bytes else 0.0
        spilled = 0.0 if rows else entries * (2 if self.mirror else 1)
        backward = entries if self.options.direction == "both" and not self.mirror else 0.0
        if self.options.layout == "list":  # which keeps nothing but weights
            spilled = edges * self._log.weight_bytes / self._log.edges if logged and self._log is not None else 0.0
            backward = 0.0
        memory = self.share.spill_bytes
        # the log lasts until the spill is full, and leaves its memory to it; the spill until the other one is
        both = max(logged - memory, 0.0) + max(spilled - memory, 0.0)
        expected = int(max(both, spilled + backward - memory))
        return max(expected + expected // SPARE, 1)
