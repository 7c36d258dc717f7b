"""scipy.sparse.csgraph, and sweeps by scipy's matrix-vector product.

scipy has neither a reader of edge lists nor a PageRank: numpy reads. scipy adds parallel edges up, so the edges that it
gets must be distinct.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from penstock.tools.bench.queries import DAMPING, PAGERANK_SWEEPS, SWEEPS, TOLERANCE, katz_alpha
from penstock.tools.bench.system import Implementation, Peer, SimpleEdges, Values, marked, package


class Scipy(Peer):
    """scipy.sparse.csgraph."""

    name = "scipy"

    def take(self, edges: SimpleEdges) -> None:
        """Matrices in the CSR format, of both directions of an undirected edge."""
        sources, targets, weights = edges.sources, edges.targets, edges.weights
        if not edges.directed:
            sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
            weights = np.concatenate([weights, weights])
        self._vertices = edges.vertices
        self._weighted = self._matrix(sources, targets, weights)
        self._out = self._weighted.copy()
        self._out.data[:] = 1.0
        self._into = self._out.T.tocsr()

    def read(self, text: Path, vertices: int) -> None:
        """numpy reads, scipy sorts."""
        self._vertices = vertices
        ends = np.fromfile(text, np.int64, sep=" ").reshape(-1, 2)
        self._out = self._matrix(ends[:, 0], ends[:, 1], np.ones(len(ends)))
        self._into = self._out.T.tocsr()

    def read_weights(self, text: Path) -> None:
        """As `read`."""
        rows = np.fromfile(text, np.int64, sep=" ").reshape(-1, 3)
        self._weighted = self._matrix(rows[:, 0], rows[:, 1], rows[:, 2].astype(float))

    def _matrix(self, sources: Values, targets: Values, weights: Values) -> Any:
        shape = (self._vertices, self._vertices)
        return package("scipy.sparse").coo_array((weights, (sources, targets)), shape=shape).tocsr()

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """Searches, components and sweeps."""
        csgraph = package("scipy.sparse.csgraph")
        source = edges.starts[0]

        def components(connection: str) -> Implementation:
            return Implementation(
                lambda: csgraph.connected_components(self._out, connection=connection),
                lambda found: np.asarray(found[1]),
            )

        return {
            "bfs": Implementation(
                lambda: csgraph.breadth_first_order(self._out, source), lambda found: self._levels(source, *found)
            ),
            "reachability": Implementation(
                lambda: csgraph.breadth_first_order(self._out, source, return_predecessors=False),
                lambda order: marked(self._vertices, order),
            ),
            "sssp": Implementation(lambda: csgraph.dijkstra(self._weighted, indices=source), np.asarray),
            PAGERANK_SWEEPS: Implementation(lambda: self._ranks(0, SWEEPS), np.asarray),
            "pagerank": Implementation(lambda: self._ranks(TOLERANCE, 1000), np.asarray),
            "katz": Implementation(lambda: self._katz(katz_alpha(edges)), np.asarray),
            "wcc": components("weak"),
            "scc": components("strong"),
        }

    def _ranks(self, tolerance: float, most: int) -> Values:
        degrees = np.asarray(self._out.sum(axis=1)).ravel()
        dangling = degrees == 0
        shares = np.divide(DAMPING, degrees, out=np.zeros_like(degrees), where=~dangling)
        rank = np.full(self._vertices, 1 / self._vertices)
        for _ in range(most):
            given = (1 - DAMPING + DAMPING * rank[dangling].sum()) / self._vertices
            new = self._into @ (rank * shares) + given
            change = np.abs(new - rank).sum()
            rank = new
            if change < tolerance:
                break
        return rank

    def _levels(self, source: int, order: Values, parents: Values) -> Values:
        """Levels from scipy's order and parents, a level at a time."""
        levels = np.full(self._vertices, np.inf)
        levels[source] = 0
        rest = order[1:]
        while len(rest):
            known = levels[parents[rest]]
            done = np.isfinite(known)
            levels[rest[done]] = known[done] + 1
            rest = rest[~done]
        return levels

    def _katz(self, alpha: float) -> Values:
        katz = np.zeros(self._vertices)
        while True:
            new = alpha * (self._into @ katz) + 1.0
            change, katz = np.abs(new - katz).sum(), new
            if change < TOLERANCE * self._vertices:
                return np.asarray(katz)
