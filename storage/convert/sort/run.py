"""Owns runs: the keys of one batch in order of *buckets*, ranges of 2^shift vertices (or of keys).

Refuses ids beyond what can be an index, and to keep runs: the spill does.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.convert.sort import key_pack
from penstock.storage.convert.sort import weights as weighing
from penstock.storage.convert.sort.weights import WeightRange
from penstock.storage.format.edges import EdgeBatch

Keys = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class KeyRun:
    """Keys (and weights) of one batch in order of buckets.

    ``table[b]`` is where bucket b begins, uint32, one more entry than buckets. ``extent`` is the range of the
    weights, ``largest`` the largest id (-1: unknown).
    """

    table: NDArray[np.uint32]
    shift: int
    wide: bool
    keys: Keys
    weights: NDArray[Any] | None
    extent: WeightRange = field(default_factory=WeightRange)
    largest: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How edges become keys: buckets per run (a power of two), mirrored or not, loops or not."""

    buckets: int
    mirror: bool = False
    drop_loops: bool = False
    name: str = "input"


def pack_edges(batch: EdgeBatch, packing: Packing) -> KeyRun:
    """Turn a batch into a run.

    Raises:
        InputError: an id is beyond what can be an index, or a weight is not finite.
    """
    largest = max(int(batch.sources.max()), int(batch.targets.max())) if len(batch) else -1
    shift, buckets, wide = _bucket_layout(largest, packing)
    counts = np.zeros(buckets, np.int64)
    mirror, drop = packing.mirror, packing.drop_loops
    key_pack.count_edges(batch.sources, batch.targets, shift, mirror, drop, counts)
    table, next_slot = _table(counts)
    keys = np.empty(int(table[-1]), np.uint64)
    narrowed, extent = (None, WeightRange()) if batch.weights is None else weighing.narrow(batch.weights, packing.name)
    given = _as_bits(narrowed)
    moved = np.empty(len(keys) if narrowed is not None else 0, given.dtype)
    layout = (shift, mirror, drop, wide)
    key_pack.scatter_edges(batch.sources, batch.targets, given, layout, next_slot, (keys, moved))
    return KeyRun(table, shift, wide, keys, _from_bits(moved, narrowed), extent, largest)


def pack_keys(keys: Keys, weights: NDArray[Any] | None, low: int, shift: int, buckets: int) -> KeyRun:
    """Turn keys into a run of ``buckets`` buckets of 2^shift keys each, from key ``low`` on."""
    counts = np.zeros(buckets, np.int64)
    base = np.uint64(low)
    key_pack.count_keys(keys, base, shift, counts)
    table, next_slot = _table(counts)
    given = _as_bits(weights)
    placed = np.empty(len(keys), np.uint64)
    moved = np.empty(len(keys) if weights is not None else 0, given.dtype)
    key_pack.scatter_keys(keys, given, (base, shift), next_slot, placed, moved)
    return KeyRun(table, shift, False, placed, _from_bits(moved, weights))


def _bucket_layout(largest: int, packing: Packing) -> tuple[int, int, bool]:
    """Vertex bits of a bucket, number of buckets, and whether keys are wide."""
    if largest >= key_pack.MAX_VERTICES:
        raise InputError(
            f"{packing.name}: vertex id {largest} is too large to be an index; --renumber keeps "
            "such ids and numbers the vertices that occur from 0"
        )
    bits = max(1, largest.bit_length())
    if bits > key_pack.NARROW_BITS:
        buckets = max(packing.buckets, 1 << (2 * key_pack.WIDE_BITS - 64))
        return key_pack.WIDE_BITS - (buckets.bit_length() - 1), buckets, True
    return max(0, bits - (packing.buckets.bit_length() - 1)), packing.buckets, False


def _table(counts: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts.astype(np.uint32), starts[:-1]


def _as_bits(weights: NDArray[Any] | None) -> NDArray[Any]:
    """Weights as uint32 or uint64, so that few kernels serve every dtype; empty without weights."""
    if weights is None:
        return np.empty(0, np.uint32)
    return weighing.bits(weights.astype(weighing.working_dtype(weights.dtype), copy=False))


def _from_bits(moved: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[Any] | None:
    """What `_as_bits` made of weights, moved, in their dtype again."""
    if weights is None:
        return None
    return moved.view(weighing.working_dtype(weights.dtype)).astype(weights.dtype, copy=False)
