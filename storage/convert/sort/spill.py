"""Owns the edges between reading and writing: runs of keys in coarse order, in memory or on disk.

Any range of buckets is one slice of every run (run.py), and gathering it reads each edge once more.
Runs are kept in the order of the input, so a stable sort later finds the first of parallel edges first.
Buckets widen as ids grow: later runs have coarser ones, and a finer run fits a coarser range too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.convert.sort import key_pack, slices
from penstock.storage.convert.sort.memory_quota import MemoryQuota, Scratch, ScratchFile
from penstock.storage.convert.sort.run import KeyRun, Keys
from penstock.storage.convert.sort.weights import WeightRange

TABLES_TOGETHER = 64


class Part(NamedTuple):
    """Slices of runs in input order: their numbers, and where each begins and ends in its run (int64)."""

    runs: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def edges(self) -> int:
        """Edges of all slices."""
        return int((self.ends - self.starts).sum())


class Spill:
    """Runs in input order. Memory comes from ``room`` while it lasts, then from ``scratch``."""

    def __init__(self, room: MemoryQuota, scratch: Scratch) -> None:
        self.runs: list[KeyRun] = []
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
        self._places = self._weight_places = np.empty(0, np.uint64)
        self._weight_kinds = np.empty(0, np.int64)

    def add(self, run: KeyRun) -> None:
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
        self._places = _places([run.keys for run in self.runs])
        self._weight_places = _places([run.weights for run in self.runs])
        self._weight_kinds = np.array([_kind(run) for run in self.runs], np.int64)
        counts = np.zeros(buckets + 1, np.int64)
        for table in tables:
            counts += table
        return np.diff(counts)

    def parts(self, first: int, last: int, limit: int) -> list[Part]:
        """Cut buckets [first, last) into parts of at most ``limit`` edges, in input order."""
        starts, ends = self._slices(first, last)
        runs = np.flatnonzero(ends > starts)
        starts, ends = starts[runs], ends[runs]
        after = np.cumsum(ends - starts)
        parts = []
        for low in range(0, int(after[-1]) if len(runs) else 0, limit):
            high = min(low + limit, int(after[-1]))
            one, end = np.searchsorted(after, low, "right"), np.searchsorted(after, high) + 1
            part = Part(runs[one:end], starts[one:end].copy(), ends[one:end].copy())
            part.starts[0] = part.ends[0] - (after[one] - low)
            part.ends[-1] -= after[end - 1] - high
            parts.append(part)
        return parts

    def gather(
        self,
        part: Part,
        first: int,
        dtype: np.dtype[Any] | None,
        out: Keys | None = None,
    ) -> tuple[Keys, NDArray[Any]]:
        """The keys of a part in input order, and their weights as ``dtype`` (None: empty).

        Keys of a wide spill are wide, their sources counted from the first vertex of bucket
        ``first`` (one bucket at a time then). ``out``: where to put the keys (None: a new array).
        """
        edges = part.edges
        keys = np.empty(edges, np.uint64) if out is None else out
        weights = np.empty(edges if dtype is not None else 0, dtype or np.uint32)
        slices.copy_keys(self._places[part.runs], part.starts, part.ends, keys)
        if dtype is not None:
            kinds = self._weight_kinds[part.runs]
            slices.copy_weights(self._weight_places[part.runs], kinds, part.starts, part.ends, weights)
        if self._file is not None or self.wide:
            self._read(part, first, keys, weights)
        return keys, weights

    def _read(self, part: Part, first: int, keys: Keys, weights: NDArray[Any]) -> None:
        """Fill in the slices that lie in the scratch file; widen narrow keys where the spill is wide."""
        at = 0
        for number, start, end in zip(part.runs.tolist(), part.starts.tolist(), part.ends.tolist(), strict=True):
            run, stop = self.runs[number], at + end - start
            if run.keys is None:
                assert self._file is not None
                self._file.read(run.keys_at + 8 * start, keys[at:stop])
                if len(weights):
                    self._read_weights(run, start, weights[at:stop])
            if self.wide and not run.wide:
                key_pack.widen_keys(keys[at:stop], np.uint64(first << self.shift))
            at = stop

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

    def _write(self, run: KeyRun) -> None:
        if self._file is None:
            self._file = self._scratch.open()
        assert run.keys is not None
        run.keys_at = self._file.append(run.keys)
        run.keys = None
        if run.weights is not None:
            run.weights_at = self._file.append(run.weights)
            run.weights = None

    def _read_weights(self, run: KeyRun, start: int, out: NDArray[Any]) -> None:
        assert self._file is not None
        assert run.weight_dtype is not None
        raw = np.empty(len(out), run.weight_dtype)
        self._file.read(run.weights_at + run.weight_dtype.itemsize * start, raw)
        out[:] = raw


def _places(arrays: list[NDArray[Any] | None]) -> NDArray[np.uint64]:
    """Addresses of arrays, 0 where there is none."""
    return np.array([0 if array is None else array.ctypes.data for array in arrays], np.uint64)


def _kind(run: KeyRun) -> int:
    return 0 if run.weights is None else slices.KINDS[run.weights.dtype]
