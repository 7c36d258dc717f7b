"""Hubs and authorities (HITS): a good hub points to good authorities, a good authority is pointed to by good hubs.

Kleinberg, J. ACM 1999, by power iteration in two phases a round: hubs send along their edges, authorities against them.
Scaled as networkx scales it: both sum to 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import Field, Program, Start
from penstock.storage.graph import Graph


class HITS(Program):
    """`hub` and `authority` (float64, sum 1 each).

    tol: stop when the L1 change of the hubs in a round is below; max_iter: rounds. weight: whether edges count by their
    weights. In a graph whose largest singular value is not the only one of its size the answer depends on the start
    (all alike here), as everywhere.
    """

    hub = Field(np.float64)
    authority = Field(np.float64)
    tolerance = 1e-9

    def __init__(self, tol: float = 1e-8, max_iter: int = 1000, weight: bool | str | None = None) -> None:
        self.tol, self.max_iter, self.weight = tol, max_iter, bool(weight)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Iterator[Program]:
        """Authorities from hubs, hubs from authorities, round by round."""
        hub, authority = state["hub"], state["authority"]
        hub[:] = 1 / max(1, graph.vertices)
        self.converged = False
        for _ in range(self.max_iter):
            before = hub.copy()
            yield Authorities(self.weight)
            _scale(authority)
            yield Hubs(self.weight)
            _scale(hub)
            if float(np.abs(hub - before).sum()) < self.tol:
                self.converged = True
                return


class Authorities(Program):
    """One sweep: the sum of the hubs that point here."""

    authority = Field(np.float64)
    hub = Field(np.float64, constant=True)
    combine = "sum"
    everywhere = True
    max_iter = 1

    def __init__(self, weight: bool) -> None:
        self.needs_weights = weight  # type: ignore[misc]

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Everybody takes part."""
        return Start(everything=True)

    def edge(hub, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return hub * weight

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The sum."""
        return incoming


class Hubs(Program):
    """One sweep: the sum of the authorities pointed to."""

    hub = Field(np.float64)
    authority = Field(np.float64, constant=True)
    combine = "sum"
    along = "in"
    everywhere = True
    max_iter = 1

    def __init__(self, weight: bool) -> None:
        self.needs_weights = weight  # type: ignore[misc]

    def edge(authority, weight):  # type: ignore[no-untyped-def]
        """Travels against an edge."""
        return authority * weight

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The sum."""
        return incoming


def _scale(values: NDArray[np.float64]) -> None:
    total = float(values.sum())
    if total > 0:
        values /= total
