"""Communities of large modularity by the Louvain method (Blondel, Guillaume, Lambiotte, Lefebvre, J. Stat. Mech. 2008).

Vertices move between communities until that gains little (`local_moves.py`); then communities become the vertices of a
smaller graph (`storage/convert/contract.py`), whose edges are the sums of theirs, and move again, until no two
communities are better joined. Then vertices of the graph itself move again, from these communities on, in one more
iteration: so those that joined early find what has become better. Smaller graphs are in memory, or in files beside the
graph while they do not fit. In a directed graph directions are ignored, and a mutual pair counts twice, unless
`directed` is true: then modularity is that of Leicht and Newman (`local_moves.py`).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.earlier_answer import ANSWER_BYTES, Answer, EarlierAnswer
from penstock.engine.program.on_graph import OnGraph
from penstock.engine.program.parameters import Count, NonNegative, Positive, PositiveCount
from penstock.engine.program.program import VERTEX, Field, Program, weighted
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import smallest_members
from penstock.engine.program.vertex_ranges import ROWS, each_range
from penstock.engine.programs.local_moves import ALONE, Beginning, ByDirection, CommunityLevel
from penstock.engine.programs.modular_gain import Search, fixed_point
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError
from penstock.storage.convert.contract import LEAST_BYTES, Grouping, contract, contraction_bytes

if TYPE_CHECKING:
    from penstock.engine.programs.rows_in_memory import RowsInMemory
    from penstock.storage.format.graph import Graph

MANY = 1 << 20
"""Edges of a level that runs on a device though its rows fit in the memory of the host."""
LEAST_TOL = 1e-6
"""Every level has a tenth of the `tol` of the one before, down to this."""


class Louvain(Program):
    """`community`, named by its smallest vertex. modularity, level_communities: of every level, vertices without edges
    left out.

    resolution: above 1 for smaller communities. seed: of the order in which vertices move. tol: a round of sweeps, in
    which each may move once, that gains no more ends the first level. sweeps: most of a level. weight: whether edges
    count by their weights. iterations: at most; one that gains nothing is the last. directed: whether modularity
    follows the directions of edges, where they have some. earlier: an answer in HDF5 of the graph as it was: its
    communities, and vertices that it has not, are the vertices of the first level.
    """

    community = Field(VERTEX)
    measures = ("modularity", "level_communities")
    earlier: Answer = None

    def __init__(
        self,
        resolution: Positive = 1.0,
        seed: Count = 0,
        tol: NonNegative = 1e-3,
        sweeps: PositiveCount = 100,
        weight: bool | str | None = True,
        iterations: PositiveCount = 2,
        directed: bool = False,
        earlier: Answer = None,
    ) -> None:
        self.directed = directed
        self.resolution, self.seed, self.tol, self.sweeps = resolution, seed, tol, sweeps
        self.needs_weights, self.iterations = counts_by_weight(weight), iterations
        self.other_graph_bytes = LEAST_BYTES
        if earlier is not None and directed:
            raise InputError("louvain with directed begins from no earlier answer; leave one of the two out")
        if earlier is not None:
            self.earlier, self.working_bytes = str(earlier), ANSWER_BYTES
        self.modularity: list[float] = []
        self.level_communities: list[int] = []

    def may_run(self, graph: Graph) -> list[Program]:
        """The first level of the last iteration, which needs most."""
        return [self.level(self._search(graph), ALONE, self.iterations - 1)]

    def level(self, search: Search, start: Beginning, iteration: int) -> CommunityLevel:
        """The program that runs on the graph of a level; start: what it begins with; iteration: its number, from 0."""
        kind = self.level_kind(iteration)
        return (variant(kind, ByDirection) if search.directed else kind)(search, start)

    def level_kind(self, iteration: int) -> type[CommunityLevel]:
        """Moves alone."""
        return CommunityLevel

    def _search(self, graph: Graph) -> Search:
        by_weight = weighted(self, graph)
        scale = fixed_point(graph, by_weight=by_weight)
        directed = self.directed and graph.directed
        return Search(self.resolution, self.seed, self.tol, self.sweeps, by_weight, scale, directed=directed)

    def form(self, graph: Graph, mode: str) -> Program:
        """The same, which knows what contracting the graph takes."""
        self.other_graph_bytes = contraction_bytes(graph.vertices)
        return self

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Any]:
        """Level by level; `community` holds the number of a vertex's group, or `vertices` if it has no edges."""
        self.modularity, self.level_communities = [], []
        community, search = state["community"], self._search(graph)
        level, start, reached = _Level(graph), ALONE, -math.inf
        for iteration in range(self.iterations if graph.vertices else 0):
            community[:] = np.arange(graph.vertices, dtype=community.dtype)
            grouped = self.earlier is not None and iteration == 0
            begun = self._grouped(graph, level, search, community) if grouped else search
            last = yield from self._levels(level, iteration, begun, start, community)
            if not last.whole or self.modularity[-1] - reached <= LEAST_TOL:
                break
            search, reached = replace(search, level=last.search.level + 1), self.modularity[-1]
            start = Beginning(np.where(community < last.groups, community, 0), last.inner)
            level.restart()
        name_groups(community)

    def _levels(
        self, level: _Level, iteration: int, search: Search, start: Beginning, community: NDArray[Any]
    ) -> Generator[Any, None, CommunityLevel]:
        """Level by level until one changes nothing; return that."""
        vertices = len(community)
        while True:
            moves = self.level(search, start, iteration)
            phase = OnGraph(moves, level.make, partial(level.on_cores, moves))
            start = ALONE
            yield phase
            self._note(moves)
            group = phase.fields["community"]
            part, parts = phase.fields.get("part", group), moves.parts
            _fold(community, part, level.vertices, vertices)
            if parts == moves.vertices:
                if moves.groups == moves.vertices:
                    return moves
                search = replace(search, sweeps=0)  # parts are the answer, whose modularity is looked up
                start = replace(ALONE, balance=phase.fields.get("balance"))
                continue
            start = ALONE if part is group else Beginning(_first_of(group, part, parts), moves.inner)
            if search.directed:
                start = replace(start, balance=_sums_of(phase.fields["balance"], part, parts))
            level.grouping = Grouping(part, parts, search.scale, weighted=search.by_weight)
            del phase, group, part
            search = replace(search, level=search.level + 1, scale=1.0, by_weight=True)
            search = replace(search, tol=min(search.tol, max(search.tol / 10, LEAST_TOL)))

    def _grouped(self, graph: Graph, level: _Level, search: Search, community: NDArray[Any]) -> Search:
        """Begin with the communities of the earlier answer as vertices; return the search of their level."""
        EarlierAnswer(self, graph, self.earlier, "community").fill(community, members=True)
        names, numbers = np.unique(community, return_inverse=True)
        community[:] = numbers
        level.vertices = len(names)
        level.grouping = Grouping(community.copy(), len(names), search.scale, weighted=search.by_weight)
        return replace(search, level=search.level + 1, scale=1.0, by_weight=True)

    def _note(self, moves: CommunityLevel) -> None:
        """Keep what a level has come to, unless it changed nothing."""
        known = [*self.modularity[-1:], *self.level_communities[-1:]]
        if moves.whole and [moves.modularity, moves.groups] != known:
            self.modularity.append(moves.modularity)
            self.level_communities.append(moves.groups)

    def phase_name(self, graph: Graph, number: int) -> str:
        """``level 2``."""
        return f"level {number + 1:,}"

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Name every community by the smallest original id in it."""
        return {"community": smallest_members(graph, state["community"])}


class _Level:
    """The graph of the present level: the first is the program's own, the others are contracted when they are made.

    grouping: how the level before is contracted; it is dropped with that level's graph. vertices: of the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self._first = graph
        self._first_rows: RowsInMemory | None = None
        self._graph: Graph | None = graph
        self.grouping: Grouping | None = None
        self.vertices = graph.vertices
        self._rows: RowsInMemory | None = None

    def restart(self) -> None:
        """Go back to the first graph."""
        self._graph, self._rows, self.grouping, self.vertices = (
            self._first,
            self._first_rows,
            None,
            self._first.vertices,
        )

    def make(self, memory_bytes: int, threads: int) -> Graph:
        """Return the graph (`OnGraph.make`)."""
        assert self._graph is not None
        if self.grouping is not None:
            self._graph = contract(self._graph, self.grouping, memory_bytes, threads)
            self.grouping = None
        self.vertices = self._graph.vertices
        return self._graph

    def on_cores(
        self, moves: CommunityLevel, memory_bytes: int, threads: int, on_device: bool
    ) -> dict[str, NDArray[Any]] | None:
        """Return the answer of `moves` if the rows fit in memory (`OnGraph.on_cores`); a device has large levels."""
        from penstock.engine.programs.rows_in_memory import RowsInMemory, compile_ahead  # and with it Numba

        if self._rows is not None and self.grouping is not None:
            self._rows = self._rows.contracted(self.grouping)
            self._graph, self.grouping = self._rows.graph, None
        elif self._rows is None:
            if on_device and self.grouping is None:
                return None
            graph = self.make(memory_bytes, threads)
            if graph.layout != "rows" or graph.into is None or (on_device and graph.edges > MANY):
                return None
            if RowsInMemory.bytes_for(graph, moves.search, threads) > memory_bytes:
                return None
            compile_ahead(graph, threads, memory_bytes)
            self._rows = RowsInMemory.of(graph, moves.search, threads)
            if graph is self._first:
                self._first_rows = self._rows
        self.vertices = self._rows.graph.vertices
        return self._rows.run(moves)


def _first_of(group: NDArray[Any], part: NDArray[Any], parts: int) -> NDArray[Any]:
    """The group of every part, whose vertices are all in one."""
    found = np.empty(parts, part.dtype)

    def take(first: int, last: int) -> None:
        known = part[first:last] < parts
        found[part[first:last][known]] = group[first:last][known]

    each_range(take, len(part))
    return found


def _sums_of(balance: NDArray[np.int64], part: NDArray[Any], parts: int) -> NDArray[np.int64]:
    """The sum of balances of every part."""
    found = np.zeros(parts, np.int64)
    for first in range(0, len(part), ROWS):
        some = part[first : first + ROWS]
        np.add.at(found, some[some < parts], balance[first : first + ROWS][some < parts])
    return found


def _fold(community: NDArray[Any], group: NDArray[Any], none: int, absent: int) -> None:
    """Replace the numbers of vertices of a level by those of their groups; from `none` on there is no number."""

    def replace_range(first: int, last: int) -> None:
        part = community[first:last]
        known = part < none
        found = group[part[known]]
        part[known] = np.where(found < none, found, absent)

    each_range(replace_range, len(community))


def name_groups(community: NDArray[Any]) -> None:
    """Name each group, a number below `vertices`, by its first vertex; others are their own, each."""
    vertices = len(community)
    first = np.empty(vertices, community.dtype)
    for end in range(vertices, 0, -ROWS):  # of several members that are written the last one is left
        start = max(0, end - ROWS)
        part = community[start:end][::-1]
        known = part < vertices
        first[part[known]] = np.arange(start, end, dtype=first.dtype)[::-1][known]

    def rename(start: int, end: int) -> None:
        part = community[start:end]
        own = np.arange(start, end, dtype=part.dtype)
        known = part < vertices
        part[known] = first[part[known]]
        part[~known] = own[~known]

    each_range(rename, vertices)
