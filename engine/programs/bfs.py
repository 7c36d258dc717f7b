"""Breadth-first search: levels and parents from one source or several.

Level-synchronous, push or early-exit pull (Beamer, Asanović, Patterson, SC 2012). A vertex's parent is the
smallest original id among its in-neighbors of the previous level, so that runs agree to the bit. Neighbors are stored
by ascending internal id, so that a pull may leave at the first one found. Where vertices are in another order than
their original ids (hubs first) it may not: there the places of these travel instead, and the smallest is taken.
Without parents there is no tie, and a pull leaves at the first neighbor found in any order.

Where memory is short (`Program.lighter`) levels take two bytes while the search goes on, or one. A search that gets to
levels which these do not hold begins again with wider ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import NonNegative
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start, like
from penstock.engine.program.program_description import class_maker
from penstock.engine.program.vertex_ids import (
    fill_ranks,
    in_original_order,
    internal_ids,
    names_by_rank,
    original_values,
)
from penstock.engine.program.vertex_ranges import MANY_ROWS, over_ranges
from penstock.engine.program.widened import Widened
from penstock.engine.programs.search_ends import Ending, Vertices
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
            levels = BFSLevels(self.source)
            levels.__dict__.update(self.__dict__)
            return levels
        if isinstance(self, ByOriginalIds) or in_original_order(graph):
            return self
        mine: Any = type(self)
        kind = _by_original_ids(mine)
        made = kind.__new__(kind)
        made.__dict__.update(self.__dict__)
        return made

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Put the sources on level 0."""
        first = internal_ids(graph, self.source)
        self.watch(graph)
        state["level"][first] = 0
        state["parent"][first] = first
        return Start(active=first)

    def lighter(self, graph: Graph) -> Program | None:
        """The same with narrower levels."""
        return narrower(self)

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

    def __init__(self, source: int | Sequence[int]) -> None:
        self.source = source

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Put the sources on level 0."""
        first = internal_ids(graph, self.source)
        self.watch(graph)
        state["level"][first] = 0
        return Start(active=first)

    def lighter(self, graph: Graph) -> Program | None:
        """The same with narrower levels."""
        return narrower(self)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Levels, as far as they are asked for."""
        self.cut(state)
        return super().finish(graph, state)


class ByOriginalIds:
    """What a search has otherwise where ties go by `rank`, the places of the original ids; `parent` is a place too."""

    rank = Field(VERTEX, constant=True, output=False)
    early_exit = False
    visits_once = False
    starts_anywhere = False

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


@class_maker
def _by_original_ids(kind: Any) -> type[BFS]:
    """A search of this kind with ties by original ids."""
    made: type[BFS] = type(
        kind.__name__, (ByOriginalIds, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__}
    )
    return made


LEVEL_BYTES = 4, 2, 1
"""Widths of levels while a search goes on, that of the answer first."""


class NarrowLevels:
    """What a search has otherwise whose levels take `level_bytes`; comes before it among the bases.

    wide: the search whose answer it has. none: the level of a vertex that is not reached. least_bytes: levels that were
    narrower did not suffice. limit: `max_iter` of the search; ours ends at the last level that there is, too.
    """

    alone = True
    wide: ClassVar[Any]
    level_bytes: ClassVar[int]
    none: ClassVar[int]
    least_bytes = LEVEL_BYTES[-1]
    limit = Program.max_iter

    def cond(level, none):  # type: ignore[no-untyped-def]
        """Only vertices not reached yet take part."""
        return level == none

    def instead(self, state: dict[str, NDArray[Any]]) -> Program | None:
        """Wider levels, where the last one that there is was reached: there may be others behind it."""
        level, last = state["level"], self.none - 1
        deep = over_ranges(lambda a, b: bool(np.any(level[a:b] == last)), len(level), size=MANY_ROWS)
        return _kept_in(self, 2 * self.level_bytes, least_bytes=2 * self.level_bytes) if any(deep) else None

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The answer of the search."""
        found: dict[str, Any] = super().finish(graph, state)  # type: ignore[misc]
        return {**found, "level": Widened(found["level"], np.dtype(np.uint32))}


def narrower(search: Any) -> Program | None:
    """The same search with levels of half as many bytes; None where there is none, or they did not suffice before."""
    kind = getattr(search, "wide", type(search))
    if kind not in (BFS, BFSLevels, _by_original_ids(BFS)):  # of others, which may read the field, levels are as wide
        return None
    now = getattr(search, "level_bytes", LEVEL_BYTES[0])
    least = getattr(search, "least_bytes", LEVEL_BYTES[-1])
    return _kept_in(search, now // 2, least_bytes=least) if now > least else None


def _kept_in(search: Any, width: int, *, least_bytes: int) -> Program:
    """The same search with levels of so many bytes."""
    wide = getattr(search, "wide", type(search))
    kind: Any = wide if width == LEVEL_BYTES[0] else _narrow(wide, width)
    made: Any = like(search, kind)
    made.least_bytes, made.limit = least_bytes, getattr(search, "limit", search.max_iter)
    made.max_iter = min(made.limit, getattr(kind, "none", made.limit + 1) - 1)
    found: Program = made
    return found


@class_maker
def _narrow(wide: Any, width: int) -> Any:
    """A search of this kind whose levels take so many bytes."""
    none = (1 << 8 * width) - 1
    level = Field(np.dtype(f"u{width}"), fill=LARGEST, unreached=LARGEST)
    words = {"__doc__": wide.__doc__, "__module__": __name__, "wide": wide, "level_bytes": width, "none": none}
    return type(wide.__name__, (NarrowLevels, wide), {**words, "level": level})
