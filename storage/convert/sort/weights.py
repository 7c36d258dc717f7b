"""Owns the rule for weights: the narrowest of uint8, uint16, uint32, float32, float64 that holds all.

float32 counts only if it holds every weight exactly; whole numbers from 2^32 and negative ones
become floats. Refuses what is not finite, and whole numbers that no float64 holds.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.format.schema import check_whole_weights
from penstock.storage.ingest.core.edge_columns import WEIGHT

_LARGEST = (1 << 32) - 1
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class WeightExtent:
    """What is known of all weights seen: whether all are whole numbers below 2^32, whether float32
    holds all exactly, the largest, and their sum (float64)."""

    whole: bool = True
    exact32: bool = True
    largest: float = 0.0
    total: float = 0.0

    def joined(self, other: "WeightExtent") -> "WeightExtent":
        """The range of both."""
        return WeightExtent(
            self.whole and other.whole,
            self.exact32 and other.exact32,
            max(self.largest, other.largest),
            self.total + other.total,
        )

    def dtype(self, *, summed: bool = False) -> np.dtype[Any]:
        """The narrowest dtype; for sums of parallel edges one that holds any sum of them."""
        largest = self.total if summed else self.largest
        if self.whole and largest <= _LARGEST:
            return np.dtype(np.min_scalar_type(int(largest)))
        if self.exact32 and not summed:
            return np.dtype(np.float32)
        return np.dtype(np.float64)


def narrow(weights: NDArray[Any], name: str) -> tuple[NDArray[Any], WeightExtent]:
    """``weights`` in the narrowest dtype that holds them, and their range; records as they are.

    Raises:
        InputError: a weight is not finite, or a whole number that would be rounded.
    """
    if weights.dtype.names:
        return weights, narrow(weights[WEIGHT], name)[1] if WEIGHT in weights.dtype.names else WeightExtent()
    if len(weights) == 0:
        return np.empty(0, np.uint8), WeightExtent()
    if weights.dtype in (np.uint8, np.uint16, np.uint32):
        largest = int(weights.max())
        total = float(weights.sum(dtype=np.uint64))
        extent = WeightExtent(True, largest <= 1 << 24, largest, total)
    else:
        check_whole_weights(weights, name)
        values = np.ascontiguousarray(weights, np.float64)
        bad, whole, exact32, top, total = _measure(values)
        if bad >= 0:
            raise InputError(
                f"{name}: a weight is {values[bad]}, and weights must be finite; drop such edges, or leave weights out"
            )
        extent = WeightExtent(bool(whole), bool(exact32), float(top), float(total))
    return weights.astype(extent.dtype(), copy=False), extent


@jit
def _measure(values: NDArray[np.float64]) -> tuple[int, bool, bool, float, float]:
    whole = True
    exact32 = True
    largest = 0.0
    total = 0.0
    for i in range(len(values)):
        value = values[i]
        if not np.isfinite(value):
            return i, False, False, 0.0, 0.0
        if value < 0.0 or value > 4294967295.0 or value != np.floor(value):
            whole = False
        if np.float64(np.float32(value)) != value:
            exact32 = False
        largest = max(largest, value)
        total += value
    return -1, whole, exact32, largest, total


def working_dtype(final: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which weights are sorted and combined: uint32, float32, float64, or that of records."""
    return np.dtype(np.uint32) if final.kind == "u" else final


def bits(weights: NDArray[Any]) -> NDArray[Any]:
    """The same memory as unsigned integers, which sorting moves about."""
    return weights.view(np.uint64 if weights.itemsize == 8 else np.uint32)


def to_ordered(weights: NDArray[Any]) -> NDArray[np.uint64]:
    """Weights as integers that sort as they do."""
    if weights.dtype.kind == "u":
        return weights.astype(np.uint64)
    raw = weights.astype(np.float64).view(np.uint64)
    return np.where(raw & _SIGN, ~raw, raw | _SIGN)


def from_ordered(keys: NDArray[np.uint64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The weights again."""
    if dtype.kind == "u":
        return keys.astype(dtype)
    raw = np.where(keys & _SIGN, keys & ~_SIGN, ~keys)
    return raw.view(np.float64).astype(dtype)
