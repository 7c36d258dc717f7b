"""Breadth-first search: levels and parents from one source or several.

Level-synchronous, push or early-exit pull (Beamer, Asanović, Patterson, SC 2012). A vertex's parent is the
smallest original id among its in-neighbors of the previous level, so that runs agree to the bit. Neighbors are stored
by ascending internal id, so that a pull may leave at the first one found. Where vertices are in another order than
their original ids (hubs first) it may not: there the places of these travel instead, and the smallest is taken.
Without parents there is no tie, and a pull leaves at the first neighbor found in any order.

Where memory is short (`Program.lighter`) a level takes a byte, and the search goes in rounds of as many levels as that
tells apart. The levels of a round that has others behind it are stored in a file, and its last one is 0 in the next.
Where memory has no room for all parents, a round finds levels alone, which stay there, and one pass over its edges then
finds the parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import NonNegative
from penstock.engine.program.precision import Widened
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start, fields_of, like
from penstock.engine.program.program_description import class_maker, variant
from penstock.engine.program.vertex_ids import (
    fill_ranks,
    in_original_order,
    internal_ids,
    names_by_rank,
    original_values,
)
from penstock.engine.program.vertex_ranges import Mask, each_range
from penstock.engine.programs.search_ends import Ending, Vertices
from penstock.storage.checkpoint.page_file import folders_beside
from penstock.storage.checkpoint.state_pages import PagedValues, values_in_file
from penstock.storage.format.graph import Graph

UNREACHED = np.uint32(2**32 - 1)


class ByParents(Program):
    """What a vertex of a search does that learns who has reached it."""

    def edge(source):  # type: ignore[no-untyped-def]
        """Travels along an edge: who sends it."""
        return source

    def cond(level):  # type: ignore[no-untyped-def]
        """Only vertices not reached yet take part."""
        return level == UNREACHED

    def vertex(incoming, iteration):  # type: ignore[no-untyped-def]
        """A reached vertex: its level, its parent."""
        return iteration + 1, incoming


class ByLevels(Program):
    """What a vertex of a search does that learns its level alone."""

    def edge(iteration):  # type: ignore[no-untyped-def]
        """Travels along an edge: the level of who gets it."""
        return iteration + 1

    def cond(level):  # type: ignore[no-untyped-def]
        """Only vertices not reached yet take part."""
        return level == UNREACHED

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """A reached vertex: its level."""
        return incoming

    def active():  # type: ignore[no-untyped-def,misc]
        """Who has been reached is active next."""
        return True


class BFS(Ending, ByParents):
    """Levels (uint32, a source has 0) and parents (a source is its own) from `source`.

    source: original id of the first vertex, or several: then the level is the distance to the nearest of them. Vertices
    that are not reached have neither. parents: False for levels alone, in 4 bytes a vertex instead of 8.
    """

    level = Field(np.uint32, fill=UNREACHED, unreached=UNREACHED)
    parent = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    combine = "min"
    message = VERTEX
    early_exit = True
    visits_once = True
    accumulator = "parent"
    starts_anywhere = True
    by_ranges = True

    def __init__(
        self,
        source: int | Sequence[int],
        parents: bool = True,
        target: Vertices | None = None,
        cutoff: NonNegative | None = None,
    ) -> None:
        self.source, self.parents = source, parents
        self.end_at(target, cutoff)

    def form(self, graph: Graph, mode: str) -> Program:
        """The same for levels alone; or with ties by the places of original ids, if internal ids have another order."""
        if not self.parents:
            return like(self, BFSLevels)
        if isinstance(self, ByOriginalIds) or in_original_order(graph):
            return self
        return like(self, variant(type(self), ByOriginalIds))

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Put the sources on level 0."""
        first = internal_ids(graph, self.source)
        self.watch(graph)
        state["level"][first] = 0
        state["parent"][first] = first
        return Start(active=first)

    def lighter(self, graph: Graph) -> Program | None:
        """The same in rounds, with levels of a byte."""
        return in_rounds(self)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Levels as far as they are asked for; parents as original ids."""
        self.cut(state)
        return {"level": state["level"], "parent": original_values(graph, state["parent"])}


class BFSLevels(Ending, ByLevels):
    """Levels (uint32, a source has 0) from `source`, as `BFS` has them."""

    level = Field(np.uint32, fill=UNREACHED, unreached=UNREACHED)
    combine = "min"
    early_exit = True
    visits_once = True
    accumulator = "level"
    starts_anywhere = True
    by_ranges = True

    def __init__(self, source: int | Sequence[int]) -> None:
        self.source = source

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Put the sources on level 0."""
        first = internal_ids(graph, self.source)
        self.watch(graph)
        state["level"][first] = 0
        return Start(active=first)

    def lighter(self, graph: Graph) -> Program | None:
        """The same in rounds, with levels of a byte."""
        return in_rounds(self)


class ByOriginalIds:
    """What a search has otherwise where ties go by `rank`, the places of the original ids; `parent` is a place too."""

    rank = Field(VERTEX, constant=True, output=False)
    early_exit = False
    visits_once = False
    starts_anywhere = False
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Put the sources on level 0."""
        first = internal_ids(graph, self.source)  # type: ignore[attr-defined]
        self.watch(graph)  # type: ignore[attr-defined]
        fill_ranks(graph, state["rank"])
        state["level"][first] = 0
        state["parent"][first] = state["rank"][first]
        return Start(active=first)

    def edge(rank):  # type: ignore[no-untyped-def]
        """Travels along an edge: the place of who sends it."""
        return rank

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Levels as far as they are asked for; parents as original ids."""
        self.cut(state)  # type: ignore[attr-defined]
        return {"level": state["level"], "parent": names_by_rank(graph, state["parent"])}


NONE, BEFORE, NOW = np.uint8(255), np.uint8(254), np.uint8(0)
"""In a round: the level of a vertex that is not reached, that was reached before it began, that it begins with."""
LEVELS = 253
"""Levels of a round beside its first."""


class Round:
    """What a search has otherwise that has levels from `first` on; comes before it among the bases."""

    level = Field(np.uint8, fill=LARGEST, unreached=LARGEST)
    by_ranges = True
    first = 0

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The sources, or what the round before has found last."""
        if self.first == 0:
            begin: Start = super().start(graph, state)  # type: ignore[misc]
            return begin
        level = state["level"]
        last: Any = Mask(lambda a, b: np.asarray(level[a:b] == 0), len(level))
        return Start(active=last)

    def cond(level):  # type: ignore[no-untyped-def]
        """Only vertices not reached yet take part."""
        return level == NONE

    def last(self, values: NDArray[Any]) -> Any:
        """As `Ending.last`, counted from the first level on."""
        return super().last(np.where(values == BEFORE, 0, values).astype(values.dtype))  # type: ignore[misc]

    def beyond(self, values: NDArray[Any], last: Any) -> NDArray[np.bool_]:
        """As `Ending.beyond`."""
        found: NDArray[np.bool_] = (values > last) & (values != BEFORE)
        return found

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """No answer: that is of all rounds. What is beyond the horizon is emptied."""
        self.cut(state)  # type: ignore[attr-defined]
        return {}


class ParentsOfAccepted(Program):
    """Parents of the vertices of a round, along the edges that were accepted, which its pushes have kept."""

    source: int | Sequence[int]
    parent = Field(VERTEX, fill=LARGEST)
    combine = "min"
    message = VERTEX
    accumulator = "parent"
    accepted_edges = "walked"
    starts_anywhere = True
    by_ranges = True
    max_iter = 1

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """A source is its own parent."""
        first = internal_ids(graph, self.source)
        state["parent"][first] = first
        return Start(everything=True)

    def edge(source):  # type: ignore[no-untyped-def]
        """Travels along an edge: who sends it."""
        return source

    def cond(iteration):  # type: ignore[no-untyped-def]
        """Every vertex that such an edge leads to takes part."""
        return iteration == 0

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """A reached vertex: its parent."""
        return incoming


class Parents(ParentsOfAccepted):
    """The same along all edges, of vertices whose levels are known."""

    level = Field(np.uint8, constant=True)
    accepted_edges = ""
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """A source is its own parent. Others are those of the next level."""
        first, level = internal_ids(graph, self.source), state["level"]
        if "rank" in state:
            fill_ranks(graph, state["rank"])
        state["parent"][first] = state["rank"][first] if "rank" in state else first
        within: Any = Mask(lambda a, b: np.asarray(level[a:b] < LEVELS), len(level))
        return Start(active=within)

    def edge(source, level, target_level, vertices):  # type: ignore[no-untyped-def]
        """Travels along an edge: who sends it, or nobody, to another level than the next."""
        return source if target_level == level + 1 else np.uint64(vertices)

    def cond(level):  # type: ignore[no-untyped-def]
        """Only vertices that the round has reached take part."""
        return NOW < level < BEFORE


class ParentsByRank(Parents):
    """The same, where ties go by the places of the original ids."""

    rank = Field(VERTEX, constant=True, output=False)
    by_ranges = True

    def edge(rank, level, target_level, vertices):  # type: ignore[no-untyped-def]
        """Travels along an edge: the place of who sends it, or nobody."""
        return rank if target_level == level + 1 else np.uint64(vertices)


class InRounds(Ending, Program):
    """A search that goes in rounds. wide: what it is otherwise; kind: of its rounds."""

    on_cores = True
    by_ranges = True
    wide: ClassVar[Any]
    kind: ClassVar[Any]
    deep: PagedValues | None = None

    def round(self, first: int, *, levels: bool = False) -> Any:
        """The round of the levels from this one on; levels: of these alone."""
        made: Any = like(self, variant(BFSLevels, Round) if levels else self.kind)
        made.first, made.max_iter = first, min(made.max_iter - first, LEVELS)
        made.bounded = self.target is not None or self.cutoff is not None
        made.cutoff = None if made.cutoff is None else made.cutoff - first
        if levels and not (made.bounded or "rank" in fields_of(self)):  # the first that reaches it has the smallest id
            made.accepted_edges = "kept"
        return made

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """A round; or one of levels alone, and what finds its parents."""
        if "parent" not in fields_of(self):
            return [self.round(0)]
        levels = self.round(0, levels=True)
        found = [self.round(0), levels, self._parents()]
        return [*found, self._parents(accepted=True)] if levels.accepted_edges else found

    def _parents(self, *, accepted: bool = False) -> Program:
        """What finds the parents of a round; accepted: along the edges that it has kept."""
        by_levels = ParentsByRank if "rank" in fields_of(self) else Parents
        made = like(self, ParentsOfAccepted if accepted else by_levels)
        made.bounded, made.max_iter = False, 1
        return made

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Rounds, until one ends before its last level."""
        begin, most, deep = 0, self.max_iter, None
        apart = isinstance(state.get("parent"), PagedValues)
        while True:
            now = self.round(begin, levels=apart)
            yield now
            self.watched, self.converged = now.watched, now.converged
            if apart:
                yield self._parents(accepted=bool(now.accepted_edges))
            ended = now.converged or begin + LEVELS >= most
            if begin or not ended:
                level: Any = state["level"]
                folders = level.folders if isinstance(level, PagedValues) else folders_beside(graph.files)
                deep = deep or values_in_file(folders, graph.vertices, np.uint32, UNREACHED)
                _store(level, begin, deep)
            if ended:
                break
            begin += LEVELS
        self.deep = deep

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The answer of the search; every round has emptied what is beyond the horizon."""
        search: Any = like(self, self.wide)
        search.watched, search.cutoff = (), None
        found: dict[str, Any] = search.finish(graph, state)
        return {**found, "level": self.deep or Widened(found["level"], np.dtype(np.uint32))}


def _store(level: NDArray[np.uint8], begin: int, deep: PagedValues) -> None:
    """Store the levels of a round that began with this one, and make those of the next of them."""

    def store(first: int, last: int) -> None:
        some = level[first:last]
        found = some < BEFORE
        if found.any():
            deep[first + np.flatnonzero(found)] = some[found].astype(np.uint32) + np.uint32(begin)
            level[first:last] = np.where(found, np.where(some == LEVELS, NOW, BEFORE), some)

    each_range(store, len(level))


def in_rounds(search: Any) -> Program | None:
    """The same search in rounds; None of one of another class, which may read the field."""
    kind: Any = type(search)
    if kind not in (BFS, BFSLevels, variant(BFS, ByOriginalIds)):
        return None
    made: Any = like(search, _in_rounds(kind))
    made.bounded = False  # it has no iterations of its own
    found: Program = made
    return found


@class_maker
def _in_rounds(kind: Any) -> Any:
    """A search of this kind in rounds."""
    own = {"__doc__": kind.__doc__, "__module__": __name__, "wide": kind, "kind": variant(kind, Round)}
    return type(kind.__name__, (InRounds,), {**own, **fields_of(own["kind"])})
