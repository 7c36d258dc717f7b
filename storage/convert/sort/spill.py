"""Owns the edges between reading and writing: runs of keys in coarse order, in memory or on disk.

Any range of buckets is one slice of every run (run.py), and gathering it reads each edge once more.
Runs are kept in the order of the input, so a stable sort later finds the first of parallel edges first.
Buckets widen as ids grow: later runs have coarser ones, and a finer run fits a coarser range too. The slices of a
group are copied in one compiled call, without Python's lock: they are in some hundred runs, and threads that sort side
by side would wait for each other in a Python loop over those.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.base.thread_atomics import emitted
from penstock.storage.convert.sort.groups import octave_count
from penstock.storage.convert.sort.run import KeyRun, Keys, widen_keys
from penstock.storage.convert.sort.spill_room import ArrayStore, SpillRoom, StoredArrays
from penstock.storage.convert.sort.weights import WeightExtent

TABLES_TOGETHER = 64
KINDS = {np.dtype(name): code for code, name in enumerate(("u1", "u2", "u4", "f4", "f8"))}
"""What `copy_weights` calls the dtypes that a run's weights may have."""


class Part(NamedTuple):
    """Slices of runs in input order: their numbers, and where each begins and ends in its run (int64)."""

    runs: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def edges(self) -> int:
        """Edges of all"""
        return int((self.ends - self.starts).sum())


@dataclass(slots=True)
class _StoredRun:
    """A run whose keys (and weights) are in the spill's store."""

    table: NDArray[np.uint32]
    shift: int
    wide: bool
    arrays: StoredArrays


class Spill:
    """Runs in input order, in the memory of a ``room`` while there is some, then in its scratch files.

    ``largest`` is the largest id, ``wide`` whether keys are; a bucket has 2^``shift`` vertices (or keys), or is one of
    octaves with ``octave_bits`` (groups.py), which all runs have then.
    """

    def __init__(self, room: SpillRoom) -> None:
        self.edges = 0
        self.payload_bytes = 0
        self.largest = -1
        self.shift = 0
        self.wide = False
        self.octave_bits: int | None = None
        self._runs: list[_StoredRun] = []
        self._store = ArrayStore(room)
        self._extent = WeightExtent()
        self._weighted: bool | None = None
        self._tables = np.empty((0, 1), np.uint32)
        self._slab = np.empty((0, 0), np.uint32)
        self._places = self._weight_places = np.empty(0, np.uint64)
        self._weight_kinds = np.empty(0, np.int64)

    @property
    def weight_range(self) -> WeightExtent | None:
        """The range of all weights; None without weights."""
        return self._extent if self._weighted else None

    def add(self, run: KeyRun) -> None:
        """Take a run; its arrays are the spill's now.

        Raises:
            InputError: some runs have weights and some have none, or the disk has not enough space.
            RunError: the disk is full or failed.
        """
        edges, weighted = len(run.keys), run.weights is not None
        if self._weighted is None:
            self._weighted = weighted
        elif self._weighted != weighted and edges:
            raise InputError("some of the input has weights and some has none; drop the weights")
        self.largest = max(self.largest, run.largest)
        self._extent = self._extent.joined(run.extent)
        if edges == 0:
            return
        arrays = (run.keys,) if run.weights is None else (run.keys, run.weights)
        self.edges += edges
        self.payload_bytes += sum(array.nbytes for array in arrays)
        stored = self._store.keep(*arrays)
        self.shift = max(self.shift, run.shift)
        self.octave_bits = run.octave_bits
        self.wide = self.wide or run.wide
        self._runs.append(_StoredRun(self._kept(run.table), run.shift, run.wide, stored))

    def free(self) -> None:
        """Drop every run."""
        self._runs.clear()
        self._tables = np.empty((0, 1), np.uint32)
        self._store.close()

    @property
    def buckets(self) -> int:
        """How many buckets there are up to that of the largest id."""
        if self.octave_bits is not None:
            return octave_count(self.largest, self.octave_bits)
        return -(-(self.largest + 1) >> self.shift)

    def histogram(self, buckets: int) -> NDArray[np.int64]:
        """Edges in each of the first ``buckets`` buckets of 2^``shift`` vertices (or keys).

        Call it when all runs are in: it lines their tables up for `parts`.
        """
        tables = np.empty((len(self._runs), buckets + 1), np.uint32)
        ends = np.arange(buckets + 1, dtype=np.int64)
        for number, run in enumerate(self._runs):
            slots = np.minimum(ends << (self.shift - run.shift), len(run.table) - 1)
            tables[number] = run.table[slots]
            run.table = tables[number]
        self._tables = tables
        self._places = self._addresses(0)
        if self._weighted:
            self._weight_places = self._addresses(1)
            self._weight_kinds = np.array([KINDS.get(run.arrays.dtypes[1], 0) for run in self._runs], np.int64)
        counts = np.zeros(buckets + 1, np.int64)
        for table in tables:
            counts += table
        return np.diff(counts)

    def parts(self, first: int, last: int, limit: int) -> list[Part]:
        """Cut buckets [first, last) into parts of at most ``limit`` edges, in input order."""
        starts, ends = self._tables[:, first].astype(np.int64), self._tables[:, last].astype(np.int64)
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
        copy_keys(self._places[part.runs], part.starts, part.ends, keys)
        if dtype is not None:
            kinds, size = self._weight_kinds[part.runs], dtype.itemsize if dtype.names else 1  # records are bytes
            items = weights.view(np.uint8) if dtype.names else weights
            copy_weights(self._weight_places[part.runs], kinds, part.starts * size, part.ends * size, items)
        if self._store.on_disk or self.wide:
            self._read(part, first, keys, weights)
        return keys, weights

    def _read(self, part: Part, first: int, keys: Keys, weights: NDArray[Any]) -> None:
        """Fill in the slices that lie in the scratch file; widen narrow keys where the spill is wide."""
        at = 0
        for number, start, end in zip(part.runs.tolist(), part.starts.tolist(), part.ends.tolist(), strict=True):
            run, stop = self._runs[number], at + end - start
            if run.arrays.arrays is None:
                self._store.read(run.arrays, 0, start, end, keys[at:stop])
                if len(weights):
                    weights[at:stop] = self._store.read(run.arrays, 1, start, end)
            if self.wide and not run.wide:
                widen_keys(keys[at:stop], np.uint64(first << self.shift))
            at = stop

    def _kept(self, table: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """A copy of a table beside the others: small arrays among large ones pin freed memory."""
        if len(self._slab) == 0 or self._slab.shape[1] != len(table):
            self._slab = np.empty((TABLES_TOGETHER, len(table)), np.uint32)
        row: NDArray[np.uint32] = self._slab[0]
        self._slab = self._slab[1:]
        row[:] = table
        return row

    def _addresses(self, number: int) -> NDArray[np.uint64]:
        """Where each run's keys (0) or weights (1) are in memory, 0 where they are on disk."""
        return np.array([run.arrays.address(number) for run in self._runs], np.uint64)


@emitted
def _item(_: Any, address: Any, kind: Any) -> Any:
    """The item of the type of ``kind`` (a value of it) at a uint64 address."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = context.get_data_type(kind).as_pointer()
        return builder.load(builder.inttoptr(values[0], place))

    return kind(address, kind), emit


@jit
def copy_keys(
    addresses: NDArray[np.uint64], starts: NDArray[np.int64], ends: NDArray[np.int64], out: NDArray[np.uint64]
) -> None:
    """Copy items [starts[i], ends[i]) of the uint64 array at ``addresses[i]``, one slice after another.

    The caller keeps the arrays alive, and cuts slices that are inside them.

    A slice whose address is 0 is left out: its place in ``out`` is not touched.
    """
    at = 0
    for i in range(len(addresses)):
        if addresses[i] != np.uint64(0):
            place = addresses[i] + np.uint64(8) * np.uint64(starts[i])
            for k in range(ends[i] - starts[i]):
                out[at + k] = _item(place + np.uint64(8 * k), place)
        at += ends[i] - starts[i]


@jit
def copy_weights(
    addresses: NDArray[np.uint64],
    kinds: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    """As `copy_keys` with arrays of the dtypes that ``kinds`` (see `KINDS`) say, cast to that of ``out``."""
    at = 0
    for i in range(len(addresses)):
        first, count = np.uint64(starts[i]), ends[i] - starts[i]
        place = addresses[i]
        if place == np.uint64(0):
            at += count
            continue
        if kinds[i] == 0:
            for k in range(count):
                out[at + k] = _item(place + first + np.uint64(k), np.uint8(0))
        elif kinds[i] == 1:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(2) * (first + np.uint64(k)), np.uint16(0))
        elif kinds[i] == 2:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(4) * (first + np.uint64(k)), np.uint32(0))
        elif kinds[i] == 3:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(4) * (first + np.uint64(k)), np.float32(0))
        else:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(8) * (first + np.uint64(k)), np.float64(0))
        at += count
