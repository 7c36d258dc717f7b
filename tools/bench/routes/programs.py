"""Owns two programs that `penstock bench routes` compares besides ours: those of the papers that CEL comes from.

Levels and labels by asynchronous pushes, as WolfGraph and HyTGraph have BFS and components. Ours do less (`bfs` pulls
and leaves early, `wcc` links trees) and so leave nothing for rows that follow a carrier. Refuses nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.program.vertex_ids import internal_ids
from penstock.storage.format.graph import Graph


class Levels(Program):
    """Edges from `source` (original id), by relaxing: shortest paths where every edge counts one."""

    level = Field(np.uint32, fill=LARGEST, unreached=LARGEST)
    combine = "min"
    self_combining = True

    def __init__(self, source: int) -> None:
        self.source = source

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The source is at level 0."""
        first = internal_ids(graph, self.source)
        state["level"][first] = 0
        return Start(active=first)

    def edge(level):  # type: ignore[no-untyped-def]
        """Travels along an edge: one level more."""
        return level + 1  # type: ignore[operator]


class Labels(Program):
    """The smallest internal id that leads to a vertex, its own included: a component's, in an undirected graph."""

    label = Field(VERTEX)
    combine = "min"
    self_combining = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Everybody has his own label, and sends it."""
        state["label"][:] = np.arange(graph.vertices)
        return Start(everything=True)

    def edge(label):  # type: ignore[no-untyped-def]
        """Travels along an edge: the label."""
        return label
