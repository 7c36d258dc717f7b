"""PageRank, as networkx defines it: ranks sum to 1, dangling vertices spread by the teleport vector.

Where the graph has weights an edge carries its share of its source's weights, unless that is switched off. A run takes
one of the forms of `pagerank_forms.py` (`PageRank.form`). Here, too: `PPR`, and `ChebyshevPageRank` (Chebyshev's
semi-iteration on undirected graphs), which only programs in Python ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, NonNegative, Share
from penstock.engine.program.program import Field, Global, Program, Start, weighted
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import originals_of, vertex_column
from penstock.engine.program.vertex_ranges import over_ranges
from penstock.engine.programs.pagerank_forms import Ranking, Sweeps, form_of, scaled
from penstock.engine.programs.weights import OutgoingWeight, counts_below_zero
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.graph import Graph


class PageRank(Sweeps):
    """Rank of every vertex (float64, sum 1).

    damping (alias alpha): share that follows edges. tol: stop when the L1 change of a sweep is below; 0 runs
    exactly max_iter sweeps. weight: whether edges count by their weights where the graph has some (False or None: each
    counts 1); a vertex whose out-weights sum to 0 is dangling, weights below 0 are refused. personalization: original
    id -> weight (not all zero), for the teleport vector. dangling: the same for where the rank of dangling vertices
    goes, by default as personalization. nstart: the same for the first ranks, by default equal. Arrays of a number for
    every vertex, in the order of `Result.ids`, will do. earlier: first ranks from an answer in HDF5, of this graph
    before edges were added or removed.
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


class ChebyshevPageRank(PageRank):
    """PageRank of an undirected graph: the same answer in about a third of the sweeps.

    tol: largest L1 norm of the residual relative to that of the teleport. On an undirected graph the matrix of PageRank
    without its dangling rows is similar to a symmetric one, so its eigenvalues are real and lie in [-damping, damping];
    Chebyshev polynomials then damp the error by damping / (1 + sqrt(1 - damping^2)) a sweep, 0.557 instead of 0.85
    (Golub and Varga, Numer. Math. 1961). Like the residual form it solves the system without dangling mass and scales
    the sum to 1 at the end. Refuses directed graphs.
    """

    rank = Field(np.float64)
    previous = Field(np.float64, output=False)
    accumulator = ""
    dangling = None  # type: ignore[assignment]
    change = None  # type: ignore[assignment]
    tolerance = 1e-6
    extendable = ("max_iter",)
    by_ranges = True
    omega: float = 1.0

    def form(self, graph: Graph, mode: str) -> Program:
        """This one, for undirected graphs. Raises InputError for others."""
        if graph.directed or self.personalization is not None or self.lost_to is not None:
            raise InputError("Chebyshev PageRank needs an undirected graph and no personalization; use pagerank")
        if weighted(self, graph):
            raise InputError(
                "Chebyshev PageRank counts each edge as 1, and this graph has weights: weight=False, or use pagerank"
            )
        return self

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has the same rank."""
        self.omega = 1.0
        state["previous"][:] = 0.0
        return super().start(graph, state)

    def send(rank, degree, damping):  # type: ignore[no-untyped-def]
        """What a vertex gives each of its out-neighbors."""
        return damping * rank / degree if degree > 0 else 0.0

    def vertex(rank, previous, incoming, base_rank, omega):  # type: ignore[no-untyped-def]
        """The new rank, and the one before it."""
        return omega * (base_rank + incoming - previous) + previous, rank

    @Global(np.float64)
    def residual(rank, old_rank, old_previous, omega):  # type: ignore[no-untyped-def]
        """L1 norm of the residual of the rank that the sweep began with."""
        return abs((rank - old_previous) / omega + old_previous - old_rank)

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the residual is small enough; sets the weight of the next sweep."""
        square = self.damping * self.damping
        self.omega = 1 / (1 - square / 2) if iteration == 0 else 1 / (1 - square * self.omega / 4)
        return totals["residual"] < self.tol * (1 - self.damping)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Scale the sum to 1, which spreads the dangling vertices' rank."""
        return {"rank": scaled(state["rank"])}
