"""Owns the compiled first step: edges become 64-bit keys, put in order of coarse vertex ranges.

A key holds source and target such that keys sort as edges do. *Narrow* keys (all ids below 2^32)
are ``source << 32 | target``. *Wide* keys are ``(source within its bucket) << 38 | target``; the
bucket is known from where the key lies. Within a bucket the order of the input is kept.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

NARROW_BITS = 32
WIDE_BITS = 38
MAX_VERTICES = 1 << WIDE_BITS


@jit
def count_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    shift: int,
    mirror: bool,
    drop_loops: bool,
    counts: NDArray[np.int64],
) -> None:
    """Count into ``counts`` the keys that `scatter_edges` will put into each bucket."""
    move = np.uint64(shift)
    for i in range(len(sources)):
        source = np.uint64(sources[i])
        target = np.uint64(targets[i])
        if source == target:
            if not drop_loops:
                counts[source >> move] += 1
            continue
        counts[source >> move] += 1
        if mirror:
            counts[target >> move] += 1


@jit
def scatter_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[Any],
    layout: tuple[int, bool, bool, bool],
    next_slot: NDArray[np.int64],
    packed: tuple[NDArray[np.uint64], NDArray[Any]],
) -> None:
    """Put each edge's key (and weight) into its bucket, in input order.

    ``layout`` is (bits of a bucket, mirror, drop self-loops, wide); ``next_slot`` holds where each
    bucket begins and is advanced; ``packed`` are the keys and weights to be written; ``weights``
    is empty without weights.
    """
    shift, mirror, drop_loops, wide = layout
    keys, moved = packed
    move = np.uint64(shift)
    inside = (np.uint64(1) << move) - np.uint64(1)
    weighted = len(weights) > 0
    copies = 2 if mirror else 1
    for i in range(len(sources)):
        source = np.uint64(sources[i])
        target = np.uint64(targets[i])
        if source == target and drop_loops:
            continue
        for _ in range(1 if source == target else copies):
            bucket = source >> move
            slot = next_slot[bucket]
            next_slot[bucket] = slot + 1
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
        slot = next_slot[bucket]
        next_slot[bucket] = slot + 1
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
