"""Strongly connected components: vertices that lead to each other.

Trimming first (McLendon et al., J. Parallel Distrib. Comput. 2005): vertices that nothing left leads to, or that lead
to nothing left, are components of their own. Then the component of a vertex with many edges, as what it reaches both
ways (Fleischer, Hendrickson, Pinar, IPDPS 2000), usually the largest one. The rest by coloring (Orzan, 2004): the
smallest id spreads forward, and from each id that kept its own color backward within the color. In an undirected graph
they are the weakly connected ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.precision import counting
from penstock.engine.program.program import VERTEX, Field, Program, Start
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import smallest_members
from penstock.engine.program.vertex_ranges import each_range, is_any, mask_of, over_ranges
from penstock.engine.programs.wcc import WCC, WCCByLabels
from penstock.storage.base.budget import cores
from penstock.storage.format.graph import Graph
from penstock.storage.read.degree_count import degree_index


class SCC(Program):
    """`component`: the smallest original id of the vertex's strongly connected component."""

    component = Field(VERTEX)
    color = Field(VERTEX, output=False)
    working_bytes = 2
    by_ranges = True
    weak: ClassVar[type[Program]] = WCC

    def lighter(self, graph: Graph) -> Program | None:
        """The same of an undirected graph by labels."""
        return None if graph.directed or type(self) is not SCC else SCCByLabels()

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Trimming, the largest component and coloring; in an undirected graph the weakly connected components."""
        if graph.vertices == 0 or not graph.directed:
            return [self.weak()] if graph.vertices else []
        return [*_trimming(graph), *_reaching(0), SpreadColor(), ClaimColor()]

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Trim, take the largest component, trim, color until no vertex is left. `vertices`: no component yet."""
        component = state["component"]
        if first == 0:
            component[:] = graph.vertices
        if graph.vertices == 0:
            return
        if not graph.directed:
            yield self.weak()
            return
        for number in range(first, 2):
            yield _trimming(graph)[number]
        if first >= 2 or is_any(component, graph.vertices):
            yield from self._largest(graph, state, max(2, first))
        number = max(6, first)
        while number % 2 == 1 or is_any(component, graph.vertices):
            yield (SpreadColor, ClaimColor)[number % 2]()
            number += 1

    def phase_name(self, graph: Graph, number: int) -> str:
        """``trimming``, ``largest component, forward``, ``coloring, round 3, forward``."""
        if not graph.directed:
            return "components"
        way = ("forward", "backward")[number % 2]
        if number < 2 or number in (4, 5):
            return f"trimming, {way}"
        return f"largest component, {way}" if number < 4 else f"coloring, round {(number - 6) // 2 + 1:,}, {way}"

    def _largest(self, graph: Graph, state: dict[str, NDArray[Any]], first: int) -> Iterator[Program]:
        """Phases 2 to 5: what the pivot reaches both ways, and trimming what that leaves."""
        component = state["component"]
        if first < 4:
            pivot = _pivot(graph, component)
            for number in range(first, 4):
                yield _reaching(pivot)[number - 2]
            _name_members(component, state["color"])
        for number in range(max(4, first), 6):
            yield _trimming(graph)[number - 4]

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Name every component by its smallest original id."""
        return {"component": smallest_members(graph, state["component"])}


class SCCByLabels(SCC):
    """Components of an undirected graph, whose vertices may be in a file in ranks and on a GPU, too."""

    in_pages = True
    weak = WCCByLabels


class Trim(Program):
    """Take away, again and again, vertices that nothing left leads to."""

    component = Field(VERTEX)
    waiting = Field(np.int64)
    combine = "sum"
    message = np.int64
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """In the first iteration every remaining vertex counts its remaining in-neighbors."""
        return Start(active=state["component"] == graph.vertices)

    def edge(source, target):  # type: ignore[no-untyped-def]
        """Travels along an edge: one counted (first iteration), one taken away (later)."""
        return 1 if source != target else 0

    def cond(component, vertices):  # type: ignore[no-untyped-def]
        """Only what is left takes part."""
        return component == vertices

    def vertex(component, waiting, incoming, is_active, vertex_id, iteration, vertices):  # type: ignore[no-untyped-def]
        """A component of its own once nothing leads here."""
        rest = incoming if iteration == 0 else waiting - incoming
        return (vertex_id if rest == 0 and component == vertices else component), rest

    def active(component, old_component):  # type: ignore[no-untyped-def]
        """Whoever goes tells those he leads to."""
        return component != old_component


def _trimming(graph: Graph) -> list[Program]:
    """Both ways of trimming: then vertices go that lead to nothing left."""
    return [counting(variant(Trim, along=along)(), graph) for along in ("out", "in")]


class Reach(Program):
    """What `pivot` leads to, among what is left: a bit of `color`, which is free until colors spread."""

    color = Field(VERTEX)
    component = Field(VERTEX, constant=True)
    combine = "or"
    self_combining = True
    by_ranges = True
    bit = 1

    def __init__(self, pivot: int) -> None:
        self.pivot = pivot

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The pivot reaches itself."""
        state["color"][self.pivot] |= self.bit
        return Start(active=np.array([self.pivot]))

    def edge(bit):  # type: ignore[no-untyped-def]
        """Travels along an edge: the news."""
        return bit

    def cond(color, component, vertices, bit):  # type: ignore[no-untyped-def]
        """Those who are left and have not heard."""
        return component == vertices and color & bit == 0


def _reaching(pivot: int) -> list[Program]:
    """What a pivot leads to, bit 1, and what leads to it, bit 2."""
    return [variant(Reach, along=along, bit=bit)(pivot) for along, bit in (("out", 1), ("in", 2))]


class SpreadColor(Program):
    """`color` becomes the smallest id that leads here, among what is left."""

    color = Field(VERTEX)
    component = Field(VERTEX, constant=True)
    combine = "min"
    self_combining = True
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every remaining vertex starts with its own color."""
        color = state["color"]

        def fill(first: int, last: int) -> None:
            color[first:last] = np.arange(first, last, dtype=color.dtype)

        each_range(fill, graph.vertices)
        return Start(active=state["component"] == graph.vertices)

    def edge(color):  # type: ignore[no-untyped-def]
        """Travels along an edge: the color."""
        return color

    def cond(component, vertices):  # type: ignore[no-untyped-def]
        """Only what is left takes part."""
        return component == vertices


class ClaimColor(Program):
    """A vertex that kept its own color is a component, with all vertices of that color that lead to it."""

    component = Field(VERTEX)
    color = Field(VERTEX, constant=True)
    combine = "min"
    self_combining = True
    along = "in"
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Roots are their own components."""
        component, color = state["component"], state["color"]

        def claim(first: int, last: int) -> NDArray[np.bool_]:
            part, own = component[first:last], np.arange(first, last, dtype=color.dtype)
            roots: NDArray[np.bool_] = (part == graph.vertices) & (color[first:last] == own)
            component[first + np.flatnonzero(roots)] = own[roots]
            return roots

        return Start(active=mask_of(claim, graph.vertices))

    def edge(component, color, target_color, target_component):  # type: ignore[no-untyped-def]
        """Travels against an edge: the component, to the same color."""
        return component if color == target_color else target_component

    def cond(component, vertices):  # type: ignore[no-untyped-def]
        """Only what is left takes part."""
        return component == vertices


def _pivot(graph: Graph, component: NDArray[Any]) -> int:
    """A vertex that is left, of the most edges out (times those in, where the graph has them)."""
    stored = [degree_index(graph, "out", cores())]
    if graph.into is not None:
        stored.append(degree_index(graph, "in", cores()))

    def best(first: int, last: int) -> tuple[float, int]:
        weight = np.ones(last - first)
        for index in stored:
            weight *= 1.0 + index.degrees(first, last)
        weight[component[first:last] != graph.vertices] = 0
        at = int(np.argmax(weight))
        return float(weight[at]), -(first + at)

    return -max(over_ranges(best, graph.vertices))[1]


def _name_members(component: NDArray[Any], reached: NDArray[Any]) -> None:
    """Name the component of those that were reached both ways by the first of them."""

    def first_member(first: int, last: int) -> int:
        both = reached[first:last] == 3
        at = int(both.argmax())
        return first + at if both[at] else len(component)

    name = min(over_ranges(first_member, len(component)))
    component[reached == 3] = name
