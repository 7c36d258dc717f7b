"""The tree of paths that a search has found: of every reached vertex the parent, by one more visit of each edge.

An edge (u, v) is *tight* if it gives v the very value that v has: d(u) + w = d(v). Rounding is monotone, so that a
float distance is the least sum over all paths whatever the order in which edges were relaxed, and some edge gives
exactly it. First every vertex takes the smallest original id among the tight edges from vertices that are strictly
nearer. A vertex that has none is as near as the vertex before it on every shortest path (an edge of weight 0, or one
too light to change a float). These are reached level by level, along tight edges between equal distances, from those
that have a parent, and take the smallest id of the level before. So parents never form a cycle, and do not depend on
the order of anything.

Where only the ways to some targets are wanted, the vertices on shortest paths to them are found first, by a search
against the tight edges: these alone then send, so that little of the graph is read once more. Meanwhile a vertex whose
parent is wanted, and not known, has the number of vertices for a parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start, absent_value, fields_of, like
from penstock.engine.program.program_description import class_maker
from penstock.engine.program.vertex_ids import (
    fill_ranks,
    in_original_order,
    internal_ids,
    names_by_rank,
    original_values,
)
from penstock.engine.program.vertex_ranges import mask_of, over_ranges, set_where
from penstock.storage.format.graph import Graph


class TightEdges(Program):
    """A phase: parents along tight edges to strictly farther vertices (`equal` 0), or to equally far ones (1)."""

    parent = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    distance = Field(np.uint32, constant=True, unreached=LARGEST)
    combine = "min"
    message = VERTEX
    by_ranges = True

    def __init__(self, equal: int, weight: bool) -> None:
        self.equal, self.needs_weights = equal, weight
        self.max_iter = Program.max_iter if equal else 1

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """First all vertices send whose parent is wanted, then those that have one."""
        parent, most = state["parent"], graph.vertices - self.equal
        return Start(active=mask_of(lambda a, b: parent[a:b] <= most, len(parent)))

    def edge(source, distance, target_distance, target_parent, weight, equal):  # type: ignore[no-untyped-def]
        """Travels along a tight edge: who sends it."""
        tight = distance + weight == target_distance and (distance == target_distance) == equal
        return source if tight else target_parent

    def cond(parent, vertices):  # type: ignore[no-untyped-def]
        """Only vertices whose parent is wanted, and not known, take part."""
        return parent == vertices

    def vertex(parent, incoming):  # type: ignore[no-untyped-def]
        """The parent."""
        return min(parent, incoming)


class RankedTightEdges(TightEdges):
    """The same where internal ids are in another order than original ones: parents are places in that order."""

    rank = Field(VERTEX, constant=True)

    def edge(rank, distance, target_distance, target_parent, weight, equal):  # type: ignore[no-untyped-def]
        """Travels along a tight edge: the place of who sends it."""
        tight = distance + weight == target_distance and (distance == target_distance) == equal
        return rank if tight else target_parent


class OnPaths(Program):
    """A phase: whose parents are wanted, of all vertices on shortest paths to those that are active first."""

    parent = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    distance = Field(np.uint32, constant=True, unreached=LARGEST)
    combine = "min"
    self_combining = True
    along = "in"
    by_ranges = True

    def __init__(self, targets: Sequence[int], weight: bool) -> None:
        self.targets, self.needs_weights = targets, weight

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Those of the targets that are reached."""
        targets = np.asarray(self.targets, np.int64)
        found = targets[state["distance"][targets] != absent_value(self, "distance", state["distance"])]
        state["parent"][found] = graph.vertices
        return Start(active=np.unique(found))

    def edge(parent, distance, target_parent, target_distance, weight):  # type: ignore[no-untyped-def]
        """Travels against a tight edge: that the parent is wanted."""
        tight = target_distance <= distance and target_distance + weight == distance
        return parent if tight else target_parent

    def cond(parent, vertices):  # type: ignore[no-untyped-def]
        """Vertices that do not know."""
        return parent > vertices


class LimitingEdges(TightEdges):
    """The same of widest paths: an edge is tight if it gives a vertex the width that it has."""

    distance = None  # type: ignore[assignment]
    width = Field(np.int64, constant=True, unreached=-1)

    def edge(source, width, target_width, target_parent, weight, equal):  # type: ignore[no-untyped-def]
        """Travels along a tight edge: who sends it."""
        tight = min(width, weight) == target_width and (width == target_width) == equal
        return source if tight else target_parent


class RankedLimitingEdges(LimitingEdges):
    """The same where internal ids are in another order than original ones: parents are places in that order."""

    rank = Field(VERTEX, constant=True)

    def edge(rank, width, target_width, target_parent, weight, equal):  # type: ignore[no-untyped-def]
        """Travels along a tight edge: the place of who sends it."""
        tight = min(width, weight) == target_width and (width == target_width) == equal
        return rank if tight else target_parent


class PathTree(Program):
    """A search, and then the parents of what it has reached; made by `with_parents`.

    The first field is that of the search, the second `parent`. kind: of the search. tight: of the phases that find
    parents. back: of the phase before them, where `backwards`: it finds whose parents are wanted.
    """

    kind: ClassVar[Any] = Program
    tight: ClassVar[type[TightEdges]] = TightEdges
    back: ClassVar[type[OnPaths] | None] = None
    backwards = False
    by_ranges = True
    parents: bool | None
    working_bytes = 1  # the mask of the first frontier
    source: Any

    @property
    def search(self) -> Any:
        """The search, with what is known of it here."""
        made = like(self, self.kind)
        made.end_at(made.target, made.cutoff)
        made.parents = False
        return made

    @property
    def ranked(self) -> bool:
        """Whether parents are places in the order of original ids, and not internal ids."""
        return "rank" in fields_of(self)

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """The search, the way back, and the parents."""
        return (self.search, *self._way_back(), self.edges(0))

    def edges(self, equal: int) -> Program:
        """The phase that finds parents: of larger, or of equal distances."""
        return self.tight(equal, self.needs_weights)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Search; whose parents are wanted; parents that are nearer; where some have none, those as near."""
        parent = state["parent"]
        if first < 1:
            search = self.search
            yield search
            self.watched, self.converged = search.watched, search.converged
            if not self.backwards:
                self._want_all(state)
                self._plant(graph, state)
        for phase in self._way_back() if first <= 1 else ():
            yield phase
            self._plant(graph, state)
        if first < 2 + self.backwards:
            yield self.edges(0)
        if first == 2 + self.backwards or any(
            over_ranges(lambda a, b: bool(np.any(parent[a:b] == graph.vertices)), len(parent))
        ):
            yield self.edges(1)

    def _way_back(self) -> list[Program]:
        """The phase that finds whose parents are wanted, where these are not all."""
        return [self.back(self.watched, self.needs_weights)] if self.backwards and self.back is not None else []

    def _want_all(self, state: dict[str, NDArray[Any]]) -> None:
        """Let every vertex that is reached want a parent."""
        name = next(iter(fields_of(self)))
        values, parent = state[name], state["parent"]
        none = absent_value(self, name, values)
        set_where(parent, lambda first, last: values[first:last] != none, len(values))

    def _plant(self, graph: Graph, state: dict[str, NDArray[Any]]) -> None:
        """Make every source its own parent."""
        sources = internal_ids(graph, self.source)
        if self.ranked:
            fill_ranks(graph, state["rank"])
            state["parent"][sources] = state["rank"][sources]
        else:
            state["parent"][sources] = sources

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The search's values, and parents as original ids."""
        name, parent = next(iter(fields_of(self))), state["parent"]
        named = names_by_rank if self.ranked else original_values
        nobody, wanted = absent_value(self, "parent", parent), graph.vertices
        set_where(parent, lambda a, b: parent[a:b] == wanted, nobody)  # of a search that did not converge
        return {name: state[name], "parent": named(graph, state["parent"])}


def with_parents(search: Program, graph: Graph, edges: tuple[type[TightEdges], type[TightEdges]]) -> PathTree:
    """Return the program that runs a search and then finds parents.

    Parameters
    ----------
    search : Program
        The search, in the form that runs on this graph; it has `source`.
    graph : Graph
        The graph.
    edges : pair of types of TightEdges
        Which edges are tight; the second one of graphs whose vertices are in another order than their ids.
    """
    ranked = not in_original_order(graph)
    searching: Any = type(search)
    kind: Any = edges[ranked]
    made = like(search, _kind(searching, kind))
    made.bounded = False  # it has no iterations of its own
    against = graph.layout == "rows" and (graph.into is not None or not graph.directed)
    made.backwards = made.back is not None and made.parents is None and against
    return made


@class_maker
def _tight(search: Any, edges: Any) -> type[TightEdges]:
    """The class of edges that are tight for values of a search's dtype."""
    return type(f"{search.__name__}Edges", (edges,), _about(search, edges))


@class_maker
def _back(search: Any) -> type[OnPaths]:
    """The class of walks back for values of a search's dtype."""
    return type(f"On{search.__name__}", (OnPaths,), _about(search, OnPaths))


def _about(search: Any, kind: Any) -> dict[str, Any]:
    """What a class of this kind has for a search: its values."""
    name, values = next(iter(fields_of(search).items()))
    constant = Field(values.dtype, constant=True, unreached=values.unreached)
    return {"__doc__": kind.__doc__, "__module__": __name__, name: constant}


@class_maker
def _kind(search: Any, edges: Any) -> type[PathTree]:
    """The class of a search that finds parents."""
    name, values = next(iter(fields_of(search).items()))
    fields = {name: Field(values.dtype, fill=values.fill, unreached=values.unreached)}
    back = _back(search) if name == "distance" else None
    fields["parent"] = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    if "rank" in fields_of(edges):
        fields["rank"] = Field(VERTEX, output=False)
    own = {"__doc__": PathTree.__doc__, "__module__": __name__, "kind": search}
    own |= {"tight": _tight(search, edges), "back": back, "tolerance": search.tolerance}
    return type(f"{search.__name__}Tree", (PathTree,), {**own, **fields})
