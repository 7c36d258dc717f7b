"""Owns PageRank with everything that networkx's has: weights, a start, a teleport vector, and one for dangling nodes.

Edges share a vertex's rank in proportion to their weights. The sweeps are those of networkx.pagerank (power iteration),
so that both stop after the same one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import Field, Global, Program, Start
from penstock.storage.graph import Graph

Vector = NDArray[np.float64]


class WeightedPageRank(Program):
    """Rank of every vertex (float64, sum 1).

    alpha: share that follows edges. tol: stop when the L1 change of a sweep is below. ranks: first ranks, (vertices,).
    homes: where the rest of all rank goes, and where that of vertices without out-edges goes, two such vectors.
    weighed: an attribute, 0 if every edge shall count 1 whatever its weight.
    """

    rank = Field(np.float64)
    strength = Field(np.float64, constant=True, output=False)
    teleport = Field(np.float64, constant=True, output=False)
    refuge = Field(np.float64, constant=True, output=False)
    combine = "sum"
    everywhere = True
    needs_weights = True
    tolerance = 1e-9

    weighed = 1

    def __init__(self, alpha: float, tol: float, max_iter: int, ranks: Vector, homes: tuple[Vector, Vector]) -> None:
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.ranks = ranks
        self.homes = homes

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Set the vectors; a vertex's strength is the sum of its out-edges' weights."""
        state["rank"][:] = self.ranks
        state["teleport"][:], state["refuge"][:] = self.homes
        state["strength"][:] = strengths(graph, weighed=bool(self.weighed))
        return Start(everything=True)

    def send(rank, strength, alpha):  # type: ignore[no-untyped-def]  # noqa: N805
        """What a vertex gives for each unit of weight."""
        return alpha * rank / strength if strength != 0 else 0.0

    def edge(sent, weight, weighed):  # type: ignore[no-untyped-def]  # noqa: N805
        """Travels along an edge."""
        return sent * weight if weighed != 0 else sent

    def vertex(incoming, dangling, alpha, teleport, refuge):  # type: ignore[no-untyped-def]  # noqa: N805
        """The new rank."""
        return incoming + alpha * dangling * refuge + (1.0 - alpha) * teleport

    @Global(np.float64)
    def dangling(rank, strength):  # type: ignore[no-untyped-def]  # noqa: N805
        """Rank of the vertices without out-edges."""
        return rank if strength == 0 else 0.0

    @Global(np.float64)
    def change(rank, old_rank):  # type: ignore[no-untyped-def]  # noqa: N805
        """L1 change of a sweep."""
        return abs(rank - old_rank)

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the last sweep changed little enough."""
        return totals["change"] < self.tol


def strengths(graph: Graph, *, weighed: bool) -> Vector:
    """The sum of the weights of every vertex's out-edges, of a graph in memory; without weights their number."""
    degrees = graph.out.index().degrees(0, graph.vertices)
    assert graph.out.arrays is not None, "a converted graph is in memory"
    weights = graph.out.arrays[1]
    if weights is None or not weighed:
        return degrees.astype(np.float64)
    sources = np.repeat(np.arange(graph.vertices), degrees)
    sums: Vector = np.bincount(sources, weights, graph.vertices).astype(np.float64)
    return sums
