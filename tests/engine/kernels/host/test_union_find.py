"""Forests that several threads compress."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.jit import use_workers
from penstock.engine.kernels.host.union_find import compress


def test_deep_trees_are_flat_whoever_comes_first() -> None:
    """Threads that climb one path write to the same vertices; a late one must not undo what another has found."""
    random = np.random.default_rng(1)
    use_workers(2)
    for _ in range(20):
        forest = np.maximum(np.arange(1 << 16) - 1 - random.integers(0, 4, 1 << 16), 0).astype(np.uint32)
        compress(2, len(forest), np.uint64(0), forest)
        assert not forest.any()
