"""Owns the edges between reading and writing: runs of keys in coarse order, in memory or on disk.

A *run* is one batch whose keys lie in order of *buckets*, ranges of 2^shift vertices. Any range of
buckets is therefore one slice of every run, and gathering it reads each edge once more. Runs are
kept in the order of the input, so a stable sort later finds the first of parallel edges first.
Buckets widen as ids grow: later runs have coarser ones, and a finer run fits a coarser range too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert import pack
from penstock.storage.convert import weights as weighing
from penstock.storage.convert.room import Room, Scratch, ScratchFile
from penstock.storage.convert.weights import WeightRange
from penstock.storage.edges import EdgeBatch
from penstock.storage.errors import InputError

Keys = NDArray[np.uint64]
TABLES_TOGETHER = 64
Part = list[tuple[int, int, int]]
"""Slices (run, start, end) of runs, in input order."""


@dataclass(slots=True)
class Run:
    """Keys (and weights) of one batch in order of buckets.

    ``table[b]`` is where bucket b begins, uint32, one more entry than buckets. ``keys`` and
    ``weights`` are None once they lie in a scratch file, at ``keys_at`` and ``weights_at``.
    """

    table: NDArray[np.uint32]
    shift: int
    wide: bool
    extent: WeightRange
    keys: Keys | None
    weights: NDArray[Any] | None
    edges: int
    loops: int = 0
    largest: int = -1
    weight_dtype: np.dtype[Any] | None = None
    keys_at: int = 0
    weights_at: int = 0

    @property
    def payload_bytes(self) -> int:
        """Bytes of keys and weights."""
        return self.edges * (8 + (self.weight_dtype.itemsize if self.weight_dtype else 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How edges become keys: buckets per run (a power of two), mirrored or not, loops or not."""

    buckets: int
    mirror: bool = False
    drop_loops: bool = False
    name: str = "input"


def pack_edges(batch: EdgeBatch, packing: Packing) -> Run:
    """Turn a batch into a run.

    Raises:
        InputError: an id is beyond what can be an index, or a weight is not finite.
    """
    largest = max(int(batch.sources.max()), int(batch.targets.max())) if len(batch) else -1
    shift, buckets, wide = _bucket_layout(largest, packing)
    counts = np.zeros(buckets, np.int64)
    mirror, drop = packing.mirror, packing.drop_loops
    pack.count_edges(batch.sources, batch.targets, shift, mirror, drop, counts)
    table, next_slot = _table(counts)
    edges = int(table[-1])
    narrowed, extent = _narrowed(batch.weights, packing.name)
    keys = np.empty(edges, np.uint64)
    given = _as_bits(narrowed)
    moved = np.empty(edges if narrowed is not None else 0, given.dtype)
    layout = (shift, mirror, drop, wide)
    pack.scatter_edges(batch.sources, batch.targets, given, layout, next_slot, (keys, moved))
    return Run(
        table,
        shift,
        wide,
        extent,
        keys,
        None if narrowed is None else _from_bits(moved, narrowed.dtype),
        edges,
        largest=largest,
        weight_dtype=None if narrowed is None else narrowed.dtype,
    )


def pack_keys(keys: Keys, weights: NDArray[Any] | None, low: int, shift: int, buckets: int) -> Run:
    """Turn keys into a run of ``buckets`` buckets of 2^shift keys each, from key ``low`` on."""
    counts = np.zeros(buckets, np.int64)
    base = np.uint64(low)
    pack.count_keys(keys, base, shift, counts)
    table, next_slot = _table(counts)
    given = _as_bits(weights)
    placed = np.empty(len(keys), np.uint64)
    moved = np.empty(len(keys) if weights is not None else 0, given.dtype)
    pack.scatter_keys(keys, given, (base, shift), next_slot, placed, moved)
    kept = None if weights is None else _from_bits(moved, weights.dtype)
    dtype = None if weights is None else weights.dtype
    return Run(table, shift, False, WeightRange(), placed, kept, len(keys), weight_dtype=dtype)


def _bucket_layout(largest: int, packing: Packing) -> tuple[int, int, bool]:
    """Vertex bits of a bucket, number of buckets, and whether keys are wide."""
    if largest >= pack.MAX_VERTICES:
        raise InputError(
            f"{packing.name}: vertex id {largest} is too large to be an index; --renumber keeps "
            "such ids and numbers the vertices that occur from 0"
        )
    bits = max(1, largest.bit_length())
    if bits > pack.NARROW_BITS:
        buckets = max(packing.buckets, 1 << (2 * pack.WIDE_BITS - 64))
        return pack.WIDE_BITS - (buckets.bit_length() - 1), buckets, True
    return max(0, bits - (packing.buckets.bit_length() - 1)), packing.buckets, False


def _table(counts: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts.astype(np.uint32), starts[:-1]


def _narrowed(weights: NDArray[Any] | None, name: str) -> tuple[NDArray[Any] | None, WeightRange]:
    return (None, WeightRange()) if weights is None else weighing.narrow(weights, name)


def _as_bits(weights: NDArray[Any] | None) -> NDArray[Any]:
    """Weights as uint32 or uint64, so that few kernels serve every dtype; empty without weights."""
    if weights is None:
        return np.empty(0, np.uint32)
    return weighing.bits(weights.astype(weighing.working_dtype(weights.dtype), copy=False))


def _from_bits(moved: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return moved.view(weighing.working_dtype(dtype)).astype(dtype, copy=False)


class Spill:
    """Runs in input order. Memory comes from ``room`` while it lasts, then from ``scratch``."""

    def __init__(self, room: Room, scratch: Scratch) -> None:
        self.runs: list[Run] = []
        self.edges = 0
        self.payload_bytes = 0
        self.extent = WeightRange()
        self.largest = -1
        self.shift = 0
        self.wide = False
        self.weighted: bool | None = None
        self._room = room
        self._scratch = scratch
        self._file: ScratchFile | None = None
        self._taken = 0
        self._tables = np.empty((0, 1), np.uint32)
        self._slab = np.empty((0, 0), np.uint32)

    def add(self, run: Run) -> None:
        """Take a run; its arrays are the spill's now.

        Raises:
            InputError: some runs have weights and some have none, or the disk has not enough space.
            RunError: the disk is full or failed.
        """
        weighted = run.weight_dtype is not None
        if self.weighted is None:
            self.weighted = weighted
        elif self.weighted != weighted and run.edges:
            raise InputError("some of the input has weights and some has none; drop the weights")
        self.largest = max(self.largest, run.largest)
        self.extent = self.extent.joined(run.extent)
        if run.edges == 0:
            return
        self.edges += run.edges
        self.payload_bytes += run.payload_bytes
        self.shift = max(self.shift, run.shift)
        self.wide = self.wide or run.wide
        if self._room.take(run.payload_bytes):
            self._taken += run.payload_bytes
        else:
            self._write(run)
        run.table = self._kept(run.table)
        self.runs.append(run)

    def free(self) -> None:
        """Drop every run."""
        self.runs.clear()
        self._tables = np.empty((0, 1), np.uint32)
        self._room.give(self._taken)
        self._taken = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def histogram(self, buckets: int) -> NDArray[np.int64]:
        """Edges in each of the first ``buckets`` buckets of 2^``shift`` vertices (or keys).

        Call it when all runs are in: it lines their tables up for `parts`.
        """
        tables = np.empty((len(self.runs), buckets + 1), np.uint32)
        ends = np.arange(buckets + 1, dtype=np.int64)
        for number, run in enumerate(self.runs):
            slots = np.minimum(ends << (self.shift - run.shift), len(run.table) - 1)
            tables[number] = run.table[slots]
            run.table = tables[number]
        self._tables = tables
        counts = np.zeros(buckets + 1, np.int64)
        for table in tables:
            counts += table
        return np.diff(counts)

    def parts(self, first: int, last: int, limit: int) -> list[Part]:
        """Cut buckets [first, last) into parts of at most ``limit`` edges, in input order."""
        starts, ends = self._slices(first, last)
        parts: list[Part] = [[]]
        left = limit
        for number in np.flatnonzero(ends > starts).tolist():
            at, end = int(starts[number]), int(ends[number])
            while at < end:
                if left == 0:
                    parts.append([])
                    left = limit
                stop = min(end, at + left)
                parts[-1].append((number, at, stop))
                left -= stop - at
                at = stop
        return parts

    def gather(self, part: Part, first: int, dtype: np.dtype[Any] | None) -> tuple[Keys, NDArray[Any]]:
        """The keys of a part in input order, and their weights as ``dtype`` (None: empty).

        Keys of a wide spill are wide, their sources counted from the first vertex of bucket
        ``first`` (one bucket at a time then).
        """
        edges = sum(end - start for _, start, end in part)
        keys = np.empty(edges, np.uint64)
        weights = np.empty(edges if dtype is not None else 0, dtype or np.uint32)
        at = 0
        for number, start, end in part:
            run = self.runs[number]
            stop = at + end - start
            self._read_keys(run, start, keys[at:stop], first)
            if dtype is not None:
                self._read_weights(run, start, weights[at:stop])
            at = stop
        return keys, weights

    def _slices(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where buckets [first, last) begin and end in every run."""
        tables = self._tables
        return tables[:, first].astype(np.int64), tables[:, last].astype(np.int64)

    def _kept(self, table: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """A copy of a table beside the others: small arrays among large ones pin freed memory."""
        if len(self._slab) == 0 or self._slab.shape[1] != len(table):
            self._slab = np.empty((TABLES_TOGETHER, len(table)), np.uint32)
        row: NDArray[np.uint32] = self._slab[0]
        self._slab = self._slab[1:]
        row[:] = table
        return row

    def _write(self, run: Run) -> None:
        if self._file is None:
            self._file = self._scratch.open()
        assert run.keys is not None
        run.keys_at = self._file.append(run.keys)
        run.keys = None
        if run.weights is not None:
            run.weights_at = self._file.append(run.weights)
            run.weights = None

    def _read_keys(self, run: Run, start: int, out: Keys, first: int) -> None:
        if run.keys is not None:
            out[:] = run.keys[start : start + len(out)]
        else:
            assert self._file is not None
            self._file.read(run.keys_at + 8 * start, out)
        if self.wide and not run.wide:
            pack.widen_keys(out, np.uint64(first << self.shift))

    def _read_weights(self, run: Run, start: int, out: NDArray[Any]) -> None:
        if run.weights is not None:
            out[:] = run.weights[start : start + len(out)]
            return
        assert self._file is not None
        assert run.weight_dtype is not None
        raw = np.empty(len(out), run.weight_dtype)
        self._file.read(run.weights_at + run.weight_dtype.itemsize * start, raw)
        out[:] = raw
