"""Which device walks which edges: contiguous ranges of partitions with equal numbers of edges (Lux, VLDB 2017)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def owners(lengths: NDArray[np.int64], shares: list[float]) -> NDArray[np.int64]:
    """Owner (device number) of each partition, ascending.

    lengths: edges of each partition, int64 (p,). shares: relative speed of each device, positive.
    """
    if len(lengths) == 0:
        return np.zeros(0, dtype=np.int64)
    middle = np.cumsum(lengths) - lengths / 2
    bounds = np.cumsum(shares) / np.sum(shares) * lengths.sum()
    return np.minimum(np.searchsorted(bounds, middle, side="right"), len(shares) - 1).astype(np.int64)
