"""Degree statistics: how many edges leave and enter every vertex.

Read from the row indexes, so that no edge is touched; in-degrees of a graph without in-edges are counted in one sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Field, Program, Start
from penstock.engine.program.vertex_ranges import each_range
from penstock.engine.programs.weights import Sums
from penstock.storage.base.budget import cores
from penstock.storage.format.graph import Graph
from penstock.storage.read.degree_count import degree_index


class Degrees(Program):
    """`degree`, `in_degree`, `out_degree` (int64). Parallel edges count each.

    In a directed graph `degree` is the sum of the two others, as networkx has it; in an undirected one all three are
    the number of neighbors, a self-loop counting once.
    """

    degree = Field(np.int64)
    in_degree = Field(np.int64)
    out_degree = Field(np.int64)

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """A sweep where in-edges are not stored."""
        return [CountArriving(weight=False)] if graph.into is None else []

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Read the indexes; count only what they do not hold."""
        fill_degrees(graph, "out", state["out_degree"])
        if graph.into is None:
            yield CountArriving(weight=False)
        else:
            fill_degrees(graph, "in", state["in_degree"])
        state["degree"][:] = state["out_degree"]
        if graph.directed:
            state["degree"] += state["in_degree"]

    def phase_name(self, graph: Graph, number: int) -> str:
        """In-edges are counted where no index has them."""
        return "in-degrees"


def fill_degrees(graph: Graph, direction: str, out: NDArray[Any]) -> None:
    """Set `out`, numbers (vertices,), to the degrees of one direction."""
    index = degree_index(graph, direction, cores())

    def fill(first: int, last: int) -> None:
        out[first:last] = index.degrees(first, last)

    each_range(fill, len(out))


class CountArriving(Sums):
    """One sweep: the number of a vertex's in-edges."""

    in_degree = Field(np.int64)
    accumulator = "in_degree"

    def edge():  # type: ignore[no-untyped-def,misc]
        """Travels along an edge."""
        return 1


class CountLoops(Sums):
    """One sweep: `loops` (int64), the number of edges from a vertex to itself; `Degrees` counts each once."""

    loops = Field(np.int64)
    accumulator = "loops"

    def edge(source, target):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return 1 if source == target else 0


class NeighborSums(Sums):
    """One sweep: `total` (int64), the sum of a number of the vertices that a vertex's edges lead to.

    numbers: int64 (vertices,).
    """

    total = Field(np.int64)
    number = Field(np.int64, constant=True, output=False)
    accumulator = "total"
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
