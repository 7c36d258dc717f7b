"""Adsorption: a label spreads from the vertices that have it, and every vertex averages what its in-neighbors say.

Baluja et al., WWW 2008, for one label, in the form that Maiter and DiGraph run: with seeds s(v),

    score(v) = damping * sum over edges u -> v of score(u) * w(u, v) / W(v)  +  (1 - damping) * s(v),

W(v) being the weight of all of v's in-edges. Weights are used where the graph has them, unless that is switched off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, NonNegative, Share, check_value
from penstock.engine.program.program import Field, Global, Program, Start
from penstock.engine.program.vertex_ids import internal_ids, vertices_of
from penstock.engine.programs.weights import ArrivingWeight, Spreading, counts_by_weight, damping_of
from penstock.storage.format.graph import Graph


class Adsorption(Program):
    """`score` (float64). source: the seeds, as an original id, several, or id -> strength (1 where not said).

    damping (alias alpha): what of a score comes from the neighbors; tol: L1 change to stop at. weight: whether edges
    count by their weights where the graph has some (False or None: each counts 1).
    """

    score = Field(np.float64)
    arriving = Field(np.float64, output=False)
    seed = Field(np.float64, output=False)
    single = True
    tolerance = 1e-9
    extendable = ("max_iter", "tol")
    by_ranges = True
    phase_names = ("weights of in-edges", "spreading")

    def __init__(
        self,
        source: Any,
        damping: Share = 0.85,
        tol: NonNegative = 1e-6,
        max_iter: Count = 1000,
        *,
        alpha: Share | None = None,
        weight: bool | str | None = True,
    ) -> None:
        self.source, self.damping = source, damping_of(damping, alpha, usual=0.85)
        self.tol, self.max_iter = tol, max_iter
        self.needs_weights = counts_by_weight(weight)

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Weighing and spreading."""
        return ArrivingWeight(self.needs_weights), Spread(self)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Weigh the in-edges, then spread."""
        if isinstance(self.source, Mapping):
            for vertex, strength in self.source.items():
                check_value(f"the strength of source {vertex}", strength, NonNegative)
            strengths = np.array(list(self.source.values()), np.float64)
            state["seed"][vertices_of(graph, list(self.source))] = strengths
        else:
            state["seed"][internal_ids(graph, self.source)] = 1.0
        if first == 0:
            yield ArrivingWeight(self.needs_weights)
        spread = Spread(self)
        yield spread
        self.converged = spread.converged


class Spread(Spreading):
    """The second phase of adsorption."""

    score = Field(np.float64)
    arriving = Field(np.float64, constant=True)
    seed = Field(np.float64, constant=True)
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Everybody begins with the seeds."""
        state["score"][:] = state["seed"]
        return Start(everything=True)

    def edge(score, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: the score, weighed."""
        return score * weight

    def vertex(incoming, arriving, seed, damping):  # type: ignore[no-untyped-def]
        """The average of what came, and the vertex's own."""
        return (damping * incoming / arriving if arriving > 0 else 0.0) + (1 - damping) * seed

    @Global(np.float64)
    def change(score, old_score):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(score - old_score)
