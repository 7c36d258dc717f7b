"""Eigenvector centrality, as networkx defines it: a vertex counts as much as its in-neighbors together.

The left eigenvector of the largest eigenvalue of the adjacency matrix (Bonacich, J. Math. Sociology 1972), by power
iteration on the matrix plus a multiple of the identity. This changes no eigenvector, and lets bipartite graphs
converge, whose smallest eigenvalue is the negative of the largest. networkx adds 1; here it is a quarter of the
eigenvalue, if that is more: beside an eigenvalue of 1000 a shift of 1 would take thousands of iterations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, NonNegative
from penstock.engine.program.program import Field, Global, Program, Start
from penstock.engine.program.vertex_ranges import l2_norm
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.format.graph import Graph


class Eigenvector(Program):
    """`eigenvector` (float64), L2 norm 1.

    tol: stop when the L2 change of a sweep is below. weight: whether edges count by their weights where the graph has
    some (False or None: each counts 1, networkx' default). Where the largest eigenvalue belongs to several components,
    the answer depends on the start (all alike here), and a graph without cycles does not converge, as everywhere.
    """

    eigenvector = Field(np.float64)
    combine = "sum"
    everywhere = True
    accumulator = "eigenvector"
    starts_anywhere = True
    by_ranges = True
    tolerance = 1e-9
    single = True
    extendable = ("max_iter", "tol")
    share = 0.2  # of the norm, which becomes the eigenvalue and the shift together

    def __init__(self, tol: NonNegative = 1e-6, max_iter: Count = 1000, weight: bool | str | None = True) -> None:
        self.tol, self.max_iter, self.needs_weights = tol, max_iter, counts_by_weight(weight)
        self.least = 1.0

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """All alike. The least shift is that of networkx, in units of the mean weight."""
        mean = float(graph.weight_range[1]) if self.needs_weights and graph.weight_range is not None else 1.0
        self.least = mean if mean > 0 else 1.0
        state["eigenvector"][:] = max(1, graph.vertices) ** -0.5
        return Start(everything=True)

    def send(eigenvector, squares):  # type: ignore[no-untyped-def]
        """The value, of a vector of norm 1."""
        return eigenvector / squares**0.5

    def edge(sent, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return sent * weight

    def vertex(sent, incoming, squares, share, least):  # type: ignore[no-untyped-def]
        """The new value, not scaled: its norm tells the eigenvalue."""
        return incoming + max(share * squares**0.5, least) * sent

    @Global(np.float64)
    def squares(eigenvector):  # type: ignore[no-untyped-def]
        """The square of the norm."""
        return eigenvector * eigenvector

    @Global(np.float64)
    def moved(eigenvector, sent, squares):  # type: ignore[no-untyped-def]
        """The square of a sweep's change, before it is scaled."""
        return (eigenvector - sent * squares**0.5) ** 2

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the last sweep changed little enough."""
        return bool(totals["moved"] <= self.tol**2 * totals["squares"])

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Scale the L2 norm to 1."""
        found = state["eigenvector"]
        norm = l2_norm(found)
        if norm > 0:
            found /= norm
        return {"eigenvector": found}
