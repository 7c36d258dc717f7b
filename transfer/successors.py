"""Successors: whom the active rows of a partition lead to, found in host memory before any kernel has run.

Owns the loops over marked rows and over what they lead to, compiled and free of Python's lock. Serves `cel-structural`,
WolfGraph's own rule (Zhu et al., FGCS 2020): a carrier's successors travel whether or not the carrier changes them.
Refuses rows that do not lie wholly in one partition and in what the walk has passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.transfer.staging.gather import ActiveRows, GatherSource
from penstock.transfer.values.task import Partition

_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


def mark_successors(active: ActiveRows, part: Partition, source: GatherSource, found: NDArray[np.uint64]) -> None:
    """Mark in `found` (bit k = vertex k) every neighbor of an active row's part that lies in the partition."""
    marks = np.zeros(0, np.uint8) if active.marks is None else active.marks.view(np.uint8)
    bases, offsets, shift = active.index
    bounds = part.v0, part.v1, active.first, part.e0, part.e1
    _mark(marks, (bases, offsets, int(shift)), bounds, source.neighbors, source.s0, found)


def keep_whole_rows(
    found: NDArray[np.uint64], active: ActiveRows, passed: NDArray[np.uint8], sizes: tuple[int, int]
) -> NDArray[np.int64]:
    """Unmark every row that has no edges, or any in a chunk that is not passed, or that two partitions share.

    passed: uint8, one for each chunk. sizes: edges of a partition, of a chunk. Returns rows and edges of each partition
    that are left, int64[2, partitions].
    """
    bases, offsets, shift = active.index
    counts = np.zeros((2, -(-len(passed) * sizes[1] // sizes[0])), dtype=np.int64)
    _keep(found, (bases, offsets, int(shift)), passed, sizes, counts)
    return counts


def unmark(found: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
    """Unmark these rows."""
    at = np.unique(rows).astype(np.uint64)
    np.bitwise_and.at(found, at >> _SIX, ~(_ONE << (at & _LOW)))


@jit
def _mark(marks: Any, index: Any, bounds: Any, neighbors: Any, s0: int, found: Any) -> None:
    bases, offsets, shift = index
    v0, v1, first, e0, e1 = bounds
    for v in range(v0, v1):
        at = v - first
        if len(marks) and not (marks[at >> 3] >> (at & 7)) & 1:
            continue
        start = max(bases[v >> shift] + np.int64(offsets[v]), e0)
        end = min(bases[(v + 1) >> shift] + np.int64(offsets[v + 1]), e1)
        for e in range(start, end):
            target = np.uint64(neighbors[e - s0])
            found[target >> _SIX] |= _ONE << (target & _LOW)


@jit
def _keep(found: Any, index: Any, passed: Any, sizes: Any, counts: Any) -> None:
    bases, offsets, shift = index
    partition_edges, step = sizes
    for word in range(len(found)):
        bits = found[word]
        if bits == 0:
            continue
        for at in range(64):
            bit = _ONE << np.uint64(at)
            if bits & bit == 0:
                continue
            v = word * 64 + at
            start = bases[v >> shift] + np.int64(offsets[v])
            end = bases[(v + 1) >> shift] + np.int64(offsets[v + 1])
            part = start // partition_edges
            here = end > start and part == (end - 1) // partition_edges
            for chunk in range(start // step, (end - 1) // step + 1):
                here = here and passed[chunk] != 0
            if here:
                counts[0, part] += 1
                counts[1, part] += end - start
            else:
                found[word] &= ~bit
