"""The check of CSR arrays given from Python: sorted rows, ids that exist, weights that fit.

An unsorted row is an error that names it: sorting it here would move weights that the caller may address by position.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.encoding.codec import checksum
from penstock.storage.format.index import Index, from_offsets
from penstock.storage.format.schema import narrow_weights, vertex_dtype


@jit
def _first_unsorted(offsets: Any, neighbors: Any) -> int:
    """Return the first row whose neighbors do not ascend, -1 if all do."""
    for v in range(len(offsets) - 1):
        for e in range(offsets[v] + 1, offsets[v + 1]):
            if neighbors[e] < neighbors[e - 1]:
                return v
    return -1


@jit
def _self_loops(offsets: Any, neighbors: Any) -> int:
    loops = 0
    for v in range(len(offsets) - 1):
        for e in range(offsets[v], offsets[v + 1]):
            loops += neighbors[e] == v
    return loops


@dataclass(frozen=True, slots=True)
class CsrArrays:
    """CSR arrays that were checked: int64 offsets, uint32 or uint64 neighbors, narrow weights."""

    offsets: NDArray[np.int64]
    neighbors: NDArray[Any]
    weights: NDArray[Any] | None

    @staticmethod
    def checked(offsets: ArrayLike, neighbors: ArrayLike, weights: ArrayLike | None, name: str) -> "CsrArrays":
        """Return the arrays in our dtypes, copied only where they have others."""
        raw, ids = np.asarray(offsets), np.asarray(neighbors)
        if raw.ndim != 1 or len(raw) == 0 or raw.dtype.kind not in "iu":
            raise InputError(f"{name}: offsets must be vertices + 1 integers, not {raw.dtype}")
        if ids.ndim != 1 or (ids.dtype.kind not in "iu" and len(ids)):
            raise InputError(f"{name}: neighbors must be integers in one dimension")
        starts = np.ascontiguousarray(raw, np.int64)
        if starts[0] != 0 or starts[-1] != len(ids) or (np.diff(starts) < 0).any():
            raise InputError(
                f"{name}: offsets must rise from 0 to the number of neighbors, {len(ids)}; "
                f"they go from {starts[0]} to {starts[-1]}"
            )
        vertices = len(starts) - 1
        if len(ids) and not (ids.min() >= 0 and ids.max() < vertices):
            raise InputError(f"{name}: neighbors must be ids from 0 to {vertices - 1}")
        ids = np.ascontiguousarray(ids, vertex_dtype(vertices))
        row = _first_unsorted(starts, ids)
        if row >= 0:
            raise InputError(
                f"{name}: row {row} is not sorted by neighbor; sort it with its weights (scipy: matrix.sort_indices())"
            )
        return CsrArrays(starts, ids, _checked_weights(weights, len(ids), name))

    def index(self) -> Index:
        """Return the row index."""
        return from_offsets(self.offsets)

    def weight_range(self) -> tuple[float, float, float] | None:
        """Return the smallest, mean and largest weight, None without weights, zeros without edges."""
        if self.weights is None:
            return None
        if len(self.weights) == 0:
            return (0.0, 0.0, 0.0)
        weights = self.weights
        with np.errstate(over="ignore"):  # the mean of weights near the largest float is infinite then
            mean = float(weights.mean(dtype=np.float64))
        return float(weights.min()), mean, float(weights.max())

    def self_loops(self) -> int:
        """Count edges from a vertex to itself."""
        return int(_self_loops(self.offsets, self.neighbors))

    def identity(self) -> str:
        """Return a fingerprint of the graph, 32 hexadecimal digits."""
        values = 0 if self.weights is None else checksum(self.weights)
        return f"{checksum(self.offsets):016x}{checksum(self.neighbors) ^ values:016x}"


def _checked_weights(weights: ArrayLike | None, edges: int, name: str) -> NDArray[Any] | None:
    if weights is None:
        return None
    values = np.ascontiguousarray(weights)
    if values.shape != (edges,) or values.dtype.kind not in "biuf":
        raise InputError(f"{name}: {edges} edges need one numeric weight each, not {values.shape}")
    return narrow_weights(values, name)
