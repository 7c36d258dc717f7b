"""Owns runs: edges become 64-bit keys, those of one batch in order of *buckets*, ranges of 2^shift vertices (or keys).

A key holds source and target such that keys sort as edges do. *Narrow* keys (all ids below 2^32)
are ``source << 32 | target``. *Wide* keys are ``(source within its bucket) << 38 | target``; the
bucket is known from where the key is. Within a bucket the order of the input is kept. Refuses ids beyond what can be
an index, and to keep runs: the spill does.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.convert.sort.groups import bucket_of
from penstock.storage.convert.sort.weights import WeightExtent, bits, narrow, working_dtype
from penstock.storage.ingest.core.edge_columns import taken
from penstock.storage.ingest.core.edges import EdgeBatch

Keys = NDArray[np.uint64]
NARROW_BITS = 32
WIDE_BITS = 38
MAX_VERTICES = 1 << WIDE_BITS


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys [low, high] of one group; sources are counted from vertex ``base``."""

    low: int
    high: int
    base: int = 0

    def clipped(self, target_bits: int, vertices: int) -> "KeyRange":
        """The range without targets that are no vertices, as far as it has but one source."""
        source = self.high >> target_bits
        if self.low >> target_bits != source:
            return self
        return replace(self, high=min(self.high, (source << target_bits) + vertices - 1))


@dataclass(frozen=True, slots=True)
class KeyRun:
    """Keys (and weights) of one batch in order of buckets.

    ``table[b]`` is where bucket b begins, uint32, one more entry than buckets. Each has 2^``shift`` vertices (or keys);
    with ``octave_bits`` they are those of octaves (groups.py). ``extent`` is the range of the weights, ``largest`` the
    largest id (-1: unknown).
    """

    table: NDArray[np.uint32]
    shift: int
    wide: bool
    keys: Keys
    weights: NDArray[Any] | None
    extent: WeightExtent = field(default_factory=WeightExtent)
    largest: int = -1
    octave_bits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPacking:
    """How edges become keys: buckets per run, a power of two, or those of octaves with ``octave_bits`` (groups.py: all
    ids are below 2^32 then); mirrored or not, loops or not."""

    buckets: int
    octave_bits: int | None = None
    mirror: bool = False
    drop_loops: bool = False
    name: str = "input"


def pack_edges(batch: EdgeBatch, packing: KeyPacking) -> KeyRun:
    """Turn a batch into a run.

    Raises:
        InputError: an id is beyond what can be an index, or a weight is not finite.
    """
    largest = max(int(batch.sources.max()), int(batch.targets.max())) if len(batch) else -1
    shift, buckets, wide = _bucket_layout(largest, packing)
    counts = np.zeros(buckets, np.int64)
    mirror, drop = packing.mirror, packing.drop_loops
    width = (shift, -1 if packing.octave_bits is None else packing.octave_bits)
    count_edges(batch.sources, batch.targets, width, mirror, drop, counts)
    table, next_slot = _table(counts)
    keys = np.empty(int(table[-1]), np.uint64)
    narrowed, extent = (None, WeightExtent()) if batch.weights is None else narrow(batch.weights, packing.name)
    given = _as_bits(narrowed)
    moved = np.empty(len(keys) if narrowed is not None else 0, given.dtype)
    layout = (width, mirror, drop, wide)
    scatter_edges(batch.sources, batch.targets, given, layout, next_slot, (keys, moved))
    return KeyRun(table, shift, wide, keys, _from_bits(moved, narrowed), extent, largest, packing.octave_bits)


def pack_keys(keys: Keys, weights: NDArray[Any] | None, low: int, shift: int, buckets: int) -> KeyRun:
    """Turn keys into a run of ``buckets`` buckets of 2^shift keys each, from key ``low`` on."""
    counts = np.zeros(buckets, np.int64)
    base = np.uint64(low)
    count_keys(keys, base, shift, counts)
    table, next_slot = _table(counts)
    given = _as_bits(weights)
    placed = np.empty(len(keys), np.uint64)
    moved = np.empty(len(keys) if weights is not None else 0, given.dtype)
    scatter_keys(keys, given, (base, shift), next_slot, placed, moved)
    return KeyRun(table, shift, False, placed, _from_bits(moved, weights))


def _bucket_layout(largest: int, packing: KeyPacking) -> tuple[int, int, bool]:
    """Vertex bits of a bucket, number of buckets, and whether keys are wide."""
    if largest >= MAX_VERTICES:
        raise InputError(
            f"{packing.name}: vertex id {largest} is too large to be an index; --renumber keeps "
            "such ids and numbers the vertices that occur from 0"
        )
    if packing.octave_bits is not None:
        return 0, packing.buckets, False
    bits = max(1, largest.bit_length())
    if bits > NARROW_BITS:
        buckets = max(packing.buckets, 1 << (2 * WIDE_BITS - 64))
        return WIDE_BITS - (buckets.bit_length() - 1), buckets, True
    return max(0, bits - (packing.buckets.bit_length() - 1)), packing.buckets, False


def _table(counts: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts.astype(np.uint32), starts[:-1]


def _as_bits(weights: NDArray[Any] | None) -> NDArray[Any]:
    """Weights as uint32 or uint64, so that few kernels serve every dtype; empty without weights; of records places."""
    if weights is None:
        return np.empty(0, np.uint32)
    if weights.dtype.names:
        return np.arange(len(weights), dtype=np.uint32)
    return bits(weights.astype(working_dtype(weights.dtype), copy=False))


def _from_bits(moved: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[Any] | None:
    """What `_as_bits` made of weights, moved, in their dtype again."""
    if weights is None:
        return None
    if weights.dtype.names:
        return taken(weights, moved)
    return moved.view(working_dtype(weights.dtype)).astype(weights.dtype, copy=False)


@jit
def count_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    width: tuple[int, int],
    mirror: bool,
    drop_loops: bool,
    counts: NDArray[np.int64],
) -> None:
    """Count into ``counts`` the keys that `scatter_edges` will put into each bucket."""
    shift, octaves = width
    for i in range(len(sources)):
        source = np.uint64(sources[i])
        target = np.uint64(targets[i])
        if source == target:
            if not drop_loops:
                counts[bucket_of(source, shift, octaves)] += 1
            continue
        counts[bucket_of(source, shift, octaves)] += 1
        if mirror:
            counts[bucket_of(target, shift, octaves)] += 1


@jit
def scatter_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[Any],
    layout: tuple[tuple[int, int], bool, bool, bool],
    next_slot: NDArray[np.int64],
    packed: tuple[NDArray[np.uint64], NDArray[Any]],
) -> None:
    """Put each edge's key (and weight) into its bucket, in input order.

    ``layout`` is (bits of a bucket and of an octave, mirror, drop self-loops, wide); ``next_slot`` holds where each
    bucket begins and is advanced; ``packed`` are the keys and weights to be written; ``weights``
    is empty without weights.
    """
    (shift, octaves), mirror, drop_loops, wide = layout
    keys, moved = packed
    inside = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    weighted = len(weights) > 0
    copies = 2 if mirror else 1
    for i in range(len(sources)):
        source = np.uint64(sources[i])
        target = np.uint64(targets[i])
        if source == target and drop_loops:
            continue
        for _ in range(1 if source == target else copies):
            bucket = bucket_of(source, shift, octaves)
            slot = np.uint64(next_slot[bucket])  # unsigned: numba looks at the sign of others
            next_slot[bucket] = slot + np.uint64(1)
            if wide:
                keys[slot] = (source & inside) << np.uint64(WIDE_BITS) | target
            else:
                keys[slot] = source << np.uint64(NARROW_BITS) | target
            if weighted:
                moved[slot] = weights[i]
            source, target = target, source


@jit
def count_keys(keys: NDArray[np.uint64], low: Any, shift: int, counts: NDArray[np.int64]) -> None:
    """Count keys per bucket of ``2^shift`` keys from ``low`` on."""
    move = np.uint64(shift)
    for i in range(len(keys)):
        counts[(keys[i] - low) >> move] += 1


@jit
def scatter_keys(
    keys: NDArray[np.uint64],
    weights: NDArray[Any],
    layout: tuple[Any, int],
    next_slot: NDArray[np.int64],
    placed: NDArray[np.uint64],
    moved: NDArray[Any],
) -> None:
    """Put each key (and weight) into its bucket, in order; ``layout`` is (low, shift)."""
    low, shift = layout
    move = np.uint64(shift)
    weighted = len(weights) > 0
    for i in range(len(keys)):
        bucket = (keys[i] - low) >> move
        slot = np.uint64(next_slot[bucket])
        next_slot[bucket] = slot + np.uint64(1)
        placed[slot] = keys[i]
        if weighted:
            moved[slot] = weights[i]


@jit
def widen_keys(keys: NDArray[np.uint64], first: Any) -> None:
    """Turn narrow keys into wide ones whose sources are counted from vertex ``first``."""
    for i in range(len(keys)):
        source = (keys[i] >> np.uint64(NARROW_BITS)) - first
        target = keys[i] & np.uint64(0xFFFFFFFF)
        keys[i] = source << np.uint64(WIDE_BITS) | target
