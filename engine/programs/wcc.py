"""Weakly connected components by a disjoint-set forest.

Afforest (Sutton, Ben-Nun, Barak, IPDPS 2018): link a few neighbors of every vertex first, then only what is outside
the largest tree. A component is named by its smallest original id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import VERTEX, Field, Program, Start
from penstock.engine.program.vertex_ids import smallest_members
from penstock.engine.program.vertex_ranges import ALONE
from penstock.storage.base.budget import cores
from penstock.storage.format.graph import Graph

NUMBERED = 1 << 20
"""Vertices that are numbered together where one thread does, or a GPU."""


class WCC(Program):
    """Component of every vertex, named by its smallest original id; edge direction is ignored."""

    component = Field(VERTEX)
    combine = "union"
    starts_anywhere = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex is its own tree."""
        component = state["component"]

        if isinstance(component, np.ndarray) and len(component) > ALONE:
            from penstock.engine.kernels.host.filling import number  # imports Numba, which a GPU's run does without

            number(component, threads=cores())
        else:
            for first in range(0, len(component), NUMBERED):
                last = min(first + NUMBERED, len(component))
                component[first:last] = np.arange(first, last, dtype=component.dtype, like=component)
        return Start(everything=True)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Name every tree by the smallest original id in it."""
        root = state["component"]
        return {"component": root if graph.original is None else smallest_members(graph, root)}
