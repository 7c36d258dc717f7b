"""Rows kept in memory for intersection: of some neighboring vertices the edges that belong to them.

Owns the arrays: on the host they grow, on a device they are as long as they can become from the start. See
`kernels/host/whole_rows/triangles.py` for which edges those are.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray


class OrientedRows:
    """Rows from vertex `first` on: starts int64 (rows + 1,), targets (edges,), arcs uint8.

    In each row those with most neighbors come first, where these tie the largest id.
    """

    def __init__(self, first: int, vertex_dtype: Any) -> None:
        self._vertex_dtype = vertex_dtype
        self.begin(first)

    def begin(self, first: int) -> None:
        """Forget all rows; the next one is that of vertex `first`."""
        self.first = first
        self.starts = np.zeros(1, dtype=np.int64)
        self.targets = np.empty(0, dtype=self._vertex_dtype)
        self.arcs = np.empty(0, dtype=np.uint8)

    def fill(self, first: int, starts: NDArray[np.int64], targets: NDArray[Any], put: Callable[..., None]) -> None:
        """Hold these rows, from vertex `first` on, without arcs."""
        self.begin(first)
        self.starts, self.targets = starts, targets

    def extend(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.uint8]]:
        """Make room for rows of so many edges: where each begins, and the arrays to write them to."""
        begins = self.starts[-1] + np.concatenate([[0], np.cumsum(counts)])
        self.starts = np.concatenate([self.starts, begins[1:]])
        self.targets = np.concatenate([self.targets, np.empty(int(counts.sum()), dtype=self.targets.dtype)])
        self.arcs = np.concatenate([self.arcs, np.empty(int(counts.sum()), dtype=np.uint8)])
        return begins[:-1], self.targets, self.arcs

    def part(self, first: int, last: int) -> OrientedRows:
        """The rows from number `first` to `last` - 1, in the same arrays."""
        found = OrientedRows(self.first + first, self._vertex_dtype)
        found.starts, found.targets, found.arcs = self.starts[first : last + 1], self.targets, self.arcs
        return found

    @property
    def last(self) -> int:
        """Past the last vertex whose row is here."""
        return self.first + len(self.starts) - 1

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them."""
        return np.uint64(self.first), self.starts, self.targets, self.arcs


class DeviceOrientedRows:
    """The same on a device; rows in two ascending parts, the second from middles[row] on (see `triangles.py`).

    starts int64 (rows + 1,), middles int64 (rows,), targets (edges,), arcs uint8; filled int64 (1,): edges so far.
    """

    def __init__(self, empty: Callable[[int, Any], Any], rows: int, edges: int, vertex_dtype: Any) -> None:
        self.first = self.rows = 0
        self.starts, self.middles = empty(rows + 1, np.int64), empty(rows, np.int64)
        self.targets, self.arcs = empty(edges, vertex_dtype), empty(edges, np.uint8)
        self.filled = empty(1, np.int64)

    def begin(self, first: int) -> None:
        """Forget all rows; the next one is that of vertex `first`."""
        self.first, self.rows = first, 0
        self.filled[...] = 0

    def fill(self, first: int, starts: NDArray[np.int64], targets: NDArray[Any], put: Callable[..., None]) -> None:
        """Hold these rows, which ascend, without arcs; put: what copies values into an array of the device."""
        self.begin(first)
        self.append(len(starts) - 1)
        put(self.starts[: len(starts)], starts)
        put(self.middles[: self.rows], starts[1:])
        put(self.targets[: len(targets)], targets)

    def append(self, rows: int) -> int:
        """Count so many rows more; the number of the first of them."""
        before = self.rows
        self.rows += rows
        return before

    def part(self, first: int, last: int) -> DeviceOrientedRows:
        """The rows from number `first` to `last` - 1, in the same arrays."""
        found = copy(self)
        found.first, found.rows = self.first + first, last - first
        found.starts, found.middles = self.starts[first : last + 1], self.middles[first:last]
        return found

    @property
    def last(self) -> int:
        """Past the last vertex whose row is here."""
        return self.first + self.rows

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them: first, starts, middles, targets, arcs."""
        return np.uint64(self.first), self.starts[: self.rows + 1], self.middles, self.targets, self.arcs
