"""Degree statistics: how many edges leave and enter every vertex.

Read where they are asked for, from the file, or from the row indexes of a graph in memory: no edge is touched.
In-degrees of a graph without in-edges are counted in one sweep.
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
from penstock.storage.checkpoint.state_pages import PagedValues
from penstock.storage.format.graph import Graph
from penstock.storage.format.index import Index
from penstock.storage.read.degree_count import DegreeReader, degree_index, degrees_of

Degreed = Index | DegreeReader | PagedValues | NDArray[Any]
"""What has the degrees of all vertices."""


class Degrees(Program):
    """`degree`, `in_degree`, `out_degree` (int64). Parallel edges count each.

    In a directed graph `degree` is the sum of the two others, as networkx has it; in an undirected one all three are
    the number of neighbors, a self-loop counting once.
    """

    degree = Field(np.int64, kept=False)
    in_degree = Field(np.int64, kept=False)
    out_degree = Field(np.int64, kept=False)
    by_ranges = True

    def form(self, graph: Graph, mode: str) -> Program:
        """The same with a sweep, where in-edges are not stored."""
        return self if graph.into is not None or type(self) is not Degrees else CountedDegrees()

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Nothing: the answer is in the file."""
        return []

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """None."""
        yield from ()

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Columns that read the degrees."""
        leaving = degrees_of(graph, "out", cores())
        arriving = self.arriving(graph, state)
        both = (leaving, arriving) if graph.directed else (leaving,)
        return {
            "degree": DegreeColumn(graph.vertices, *both),
            "in_degree": DegreeColumn(graph.vertices, arriving),
            "out_degree": DegreeColumn(graph.vertices, leaving),
        }

    def arriving(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Degreed:
        """What has the in-degrees."""
        return degrees_of(graph, "in", cores())


class CountedDegrees(Degrees):
    """The same of a graph without in-edges, which are counted in a sweep."""

    in_degree = Field(np.int64)
    by_ranges = True

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """The sweep."""
        return [CountArriving(weight=False)]

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Count in-edges."""
        yield CountArriving(weight=False)

    def phase_name(self, graph: Graph, number: int) -> str:
        """In-edges are counted where no index has them."""
        return "in-degrees"

    def arriving(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Degreed:
        """What the sweep has counted."""
        return state["in_degree"]


class DegreeColumn:
    """Degrees of all vertices, (vertices,), that are added up where they are read; an array of them by NumPy.

    dtype: of the sums; that of parts that are arrays.
    """

    ndim = 1

    def __init__(self, vertices: int, *parts: Degreed, dtype: np.dtype[Any] | type = np.int64) -> None:
        self._parts, self.shape, self.dtype = parts, (vertices,), np.dtype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Degrees of a range of vertices, of some, or of one."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            found = np.zeros(max(0, last - first), self.dtype)
            for one in self._parts:
                if isinstance(one, np.ndarray | PagedValues):
                    found += one[first:last]
                else:
                    one.add_lengths(first, found)
            return found[::step]
        at = np.atleast_1d(rows)
        total: Any = sum(
            one[at] if isinstance(one, np.ndarray | PagedValues) else one.lengths_of(at) for one in self._parts
        )
        return total if np.ndim(rows) else total[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All of them, in a new array."""
        return np.asarray(self[:], dtype)


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
