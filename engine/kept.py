"""Rows kept in memory for intersection: of some neighboring vertices the edges that belong to them.

Owns the growing arrays. See `kernels/corners.py` for which edges those are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class KeptRows:
    """Rows from vertex `first` on: starts int64 (rows + 1,), targets (edges,) ascending in each row, arcs uint8."""

    def __init__(self, first: int, vertex_dtype: Any) -> None:
        self.first = first
        self.starts = np.zeros(1, dtype=np.int64)
        self.targets = np.empty(0, dtype=vertex_dtype)
        self.arcs = np.empty(0, dtype=np.uint8)

    def extend(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.uint8]]:
        """Make room for rows of so many edges: where each begins, and the arrays to write them to."""
        begins = self.starts[-1] + np.concatenate([[0], np.cumsum(counts)])
        self.starts = np.concatenate([self.starts, begins[1:]])
        self.targets = np.concatenate([self.targets, np.empty(int(counts.sum()), dtype=self.targets.dtype)])
        self.arcs = np.concatenate([self.arcs, np.empty(int(counts.sum()), dtype=np.uint8)])
        return begins[:-1], self.targets, self.arcs

    @property
    def last(self) -> int:
        """Past the last vertex whose row is here."""
        return self.first + len(self.starts) - 1

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them."""
        return np.uint64(self.first), self.starts, self.targets, self.arcs
