"""Community detection by label propagation, as LDBC Graphalytics specifies it (CDLP).

Every vertex begins with its own id for label; in each of exactly `max_iter` synchronous rounds it takes the label that
most of its neighbors have, of several the smallest. In a directed graph in-neighbors and out-neighbors count once each,
a mutual pair twice. Raghavan, Albert, Kumara, Phys. Rev. E 2007; LDBC Graphalytics Benchmark Specification 1.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count
from penstock.engine.program.program import VERTEX, Field, Global, Program, Start
from penstock.engine.program.vertex_ids import fill_ranks, names_by_rank
from penstock.storage.format.graph import Graph


class CDLP(Program):
    """`label`: original id after which a vertex's community is named. max_iter: rounds (10)."""

    label = Field(VERTEX)
    combine = "all"
    along = "both"
    everywhere = True
    extendable = ("max_iter",)

    def __init__(self, max_iter: Count = 10) -> None:
        self.max_iter = max_iter

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Labels are the places of the original ids in their order, so that the smallest is the smallest id."""
        fill_ranks(graph, state["label"])
        return Start(everything=True)

    def edge(label):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: the label."""
        return label

    def vertex(label, incoming):  # type: ignore[no-untyped-def]
        """The most frequent label, of several the smallest; its own without neighbors."""
        incoming.sort()
        best, longest = label, 0
        for at in range(len(incoming)):
            if incoming[at - longest] == incoming[at]:  # a run that is longer than the longest so far
                best, longest = incoming[at], longest + 1
        return best

    @Global(np.float64)
    def changed(label, old_label):  # type: ignore[no-untyped-def]
        """How many labels changed in a round."""
        return 1.0 if label != old_label else 0.0

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """After the last round, or where no further round would change anything."""
        return totals["changed"] == 0 or iteration + 1 >= self.max_iter

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Labels as original ids."""
        return {"label": names_by_rank(graph, state["label"])}
