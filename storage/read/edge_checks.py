"""What can be checked of a chunk of edges alone: their order, their hash sums, the range of their weights.

The sums compare adjacencies as multisets of edges whatever their order: every edge (source, target, bits of its weight)
is mixed to 64 bits and all are added up modulo 2^64, as in the incremental hashes of multisets of Clarke et al.
(ASIACRYPT 2003), here against accidents and not against adversaries.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.format.index import Index

_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xC2B2AE3D27D4EB4F)
_C = np.uint64(0x165667B19E3779F9)
_S = np.uint64(31)


@jit
def _fill_rows(bases: Any, offsets: Any, shift: int, first: int, row: int, rows: Any) -> None:
    """Write the row of every edge from number ``first`` on, which is in ``row``."""
    end = bases[(row + 1) >> shift] + np.int64(offsets[row + 1])
    for i in range(len(rows)):
        while end <= first + i:
            row += 1
            end = bases[(row + 1) >> shift] + np.int64(offsets[row + 1])
        rows[i] = row


@jit
def _first_unsorted(rows: Any, neighbors: Any, weights: Any) -> int:
    """Return the first edge that belongs before the one before it, -1 if there is none."""
    for i in range(1, len(rows)):
        if rows[i] != rows[i - 1]:
            continue
        if neighbors[i] < neighbors[i - 1]:
            return i
        if len(weights) and neighbors[i] == neighbors[i - 1] and weights[i] < weights[i - 1]:
            return i
    return -1


@jit
def _mixed_sum(sources: Any, targets: Any, bits: Any) -> Any:
    """The sum modulo 2^64 of every edge mixed to 64 bits."""
    total = np.uint64(0)
    for i in range(len(sources)):
        value = np.uint64(sources[i]) * _A + np.uint64(targets[i]) * _B
        if len(bits):
            value += np.uint64(bits[i]) * _C
        value ^= value >> _S
        value *= _B
        total += value ^ (value >> _S)
    return total


@jit
def _first_on_one_side(rows: Any, neighbors: Any, left: int) -> int:
    """Return the first edge that does not lead from one side to the other, -1 if there is none."""
    for i in range(len(rows)):
        if (rows[i] < left) == (neighbors[i] < left):
            return i
    return -1


@dataclass(frozen=True, slots=True)
class EdgeChecks:
    """Of one chunk: its first and last edge as (row, neighbor, weight), the edge that is out of order and the one
    that stays on its side (-1: none), sums of (row, neighbor) and of (neighbor, row), smallest and largest weight."""

    first: tuple[int, int, float]
    last: tuple[int, int, float]
    unsorted: int = -1
    same_side: int = -1
    hash_sum: int = 0
    reversed_hash_sum: int = 0
    low: float = 0.0
    high: float = 0.0

    @property
    def weights_are_finite(self) -> bool:
        """Whether no weight is infinite or not a number (then neither smallest nor largest is a number)."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


def check_edges(index: Index, first: int, items: tuple[NDArray[Any], ...], left: int | None) -> EdgeChecks:
    """Look at the edges from number ``first`` on: ``items`` are neighbors, and weights if there are any.

    ``left``: how many vertices are sources of a bipartite graph.
    """
    neighbors = items[0].astype(np.int64)
    weights = items[1] if len(items) > 1 else np.empty(0, np.uint8)
    rows = np.empty(len(neighbors), np.int64)
    _fill_rows(*index.arrays(), first, index.row_of(first), rows)
    bits = weights.view(f"u{weights.itemsize}")
    values = weights if len(weights) else np.zeros(1, np.uint8)
    return EdgeChecks(
        first=_edge(rows, neighbors, values, 0),
        last=_edge(rows, neighbors, values, -1),
        unsorted=_after(first, int(_first_unsorted(rows, neighbors, weights))),
        same_side=-1 if left is None else _after(first, int(_first_on_one_side(rows, neighbors, left))),
        hash_sum=int(_mixed_sum(rows, neighbors, bits)),
        reversed_hash_sum=int(_mixed_sum(neighbors, rows, bits)),
        low=float(values.min()),
        high=float(values.max()),
    )


def _edge(rows: NDArray[Any], neighbors: NDArray[Any], weights: NDArray[Any], at: int) -> tuple[int, int, float]:
    return int(rows[at]), int(neighbors[at]), float(weights[at])


def _after(first: int, at: int) -> int:
    return at if at < 0 else first + at
