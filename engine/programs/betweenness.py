"""Betweenness centrality: the share of shortest paths that pass through a vertex.

Brandes, J. Math. Sociology 2001: from every source count shortest paths level by level, then add up dependencies from
the farthest level back. Edges count 1 whatever their weights; parallel edges are different paths. From all sources,
or from given or sampled ones (Brandes and Pich, 2007), scaled as networkx scales.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, PositiveCount
from penstock.engine.program.program import Field, Program, Start
from penstock.engine.program.vertex_ranges import each_range, mask_of, over_ranges
from penstock.engine.programs.bfs import UNREACHED, ByParents
from penstock.engine.programs.sources import check_one_choice, chosen_sources, source_bytes, source_count, source_name
from penstock.storage.format.graph import Graph


class Betweenness(Program):
    """`betweenness` (float64).

    source: original id or ids to start from (default: all). k: so many sources, drawn with `seed`. normalized: divide
    by the number of pairs; otherwise an undirected pair counts once, and fewer sources are scaled up to all of them.
    raw: the bare sum of dependencies of the sources.
    """

    betweenness = Field(np.float64)
    level = Field(np.uint32, output=False)
    paths = Field(np.float64, output=False)
    dependency = Field(np.float64, output=False)
    tolerance = 1e-9
    by_ranges = alternates = True

    def __init__(
        self,
        source: int | Sequence[int] | None = None,
        k: PositiveCount | None = None,
        normalized: bool = True,
        seed: Count = 0,
        raw: bool = False,
    ) -> None:
        check_one_choice("betweenness", source, k)
        self.source, self.k, self.normalized, self.seed, self.raw = source, k, normalized, seed, raw

    def form(self, graph: Graph, mode: str) -> Program:
        """The program, which knows what its sources take."""
        self.working_bytes = source_bytes(graph, self.source, self.k)
        return self

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Forward and backward."""
        return (CountPaths(0), AddDependencies(0)) if graph.vertices else ()

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Forward and backward from each source."""
        sources = chosen_sources(graph, self.source, self.k, self.seed)
        for number in range(first, 2 * len(sources)):
            source = int(sources[number // 2])
            if number % 2 == 0:
                yield CountPaths(source)
            else:
                yield AddDependencies(_depth(state["level"]))
                state["dependency"][source] = 0.0
                state["betweenness"] += state["dependency"]
        if not self.raw:
            _rescale(state["betweenness"], sources, self.normalized, graph.directed)

    def phase_name(self, graph: Graph, number: int) -> str:
        """``source 3 of 64, backward``."""
        return f"{source_name(graph, number // 2, self.source, self.k)}, {('forward', 'backward')[number % 2]}"

    def phase_count(self, graph: Graph) -> int:
        """Two for each source."""
        return 2 * source_count(graph, self.source, self.k)


class CountPaths(ByParents):
    """Levels and numbers of shortest paths from one source (internal id)."""

    level = Field(np.uint32)
    paths = Field(np.float64)
    combine = "sum"
    message = np.float64
    by_ranges = True

    def __init__(self, source: int) -> None:
        self.source = source

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """One path leads to the source: the empty one."""
        state["level"][:], state["paths"][:] = UNREACHED, 0.0
        state["level"][self.source], state["paths"][self.source] = 0, 1.0
        return Start(active=np.array([self.source]))

    def edge(paths):  # type: ignore[no-untyped-def]
        """Travels along an edge: the number of paths."""
        return paths


class AddDependencies(Program):
    """From the farthest level back: what part of the paths to those behind leads through a vertex.

    All reached vertices wait from the start; `priority` lets the level take part whose turn it is.
    """

    dependency = Field(np.float64)
    level = Field(np.uint32, constant=True)
    paths = Field(np.float64, constant=True)
    combine = "sum"
    along = "in"
    bucket = 1.0
    by_ranges = True

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Nobody depends on anybody yet."""
        state["dependency"][:] = 0.0
        level = state["level"]
        return Start(active=mask_of(lambda a, b: (level[a:b] != UNREACHED) & (level[a:b] > 0), len(level)))

    def send(dependency, paths):  # type: ignore[no-untyped-def]
        """Its dependency per path."""
        return (1.0 + dependency) / paths

    def edge(sent, level, target_level):  # type: ignore[no-untyped-def]
        """Travels against an edge, to the level before."""
        return sent if target_level + 1 == level else 0.0

    def cond(level, depth, due):  # type: ignore[no-untyped-def]
        """Only the level before the one whose turn it is."""
        return level + due == depth

    def vertex(dependency, paths, incoming):  # type: ignore[no-untyped-def]
        """What the paths through here carry."""
        return dependency + paths * incoming

    def active():  # type: ignore[no-untyped-def,misc]
        """Nobody acts twice."""
        return False

    def priority(level, depth):  # type: ignore[no-untyped-def]
        """The farthest level first."""
        return depth - level


def _depth(level: NDArray[np.uint32]) -> int:
    """The largest level that was reached."""

    def deepest(first: int, last: int) -> int:
        part = level[first:last]
        return int(np.max(part, initial=0, where=part != UNREACHED))

    return max(over_ranges(deepest, len(level)))


def _rescale(values: NDArray[np.float64], sources: NDArray[Any], normalized: bool, directed: bool) -> None:
    """Scale sums of dependencies as networkx 3.6 does, endpoints not counted.

    A source that was drawn is no inner vertex of its own paths, so it has one source less than the others.
    """
    others = len(values) - 1
    if others < 2:
        return
    drawn = np.zeros(len(values), dtype=bool)
    drawn[sources] = True

    def scale(first: int, last: int) -> None:
        count = np.where(drawn[first:last], len(sources) - 1.0, float(len(sources)))
        with np.errstate(divide="ignore", invalid="ignore"):
            if normalized:
                scaled = values[first:last] / (count * (others - 1))
            else:
                scaled = values[first:last] * (others / (count * (1 if directed else 2)))
            values[first:last] = scaled

    each_range(scale, len(values))
