"""Personalized PageRank by name: PageRank whose walker restarts at given vertices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.program.parameters import Count, NonNegative, Share
from penstock.engine.program.program import Program
from penstock.engine.program.vertex_ids import originals_of
from penstock.engine.programs.pagerank import PageRank
from penstock.storage.format.graph import Graph


class PPR(PageRank):
    """`rank` (float64, sum 1). source: original id to restart at, or several, or id -> weight. Others: see PageRank."""

    def __init__(
        self,
        source: Any,
        damping: Share = 0.85,
        tol: NonNegative = 1e-6,
        max_iter: Count = 100,
        *,
        alpha: Share | None = None,
        weight: bool | str | None = True,
    ) -> None:
        home = dict(source) if isinstance(source, Mapping) else dict.fromkeys(originals_of(source), 1.0)
        super().__init__(damping, tol, max_iter, home, alpha=alpha, weight=weight)

    def form(self, graph: Graph, mode: str) -> Program:
        """PageRank of this personalization."""
        return self.like(PageRank).form(graph, mode)
