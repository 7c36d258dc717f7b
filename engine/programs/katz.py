"""Katz centrality, as networkx defines it: beta plus alpha times the sum over in-neighbors, of all walks.

Leo Katz, Psychometrika 1953. It exists for alpha below the inverse of the largest eigenvalue. Above it values grow
without end, and the error message has the alpha below which they do not (the growth of a power iteration is the
eigenvalue).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, Finite, NonNegative
from penstock.engine.program.program import Field, Global, Program, Start, fields_of
from penstock.engine.program.vertex_ranges import l2_norm
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph

BEYOND = {8: 1e150, 4: 1e18}
"""By the bytes of a value, a change that no sum of walks worth asking for reaches; squares of larger ones overflow."""


class DivergedError(InputError):
    """There is no such centrality: alpha is too large for the graph."""


class Katz(Program):
    """`katz` (float64), scaled to an L2 norm of 1 unless `normalized` is false.

    alpha: what a step of a walk counts (0.1). beta: what every vertex has. tol: stop when the L1 change of a sweep is
    below vertices x tol. weight: whether edges count by their weights where the graph has some (False or None:
    each counts 1, networkx' default).
    """

    katz = Field(np.float64)
    combine = "sum"
    everywhere = True
    accumulator = "katz"
    starts_anywhere = True
    by_ranges = True
    tolerance = 1e-9
    single = True
    extendable = ("max_iter",)

    def __init__(
        self,
        alpha: NonNegative = 0.1,
        beta: Finite = 1.0,
        tol: NonNegative = 1e-6,
        max_iter: Count = 1000,
        normalized: bool = True,
        weight: bool | str | None = True,
    ) -> None:
        self.alpha, self.beta, self.tol, self.max_iter = alpha, beta, tol, max_iter
        self.normalized = normalized
        self.needs_weights = counts_by_weight(weight)
        self.enough = self.latest = 0.0

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Nobody has anything."""
        self.enough, self.latest = self.tol * graph.vertices, 0.0
        return Start(everything=True)

    def send(katz):  # type: ignore[no-untyped-def]
        """What a vertex gives each of its out-neighbors, before `alpha`."""
        return katz

    def edge(sent, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return sent * weight

    def vertex(incoming, alpha, beta):  # type: ignore[no-untyped-def]
        """The new centrality."""
        return beta + alpha * incoming

    @Global(np.float64)
    def change(katz, sent):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(katz - sent)

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the last sweep changed little enough. Raises DivergedError when values outgrow all bounds."""
        change = totals["change"]
        if change > BEYOND[np.dtype(fields_of(self)["katz"].dtype).itemsize]:  # type: ignore[arg-type]
            below = f"{self.alpha * self.latest / change:.3g}"
            raise DivergedError(
                f"alpha {self.alpha} is too large for this graph: values grew for {iteration + 1} iterations; it must "
                f"be below the inverse of the largest eigenvalue, here about {below}"
            )
        self.latest = change
        return change < self.enough

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Scale the L2 norm to 1."""
        katz = state["katz"]
        norm = l2_norm(katz)
        if self.normalized and norm > 0:
            katz /= norm
        return {"katz": katz}
