"""Programs of this backend alone: numbers that functions of networkx are made of."""

from __future__ import annotations

import numpy as np
from penstock.engine.program.program import Field, Program
from penstock.engine.programs.weights import Sums


class CountLoops(Sums):
    """One sweep: `loops` (int64), the number of edges from a vertex to itself; `degrees` counts each once."""

    loops = Field(np.int64)

    def edge(source, target):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return 1 if source == target else 0


class CountPairs(Program):
    """`linked` (int64): ordered pairs of neighbors that are neighbors; `neighbors` (int64): distinct ones."""

    linked = Field(np.int64)
    neighbors = Field(np.int64, constant=True)
    combine = "sum"
    along = "both"

    def corner(opposite):  # type: ignore[no-untyped-def]
        """What each corner of a triangle gets: the edge between its two other corners, once each way."""
        return opposite

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The count."""
        return incoming
