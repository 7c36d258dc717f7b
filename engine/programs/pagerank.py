"""PageRank, as networkx defines it: ranks sum to 1, dangling vertices spread by the teleport vector.

Where the graph has weights an edge carries its share of its source's weights, unless that is switched off. The forms in
which it runs are those of `pagerank_forms.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Field, Program, weighted
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import vertex_column
from penstock.engine.program.vertex_ranges import over_ranges
from penstock.engine.programs.pagerank_forms import Ranking, Sweeps, form_of, scaled
from penstock.engine.programs.weights import OutgoingWeight, counts_below_zero
from penstock.storage.base.errors import InputError
from penstock.storage.base.printable import brief
from penstock.storage.format.graph import Graph


class PageRank(Sweeps):
    """Rank of every vertex (float64, sum 1).

    damping (alias alpha): share that follows edges. tol: stop when the L1 change of a sweep is below; 0 runs
    exactly max_iter sweeps. weight: whether edges count by their weights where the graph has some (False or None: each
    counts 1); a vertex whose out-weights sum to 0 is dangling, weights below 0 are refused. personalization: original
    id -> weight (not all zero), for the teleport vector. dangling: the same for where the rank of dangling vertices
    goes, by default as personalization. nstart: the same for the first ranks, by default equal. Arrays of a number for
    every vertex, in the order of `Result.ids`, will do.
    """

    non_negative_weights = True

    def form(self, graph: Graph, mode: str) -> Program:
        """The form for the graph, the mode and the parameters.

        Raises InputError for the residual form with tol 0: it has no sweeps of which there could be exactly max_iter.
        """
        if mode == "async" and self.tol == 0:
            raise InputError(
                "PageRank with tol 0 is exactly max_iter sweeps, and an asynchronous run has none: it pushes until "
                "less than tol is left; give a --tol above 0, or leave --mode async out"
            )
        if weighted(self, graph):
            form_of(self, asynchronous=mode == "async", weighted=True)
            return self.like(variant(WeightedPageRank, asynchronous=True) if mode == "async" else WeightedPageRank)
        kind = form_of(self, asynchronous=mode == "async", weighted=False)
        return self if kind is Sweeps else self.like(kind)


class WeightedPageRank(Ranking):
    """PageRank by weight, in two phases: add up the weights of each vertex's out-edges, then rank.

    asynchronous: by residual push.
    """

    rank = Field(np.float64)
    outgoing = Field(np.float64, output=False)
    non_negative_weights = True
    by_ranges = True
    phase_names = ("weights of out-edges", "ranks")
    asynchronous: ClassVar[bool] = False

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Weighing and ranking."""
        return OutgoingWeight(), self._ranking(graph)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Weigh the out-edges, then rank."""
        if first == 0:
            yield OutgoingWeight()
            _check_finite(graph, state["outgoing"])
        ranking = self._ranking(graph)
        yield ranking
        self.converged = ranking.converged

    def _ranking(self, graph: Graph) -> Sweeps:
        """The second phase."""
        below_zero = counts_below_zero(self, graph)
        return self.like(form_of(self, asynchronous=self.asynchronous, weighted=True, below_zero=below_zero))

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The ranks; those of the residual form are scaled."""
        return {"rank": scaled(state["rank"]) if self.asynchronous else state["rank"]}


def _check_finite(graph: Graph, outgoing: NDArray[Any]) -> None:
    """Refuse weights whose sum is no number that could be shared out."""
    finite = over_ranges(lambda first, last: bool(np.isfinite(outgoing[first:last]).all()), len(outgoing))
    if not all(finite):
        wrong = np.flatnonzero(~np.isfinite(outgoing))
        named = brief(str(vertex_column(graph)[wrong[0]]))
        raise InputError(
            f"the weights of the out-edges of vertex {named} add up to {outgoing[wrong[0]]}: "
            "PageRank needs finite sums; run with --no-weight, or convert with other weights"
        )
