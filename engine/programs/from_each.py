"""Distances from each of several sources, a column for each.

By hops, up to 64 searches share each sweep of the edges (`shared_searches.py`). By weights, or from few sources, one
search follows another: engine/decisions/shared_searches.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import NonNegative
from penstock.engine.program.program import LARGEST, Field, Program, Start, fields_of, like, value_of, weighted
from penstock.engine.program.program_description import class_maker, variant
from penstock.engine.program.vertex_ids import originals_of, vertices_of
from penstock.engine.program.vertex_ranges import each_range
from penstock.engine.programs.bfs import BFSLevels
from penstock.engine.programs.search_ends import Vertices
from penstock.engine.programs.shared_searches import SharedLevels, Together, shared
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.graph import Graph


class FromEach(Together, Program):
    """`distance_S` from each source S (original ids), in the order given: uint32, uint64 or float64 as `sssp` has them.

    weight: whether edges count by their weights where the graph has some (False or None: each counts 1). cutoff: the
    largest distance of the answer.
    """

    tolerance = 1e-9
    by_ranges = True
    search: ClassVar[Any] = BFSLevels

    def __init__(self, source: Vertices, weight: bool | str | None = True, cutoff: NonNegative | None = None) -> None:
        self.source, self.needs_weights, self.cutoff = source, counts_by_weight(weight), cutoff

    def form(self, graph: Graph, mode: str) -> Program:
        """The program that has a field for each source."""
        if type(self) is not FromEach:
            return self
        search: Any = BFSLevels
        if weighted(self, graph):
            search = SSSP(0).kind_on(graph, once=True)
        kind: Any = _kind(search, columns_for(originals_of(self.source)))
        made: FromEach = like(self, kind)
        made.look_at(graph)
        return made

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """One search of each kind."""
        sources = self._sources()
        alone = self._from(sources[0])
        return (self._together(graph, sources[:1]), alone) if self.shares(len(sources)) else (alone,)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Searches from many sources at once, or from one after another."""
        found, *columns = (state[name] for name in fields_of(self))
        sources = self._sources()
        for number, a, b in self.turns(len(sources), first):
            if b - a > 1:
                search = self._together(graph, sources[a:b])
                yield search
                if search.too_deep:
                    self.apart = number + 1, a
                else:
                    _keep_levels(search, columns[a:b])
                search.forget()
                continue
            yield self._from(sources[a])

            def keep(first: int, last: int, column: NDArray[Any] = columns[a]) -> None:
                column[first:last] = found[first:last]

            each_range(keep, graph.vertices)
            if self.shares(len(sources)):
                self.note_levels(number, found)

    def phase_name(self, graph: Graph, number: int) -> str:
        """``source 3 of 5``, ``sources 1 to 64 of 80``."""
        return self.turn_name(number, len(self._sources()))

    def phase_count(self, graph: Graph) -> int:
        """As many as there are batches, or sources."""
        return self.turn_count(len(self._sources()))

    def _sources(self) -> list[int | str]:
        """Their original ids, once each."""
        return list(dict.fromkeys(originals_of(self.source)))

    def _together(self, graph: Graph, sources: list[int | str]) -> SharedLevels:
        """The searches from these sources."""
        kind = shared(SharedLevels, self.together)
        found: SharedLevels = kind(vertices_of(graph, sources).tolist(), self.cutoff)
        return found

    def _from(self, source: int | str) -> Program:
        """The search from one source."""
        search: Any = self.search(source)
        search.end_at(None, self.cutoff)
        made: Program = search
        return made


def _keep_levels(search: SharedLevels, columns: list[NDArray[Any]]) -> None:
    """Write the levels of every search to its column."""
    absent = value_of(LARGEST, columns[0].dtype)

    def keep(first: int, last: int) -> None:
        for a, b, levels in search.levels(first, last):
            for column, found in zip(columns, levels.T, strict=True):
                column[a:b] = np.where(found == 0, absent, found)

    each_range(keep, len(columns[0]))
    for column, source in zip(columns, search.sources, strict=True):
        column[source] = 0


class Anew:
    """What a search has otherwise whose field holds the answer of the one before."""

    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Nothing is reached but the source."""
        name, field = next(iter(fields_of(type(self)).items()))  # type: ignore[arg-type]
        state[name][:] = value_of(field.unreached, state[name].dtype)
        found: Start = super().start(graph, state)  # type: ignore[misc]
        return found


def columns_for(sources: list[int | str]) -> tuple[str, ...]:
    """Return the names of the fields. Raises InputError where two sources would have the same."""
    names = {one: f"distance_{str(one).replace('/', '_')}" for one in sources}
    if len(set(names.values())) < len(names):
        raise InputError(
            f"sources {brief(', '.join(map(str, names)))}: two columns would have the same name; run them apart"
        )
    return tuple(names.values())


@class_maker
def _kind(search: Any, columns: tuple[str, ...]) -> type[FromEach]:
    """The class with these columns."""
    name, field = next(iter(fields_of(search).items()))
    found: dict[str, Any] = {name: Field(field.dtype, output=False)}
    found |= {column: Field(field.dtype, fill=LARGEST, unreached=LARGEST) for column in columns}
    together = Together.together if search is BFSLevels else 1
    own = {"__doc__": FromEach.__doc__, "__module__": __name__, "search": variant(search, Anew), "together": together}
    return type(FromEach.__name__, (FromEach,), {**own, **found})
