"""PageRank, as networkx defines it: ranks sum to 1, dangling vertices spread by the teleport vector.

Two forms. Sweeps (power iteration): every vertex, every iteration, pulled where in-edges are stored. Residual push
(Δ-PageRank; Andersen, Chung, Lang, FOCS 2006): only vertices with enough unsent rank act, asynchronous in spirit. The
residual form solves the system without dangling mass and scales the sum to 1 at the end, which is the same thing when
dangling vertices spread by the teleport vector. Edge weights are ignored; parallel edges count each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import Field, Global, Program, Start
from penstock.engine.programs.damping import damping_of
from penstock.engine.vertices import internal_id
from penstock.storage.errors import InputError
from penstock.storage.graph import Graph


class PageRank(Program):
    """Rank of every vertex (float64, sum 1).

    damping (alias alpha): share that follows edges. tol: stop when the L1 change of a sweep is below; 0 runs
    exactly max_iter sweeps. personalization: original id -> weight (not all zero), for the teleport vector.
    """

    rank = Field(np.float64)
    combine = "sum"
    everywhere = True
    starts_anywhere = True
    tolerance = 1e-9

    def __init__(
        self,
        damping: float = 0.85,
        tol: float = 1e-6,
        max_iter: int = 100,
        personalization: Mapping[int, float] | None = None,
        *,
        alpha: float | None = None,
    ) -> None:
        if tol < 0 or max_iter < 0:
            raise InputError(f"tol {tol} and max_iter {max_iter} must not be negative")
        self.damping = damping_of(damping, alpha, usual=0.85)
        self.tol = tol
        self.max_iter = max_iter
        self.personalization = personalization
        self.base_rank = 0.0
        self.least = 0.0

    def form(self, graph: Graph, mode: str) -> Program:
        """The residual form where asynchronous execution is asked for; the personalized where wanted."""
        forms = {
            (False, False): PageRank,
            (False, True): PersonalizedPageRank,
            (True, False): ResidualPageRank,
            (True, True): ResidualPersonalizedPageRank,
        }
        wanted = forms[mode == "async", self.personalization is not None]
        if type(self) is wanted:
            return self
        return wanted(self.damping, self.tol, self.max_iter, self.personalization)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has the same rank."""
        self.base_rank = (1 - self.damping) / max(1, graph.vertices)
        state["rank"][:] = 1 / max(1, graph.vertices)
        return Start(everything=True)

    def send(rank, degree, damping):  # type: ignore[no-untyped-def]
        """What a vertex gives each of its out-neighbors."""
        return damping * rank / degree if degree > 0 else 0.0

    def edge(sent):  # type: ignore[no-untyped-def]
        """Travels along an edge, unchanged."""
        return sent

    def vertex(incoming, dangling, base_rank, damping, vertices):  # type: ignore[no-untyped-def]
        """The new rank."""
        return base_rank + incoming + damping * dangling / vertices

    @Global(np.float64)
    def dangling(rank, degree):  # type: ignore[no-untyped-def]
        """Rank of the vertices without out-edges."""
        return rank if degree == 0 else 0.0

    @Global(np.float64)
    def change(rank, old_rank):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(rank - old_rank)

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the last sweep changed little enough."""
        return totals["change"] < self.tol


class PersonalizedPageRank(PageRank):
    """PageRank with a teleport vector of the user's."""

    starts_anywhere = False
    working_bytes = 16
    teleport = Field(np.float64, constant=True, output=False)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has the same rank; the teleport vector is set."""
        state["teleport"][:] = teleport_vector(graph, self.personalization or {})
        return super().start(graph, state)

    def vertex(incoming, teleport, dangling, damping):  # type: ignore[no-untyped-def]
        """The new rank."""
        return (1 - damping + damping * dangling) * teleport + incoming


class ResidualPageRank(PageRank):
    """PageRank by residual push."""

    rank = Field(np.float64)
    residual = Field(np.float64, output=False)
    everywhere = False
    dangling = None  # type: ignore[assignment]
    change = None  # type: ignore[assignment]
    tolerance = 1e-6
    working_bytes = 24

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex holds its own share, unsent."""
        count = max(1, graph.vertices)
        state["rank"][:] = self.first_share(graph)
        state["residual"][:] = state["rank"]
        self.least = self.tol * (1 - self.damping) / count
        return Start(active=np.flatnonzero(state["residual"] > self.least))

    def first_share(self, graph: Graph) -> Any:
        """What each vertex gets by teleport."""
        return (1 - self.damping) / max(1, graph.vertices)

    def send(residual, degree, damping):  # type: ignore[no-untyped-def]
        """What an active vertex gives each of its out-neighbors."""
        return damping * residual / degree if degree > 0 else 0.0

    def vertex(rank, residual, incoming, is_active):  # type: ignore[no-untyped-def]
        """New rank and what is unsent of it."""
        return rank + incoming, (incoming if is_active else residual + incoming)

    def pending(residual):  # type: ignore[no-untyped-def]
        """What waits to be sent."""
        return residual

    def active(residual, least):  # type: ignore[no-untyped-def]
        """Active while it holds enough that is unsent."""
        return residual > least

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Runs until nobody is active."""
        return False

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Scale the sum to 1, which spreads the dangling vertices' rank."""
        rank = state["rank"]
        total = float(rank.sum())
        return {"rank": rank / total if total > 0 else rank}


class ResidualPersonalizedPageRank(ResidualPageRank):
    """Residual push with a teleport vector of the user's."""

    starts_anywhere = False

    def first_share(self, graph: Graph) -> Any:
        """What each vertex gets by teleport."""
        return (1 - self.damping) * teleport_vector(graph, self.personalization or {})


def teleport_vector(graph: Graph, personalization: Mapping[int, float]) -> NDArray[np.float64]:
    """The teleport vector, float64 (vertices,), sum 1. Raises InputError for weights that give none."""
    if not isinstance(personalization, Mapping):
        raise InputError(f"personalization {personalization!r} is no mapping; write {{id: weight}}, as networkx has it")
    vector = np.zeros(graph.vertices, dtype=np.float64)
    for vertex, weight in personalization.items():
        if not weight >= 0 or not np.isfinite(weight):
            raise InputError(f"personalization of vertex {vertex} is {weight}; it must be finite and not negative")
        vector[internal_id(graph, vertex)] += weight
    total = float(vector.sum())
    if total <= 0:
        raise InputError("personalization has no positive weight: give at least one vertex a weight above 0")
    vector /= total
    return vector
