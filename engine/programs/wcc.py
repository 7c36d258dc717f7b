"""Weakly connected components by a disjoint-set forest.

Afforest (Sutton, Ben-Nun, Barak, IPDPS 2018): link a few neighbors of every vertex first, then only what is outside
the largest tree. A component is named by its smallest original id. Where memory does not hold all trees, ranks and GPUs
let the smallest number of a component travel along its edges instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.earlier_answer import ANSWER_BYTES, Answer, EarlierAnswer, Ends, join_groups
from penstock.engine.program.program import VERTEX, Field, Program, Start
from penstock.engine.program.vertex_ids import smallest_members
from penstock.engine.program.vertex_ranges import ALONE, number_all
from penstock.storage.checkpoint.state_pages import PagedValues
from penstock.storage.format.graph import Graph

NUMBERED = 1 << 20
"""Vertices that are numbered together where one thread does, or a GPU."""


class WCC(Program):
    """Component of every vertex, named by its smallest original id; edge direction is ignored.

    earlier: an answer in HDF5 of a run before edges were added, of which those alone are looked at then.
    """

    component = Field(VERTEX)
    combine = "union"
    starts_anywhere = True
    by_ranges = True

    earlier: Answer = None

    def __init__(self, earlier: Answer = None) -> None:
        if earlier is not None:
            self.earlier = str(earlier)

    def form(self, graph: Graph, mode: str) -> Program:
        """This one, or what begins from an earlier answer, where only edges were added since."""
        if self.earlier is None:
            return self
        added = EarlierAnswer(self, graph, self.earlier, "component").added_since()
        return self if added is None else GrownWCC(self.earlier, added)

    def lighter(self, graph: Graph) -> Program | None:
        """Labels, whose vertices may be in a file in ranks and on a GPU, too."""
        return WCCByLabels()

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex is its own tree."""
        component = state["component"]
        if isinstance(component, np.ndarray) and len(component) > ALONE:
            number_all(component)  # imports Numba, which a GPU's run does without
        else:
            _number(component)
        return Start(everything=True)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Name every tree by the smallest original id in it."""
        return _named(graph, state["component"])


def _named(graph: Graph, root: NDArray[Any]) -> dict[str, Any]:
    """The answer, from the smallest vertex of each component."""
    return {"component": root if graph.original is None else smallest_members(graph, root)}


def _number(component: Any) -> None:
    """Give every vertex its number, on a device or in a file, too."""
    if isinstance(component, PagedValues):
        component[:] = np.arange
        return
    for first in range(0, len(component), NUMBERED):
        last = min(first + NUMBERED, len(component))
        component[first:last] = np.arange(first, last, dtype=component.dtype, like=component)


class WCCByLabels(Program):
    """The same by labels: every vertex gets the smallest number in its component."""

    component = Field(VERTEX)
    combine = "min"
    self_combining = True
    along = "both"
    starts_anywhere = True
    by_ranges = True
    in_pages = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex is a component."""
        _number(state["component"])
        return Start(everything=True)

    def edge(component):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way."""
        return component

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Name every component by its smallest original id."""
        return _named(graph, state["component"])


class GrownWCC(WCCByLabels):
    """The same from an earlier answer: components are joined by the edges added since, and no others are read."""

    in_pages = starts_anywhere = by_ranges = False
    working_bytes = ANSWER_BYTES
    earlier: Answer = None

    def __init__(self, earlier: Answer, added: Ends) -> None:
        self.earlier, self._added = earlier, added

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Join the components that there were."""
        number_all(state["component"])
        EarlierAnswer(self, graph, self.earlier, "component").fill(state["component"], members=True)
        join_groups(state["component"], *self._added)
        return Start(active=np.empty(0, np.int64))
