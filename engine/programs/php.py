"""Penalized hitting probability (PHP): how near a vertex is to the source, by walks that are punished for each step.

Guan et al., SIGMOD 2011, and Wu, Jin, Zhang, PVLDB 2014, in the accumulative form of Maiter (Zhang et al., TPDS 2014)
whose workloads HyTGraph takes up: the source has 1, and every other vertex v has

    php(v) = damping * sum over edges u -> v of php(u) * w(u, v) / W(u),     W(u): weight of all of u's out-edges.

Nothing that returns to the source counts. Weights are used where the graph has them, unless that is switched off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, NonNegative, Share
from penstock.engine.program.program import Field, Global, Program, weighted
from penstock.engine.programs.degrees import fill_degrees
from penstock.engine.programs.weights import OutgoingWeight, Spreading, counts_below_zero, counts_by_weight, damping_of
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph


class PHP(Program):
    """`php` (float64) from `source` (original id). damping (alias alpha): cost of a step; tol: L1 change to stop at.

    weight: whether edges count by their weights where the graph has some (False or None: each counts 1).
    """

    php = Field(np.float64)
    outgoing = Field(np.float64, output=False)
    tolerance = 1e-9
    single = True
    extendable = ("max_iter", "tol")
    by_ranges = True

    def __init__(
        self,
        source: int | str,
        damping: Share = 0.8,
        tol: NonNegative = 1e-6,
        max_iter: Count = 1000,
        *,
        alpha: Share | None = None,
        weight: bool | str | None = True,
    ) -> None:
        if not isinstance(source, int | np.integer | str):
            raise InputError(f"source is {source!r}; php is the nearness to one vertex")
        self.source, self.damping = source, damping_of(damping, alpha, usual=0.8)
        self.tol, self.max_iter = tol, max_iter
        self.needs_weights = counts_by_weight(weight)

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Weighing, where weights count, and spreading."""
        spread = self._spread(graph, internal_id(graph, self.source))
        return [OutgoingWeight(), spread] if weighted(self, graph) else [spread]

    def _spread(self, graph: Graph, root: int) -> Hitting:
        """The second phase."""
        return (Hitting if counts_below_zero(self, graph) else HittingInPlace)(self, root)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Weigh the out-edges, then spread."""
        root = internal_id(graph, self.source)
        if not weighted(self, graph):
            fill_degrees(graph, "out", state["outgoing"])
        elif first == 0:
            yield OutgoingWeight()
        state["php"][root] = 1.0
        spread = self._spread(graph, root)
        yield spread
        self.converged = spread.converged

    def phase_name(self, graph: Graph, number: int) -> str:
        """Weights where the graph has some, then spreading."""
        return "weights of out-edges" if number == 0 and weighted(self, graph) else "spreading"

    def phase_count(self, graph: Graph) -> int:
        """Two where edges are weighted."""
        return 1 + weighted(self, graph)


class Hitting(Spreading):
    """The second phase of PHP."""

    php = Field(np.float64)
    outgoing = Field(np.float64, constant=True)

    def __init__(self, whole: PHP, root: int) -> None:
        super().__init__(whole)
        self.root = root

    def send(php, outgoing, damping):  # type: ignore[no-untyped-def]
        """What a vertex gives along an edge of weight 1."""
        return damping * php / outgoing if outgoing > 0 else 0.0

    def edge(sent, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: its share."""
        return sent * weight

    def vertex(incoming, vertex_id, root):  # type: ignore[no-untyped-def]
        """The new probability; the source keeps 1."""
        return 1.0 if vertex_id == root else incoming

    @Global(np.float64)
    def change(php, old_php):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(php - old_php)


class HittingInPlace(Hitting):
    """The same where a vertex with edges to others has a sum of weights."""

    accumulator = "php"

    def send(php, outgoing):  # type: ignore[no-untyped-def]
        """What a vertex gives along an edge of weight 1, before damping; without any its probability, for `change`."""
        return php / outgoing if outgoing > 0 else php

    def vertex(incoming, vertex_id, root, damping):  # type: ignore[no-untyped-def]
        """The new probability; the source keeps 1."""
        return 1.0 if vertex_id == root else damping * incoming

    @Global(np.float64)
    def change(php, sent, outgoing):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(php - (sent * outgoing if outgoing > 0 else sent))
