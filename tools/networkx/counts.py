"""Programs of this backend alone: numbers that functions of networkx are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.programs.articulation import Articulation, count_blocks
from penstock.engine.programs.bridges import Bridges
from penstock.engine.programs.spanning_forest import SpanningForest
from penstock.engine.programs.weights import Sums
from penstock.storage.format.graph import Graph


class CountLoops(Sums):
    """One sweep: `loops` (int64), the number of edges from a vertex to itself; `degrees` counts each once."""

    loops = Field(np.int64)

    def edge(source, target):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return 1 if source == target else 0


class NeighborSums(Sums):
    """One sweep: `total` (int64), the sum of a number of the vertices that a vertex's edges lead to.

    numbers: int64 (vertices,).
    """

    total = Field(np.int64)
    number = Field(np.int64, constant=True, output=False)
    along = "in"

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        super().__init__(weight=False)
        self._numbers = numbers

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has its number."""
        state["number"][:] = self._numbers
        return Start(everything=True)

    def edge(number):  # type: ignore[no-untyped-def]
        """Travels against an edge: the number."""
        return number


class BridgeEnds(Bridges):
    """`bridge_to`: as of `bridges`, but the internal id, and no parts."""

    bridge_to = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    component = Field(VERTEX, output=False)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The ends as they are."""
        return {"bridge_to": state["bridge_to"]}


class BlockTops(Articulation):
    """`component`, `top`: as of `articulation`, but internal ids, and components named by any of their vertices."""

    articulation = Field(np.uint8, output=False)
    blocks = Field(np.uint32, output=False)
    component = Field(VERTEX)
    top = Field(VERTEX, fill=LARGEST, unreached=LARGEST)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Both as they are."""
        count_blocks(state)
        return {"component": state["component"], "top": state["top"]}


class ForestEdges(SpanningForest):
    """`parent`, the internal id, and `weight`: as of `msf`, but any vertex may be the root of its tree."""

    parent = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    weight = Field(np.float64, fill=-np.inf, unreached=-np.inf)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Both as they are."""
        return {"parent": state["parent"], "weight": state["weight"]}


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
