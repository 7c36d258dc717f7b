"""Widest paths: the largest bottleneck, that is the largest smallest weight, of any path from the source.

The (max, min) semiring in the place of SSSP's (min, +); Pollack, Operations Research 1960. Weights may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Field, Program, Start
from penstock.engine.program.vertex_ids import internal_ids
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.format.graph import Graph

WIDEST = np.int64(2**63 - 1)


class WidestPath(Program):
    """`width` from `source` (original id, or several) to every vertex; an unweighted graph's edges have width 1.

    weight: whether edges count by their weights where the graph has some (False or None: each has width 1).
    int64 for integer weights, the source itself having 2^63 - 1; float64 for float weights, the source having infinity.
    """

    width = Field(np.int64, fill=-1, unreached=-1)
    combine = "max"
    self_combining = True
    starts_anywhere = True

    def __init__(self, source: int | Sequence[int], weight: bool | str | None = True) -> None:
        self.source = source
        self.needs_weights = counts_by_weight(weight)

    def form(self, graph: Graph, mode: str) -> Program:
        """Float widths for float weights."""
        floats = self.needs_weights and graph.weight_dtype is not None and graph.weight_dtype.kind == "f"
        return FloatWidestPath(self.source) if floats and type(self) is WidestPath else self

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Nothing narrows the way to the sources."""
        first = internal_ids(graph, self.source)
        width = state["width"]
        width[first] = np.inf if width.dtype.kind == "f" else WIDEST
        return Start(active=first)

    def edge(width, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: the width by way of it."""
        return min(width, weight)


class FloatWidestPath(WidestPath):
    """Widest paths over float weights."""

    width = Field(np.float64, fill=-np.inf, unreached=-np.inf)
