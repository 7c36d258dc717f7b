"""Two sampled neighborhoods are the same."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_same(one: Any, other: Any) -> None:
    """Compare all that a sample has."""
    for name in ("node", "vertex", "row", "col", "edge", "nodes_per_hop", "edges_per_hop", "batch"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
