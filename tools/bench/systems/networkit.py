"""networkit, with its own reader, its own algorithms and all its OpenMP threads.

networkit drops parallel edges, so the edges that it gets must be distinct.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from penstock.tools.bench.queries import DAMPING, PAGERANK_SWEEPS, SWEEPS, TOLERANCE
from penstock.tools.bench.system import Implementation, Peer, SimpleEdges, Values, package


class Networkit(Peer):
    """networkit, with all its OpenMP threads, or `threads`."""

    name = "networkit"

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def take(self, edges: SimpleEdges) -> None:
        """networkit's graphs, without and with weights."""
        nk = package("networkit")
        nk.setNumberOfThreads(self._threads or nk.getMaxNumberOfThreads())
        ends = edges.sources.astype(np.uint64), edges.targets.astype(np.uint64)
        size = {"n": edges.vertices, "directed": edges.directed}
        self._graph = nk.GraphFromCoo(ends, weighted=False, **size)
        self._weighted = nk.GraphFromCoo((edges.weights, ends), weighted=True, **size)

    def read(self, text: Path, vertices: int) -> None:
        """networkit's own reader."""
        self._graph = self._read(text, vertices)

    def read_weights(self, text: Path) -> None:
        """networkit's own reader."""
        self._weighted = self._read(text, self._graph.numberOfNodes())

    def _read(self, text: Path, vertices: int) -> Any:
        graph = package("networkit").graphio.EdgeListReader("\t", 0, directed=True).read(str(text))
        graph.addNodes(max(0, vertices - graph.numberOfNodes()))
        return graph

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """Searches, PageRank, components; on undirected graphs cores and clustering too."""
        nk, source = package("networkit"), edges.starts[0]

        def parts(make: Callable[[], Any]) -> Implementation:
            return Implementation(lambda: make().run(), lambda run: np.array(run.getPartition().getVector()))

        def scores(make: Callable[[], Any]) -> Implementation:
            return Implementation(lambda: make().run(), lambda run: np.array(run.scores()))

        found = {
            "bfs": Implementation(lambda: nk.distance.BFS(self._graph, source, False).run(), _distances),
            "sssp": Implementation(lambda: nk.distance.Dijkstra(self._weighted, source, False).run(), _distances),
            PAGERANK_SWEEPS: scores(lambda: self._pagerank(0, SWEEPS)),
            "pagerank": scores(lambda: self._pagerank(TOLERANCE, 1000)),
        }
        if edges.directed:
            return found | {
                "wcc": parts(lambda: nk.components.WeaklyConnectedComponents(self._graph)),
                "scc": parts(lambda: nk.components.StronglyConnectedComponents(self._graph)),
            }
        return found | {
            "wcc": parts(lambda: nk.components.ParallelConnectedComponents(self._graph)),
            "coreness": scores(lambda: nk.centrality.CoreDecomposition(self._graph)),
            "louvain": parts(lambda: nk.community.PLM(self._graph)),
            "leiden": parts(lambda: nk.community.ParallelLeiden(self._graph)),
            "lcc": scores(lambda: nk.centrality.LocalClusteringCoefficient(self._graph, True)),
        }

    def _pagerank(self, tolerance: float, most: int) -> Any:
        nk = package("networkit")
        spread = nk.centrality.SinkHandling.DistributeSinks
        run = nk.centrality.PageRank(self._graph, DAMPING, tolerance, False, spread)
        run.norm = nk.centrality.Norm.L1_NORM
        run.maxIterations = most
        return run


def _distances(run: Any) -> Values:
    found = np.array(run.getDistances(asarray=True), dtype=float)
    found[found > 1e300] = np.inf
    return found
