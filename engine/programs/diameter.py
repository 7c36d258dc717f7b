"""The diameter, from few searches: bounds of the eccentricity of every vertex, which each search makes tighter.

Takes and Kosters, "Determining the diameter of small world networks" (CIKM 2011): where a search from v finds that the
farthest vertex is e away, one at the distance d is at least max(d, e - d) from its own farthest vertex, and at most
e + d. Searches start in turn from a vertex that may be the most eccentric and from one that may be the least, until no
vertex can be farther from another than two are known to be. Edges count 1 and lead either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import PositiveCount
from penstock.engine.program.program import VERTEX, Field, Program, like
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import in_original_order, original_ranks
from penstock.engine.program.vertex_ranges import ROWS, each_range, over_ranges
from penstock.engine.programs.bfs import UNREACHED
from penstock.engine.programs.closeness import LevelsFrom
from penstock.engine.programs.wcc import WCC, WCCByLabels
from penstock.storage.base.budget import cores
from penstock.storage.format.graph import Graph
from penstock.storage.read.degree_count import degree_index

SEARCHES = 64
"""So many are usually more than enough: most graphs take less than 20."""


class Diameter(Program):
    """`at_least`, `at_most`: bounds of a vertex's eccentricity, the distance to the farthest vertex of its component.

    k: most searches. After each, `diameter_at_least` and `diameter_at_most` are known; they are equal at the end unless
    k searches were too few. The diameter of the graph is the largest of its components'.
    """

    at_least = Field(np.uint32)
    at_most = Field(np.uint32)
    level = Field(np.uint32, output=False)
    component = Field(VERTEX, output=False)
    working_bytes = 8
    by_ranges = True
    measures = ("diameter_at_least", "diameter_at_most")
    weak: ClassVar[type[Program]] = WCC

    def __init__(self, k: PositiveCount = SEARCHES) -> None:
        self.k = k
        self.diameter_at_least: list[float] = []
        self.diameter_at_most: list[float] = []

    def lighter(self, graph: Graph) -> Program | None:
        """With components by labels."""
        made = like(self, DiameterByLabels)
        made.working_bytes = 0 if in_original_order(graph) else self.working_bytes
        return made

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Components, and one search."""
        return (self.weak(), _search(0)) if graph.vertices else ()

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Components, which bound eccentricities by their sizes; then searches."""
        if graph.vertices == 0:
            return
        low, high = state["at_least"], state["at_most"]
        if first == 0:
            self.diameter_at_least, self.diameter_at_most = [], []
            yield self.weak()
            _bound_by_size(state["component"], state["level"], low, high)
        ranks = None if in_original_order(graph) else original_ranks(graph)
        for number in range(max(1, first), self.k + 1):
            source = _next_source(graph, state, number, ranks)
            if source is None:
                break
            yield _search(source)
            _tighten(state["level"], low, high)
            self.diameter_at_least.append(float(_largest(low)))
            self.diameter_at_most.append(float(_largest(high)))
        if not self.diameter_at_least:
            self.diameter_at_least, self.diameter_at_most = [float(_largest(low))], [float(_largest(high))]


class DiameterByLabels(Diameter):
    """The same, whose vertices may be in a file in ranks and on a GPU, too."""

    weak = WCCByLabels
    in_pages = True

    def lighter(self, graph: Graph) -> None:
        """There is none."""


def _search(source: int) -> Program:
    """Levels from one vertex (internal id), edges leading either way."""
    return variant(LevelsFrom, along="both")(source)


def _largest(values: NDArray[Any]) -> int:
    return max(over_ranges(lambda first, last: int(values[first:last].max()), len(values)))


def _bound_by_size(component: NDArray[Any], sizes: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> None:
    """At most one less than the size of the component; at least 1 where there is another vertex.

    sizes: to count in, up to the largest number.
    """
    sizes[:] = 0
    for first in range(0, len(component), ROWS):
        roots, counts = np.unique(component[first : first + ROWS], return_counts=True)
        sizes[roots] = np.minimum(sizes[roots] + counts, UNREACHED)

    def bound(first: int, last: int) -> None:
        most = sizes[component[first:last]] - 1
        high[first:last] = most
        low[first:last] = most > 0

    each_range(bound, len(component))


def _tighten(level: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> None:
    """What a search tells of the vertices that it reached."""
    reached = over_ranges(lambda a, b: int(level[a:b].max(where=level[a:b] != UNREACHED, initial=0)), len(level))
    farthest = max(reached)

    def tighten(first: int, last: int) -> None:
        near = level[first:last]
        found = first + np.flatnonzero(near != UNREACHED)
        d = near[found - first].astype(np.int64)
        low[found] = np.maximum(low[found], np.maximum(d, farthest - d))
        high[found] = np.minimum(high[found], farthest + d)

    each_range(tighten, len(level))


def _next_source(graph: Graph, state: dict[str, NDArray[Any]], number: int, ranks: NDArray[Any] | None) -> int | None:
    """The vertex to search from, None where none can change the diameter.

    First one of most out-edges; then in turn that of the largest and that of the smallest bound. Of several one of most
    out-edges, and of these the smallest. ranks: the places of original ids, where vertices are in another order.
    """
    low, high = state["at_least"], state["at_most"]
    known, index = _largest(low), degree_index(graph, "out", cores())

    def value_of(places: NDArray[np.intp]) -> NDArray[np.int64]:
        if number == 1:
            return np.zeros(len(places), np.int64)
        return high[places].astype(np.int64) if number % 2 == 0 else -low[places].astype(np.int64)

    def best(first: int, last: int) -> tuple[int, int, int, int] | None:
        places = first + np.flatnonzero(high[first:last] > known)
        if len(places) == 0:
            return None
        value, degree = value_of(places), index.degrees(first, last)[places - first]
        tie = places if ranks is None else ranks[places]
        at = np.lexsort((tie, -degree, -value))[0]
        return int(value[at]), int(degree[at]), -int(tie[at]), int(places[at])

    found = [one for one in over_ranges(best, graph.vertices) if one is not None]
    return max(found)[3] if found else None
