"""Penstock's peers in a comparison, each with its own reader and algorithms.

scipy and networkit merge parallel edges, so the edges that peers get are distinct.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from penstock.tools.bench.queries import CORE, DAMPING, PAGERANK_SWEEPS, SWEEPS, TOLERANCE, katz_alpha
from penstock.tools.bench.system import Implementation, SimpleEdges, System, Values, marked, package


class Scipy(System):
    """scipy.sparse.csgraph, and sweeps by scipy's matrix-vector product; numpy reads."""

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
            return (
                lambda: csgraph.connected_components(self._out, connection=connection),
                lambda found: np.asarray(found[1]),
            )

        return {
            "bfs": (lambda: csgraph.breadth_first_order(self._out, source), lambda found: self._levels(source, *found)),
            "reachability": (
                lambda: csgraph.breadth_first_order(self._out, source, return_predecessors=False),
                lambda order: marked(self._vertices, order),
            ),
            "sssp": (lambda: csgraph.dijkstra(self._weighted, indices=source), np.asarray),
            PAGERANK_SWEEPS: (lambda: self._ranks(0, SWEEPS), np.asarray),
            "pagerank": (lambda: self._ranks(TOLERANCE, 1000), np.asarray),
            "katz": (lambda: self._katz(katz_alpha(edges)), np.asarray),
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


class Networkit(System):
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
            return lambda: make().run(), lambda run: np.array(run.getPartition().getVector())

        def scores(make: Callable[[], Any]) -> Implementation:
            return lambda: make().run(), lambda run: np.array(run.scores())

        found: dict[str, Implementation] = {
            "bfs": (lambda: nk.distance.BFS(self._graph, source, False).run(), _distances),
            "sssp": (lambda: nk.distance.Dijkstra(self._weighted, source, False).run(), _distances),
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


class Igraph(System):
    """igraph; its PageRank (PRPACK) solves to its own precision."""

    name = "igraph"

    def take(self, edges: SimpleEdges) -> None:
        """igraph's graph, and weights in the order of the edges."""
        pairs = np.stack([edges.sources, edges.targets], axis=1)
        self._graph = package("igraph").Graph(edges.vertices, pairs, directed=edges.directed)
        self._weights = edges.weights.tolist()
        self._both = self._graph.as_undirected(mode="collapse") if edges.directed else self._graph

    def read(self, text: Path, vertices: int) -> None:
        """igraph's own reader."""
        self._graph = package("igraph").Graph.Read_Edgelist(str(text), directed=True)
        self._graph.add_vertices(max(0, vertices - self._graph.vcount()))
        self._both = None

    def read_weights(self, text: Path) -> None:
        """Weights in the order of the edges."""
        self._weights = np.fromfile(text, np.int64, sep=" ").reshape(-1, 3)[:, 2].tolist()

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """Most of them."""
        graph, both, source = self._graph, self._both, edges.starts[0]
        found: dict[str, Implementation] = {
            "bfs": (lambda: graph.distances(source, mode="out"), _first),
            "reachability": (
                lambda: graph.subcomponent(source, mode="out"),
                lambda those: marked(edges.vertices, those),
            ),
            "sssp": (lambda: graph.distances(source, weights=self._weights, mode="out"), _first),
            "betweenness": (
                lambda: graph.betweenness(sources=edges.starts, directed=True),
                lambda values: np.array(values) * (1 if edges.directed else 2),
            ),
            "pagerank": (lambda: graph.pagerank(damping=DAMPING), np.array),
            "personalized_pagerank": (
                lambda: graph.personalized_pagerank(damping=DAMPING, reset_vertices=[source]),
                np.array,
            ),
            "eigenvector": (lambda: graph.eigenvector_centrality(scale=False), _floats),
            "hits": (lambda: (graph.hub_score(), graph.authority_score()), _first),
            "wcc": (lambda: graph.connected_components(mode="weak"), _members),
            "scc": (lambda: graph.connected_components(mode="strong"), _members),
            "degrees": (graph.degree, _floats),
            "coreness": (lambda: graph.coreness(mode="all"), _floats),
            "triangles": (lambda: both.list_triangles(), lambda rows: _corners(edges.vertices, rows)),
            "coloring": (lambda: both.vertex_coloring_greedy(), np.array),
        }
        if not edges.directed:
            found["louvain"] = (graph.community_multilevel, _members)
            found["leiden"] = (
                lambda: graph.community_leiden(objective_function="modularity", n_iterations=-1),
                _members,
            )
            found["lcc"] = (lambda: graph.transitivity_local_undirected(mode="zero"), np.array)
        return found


def _floats(values: Any) -> Values:
    return np.array(values, dtype=float)


def _first(rows: Any) -> Values:
    return _floats(rows[0])


def _members(found: Any) -> Values:
    return np.array(found.membership)


def _corners(count: int, triangles: Any) -> Values:
    """How many triangles a vertex is in."""
    return np.bincount(np.asarray(triangles, dtype=np.int64).reshape(-1), minlength=count).astype(float)


class Networkx(System):
    """networkx, on its own backend."""

    name = "networkx"

    def take(self, edges: SimpleEdges) -> None:
        """networkx's graph; weights are the attribute `length`, which its PageRank does not look for."""
        nx = package("networkx")
        self._graph = (nx.DiGraph if edges.directed else nx.Graph)()
        self._graph.add_nodes_from(range(edges.vertices))
        rows = zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True)
        self._graph.add_weighted_edges_from(rows, weight="length")

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """Most of them; a coloring in its own order, an independent set at random; neither of a directed graph."""
        nx, graph = package("networkx"), self._graph
        count, source = edges.vertices, edges.starts[0]
        rank = {"alpha": DAMPING, "tol": TOLERANCE / max(1, count), "max_iter": 1000, "weight": None}
        parts, known = partial(_labels, count), partial(_of, count)
        weakly = nx.weakly_connected_components if edges.directed else nx.connected_components
        strongly = nx.strongly_connected_components if edges.directed else nx.connected_components
        found: dict[str, Implementation] = {
            "bfs": (lambda: nx.single_source_shortest_path_length(graph, source), known),
            "reachability": (lambda: nx.descendants(graph, source), lambda those: marked(count, [source, *those])),
            "sssp": (lambda: nx.single_source_dijkstra_path_length(graph, source, weight="length"), known),
            "pagerank": (lambda: nx.pagerank(graph, **rank), known),
            "personalized_pagerank": (lambda: nx.pagerank(graph, personalization={source: 1.0}, **rank), known),
            "katz": (lambda: nx.katz_centrality(graph, katz_alpha(edges), tol=TOLERANCE, max_iter=1000), known),
            "eigenvector": (lambda: nx.eigenvector_centrality(graph, tol=TOLERANCE, max_iter=1000), known),
            "hits": (lambda: nx.hits(graph)[0], known),
            "wcc": (lambda: list(weakly(graph)), parts),
            "scc": (lambda: list(strongly(graph)), parts),
            "degrees": (lambda: dict(graph.degree()), known),
            "coreness": (lambda: nx.core_number(graph), known),
            "kcore": (lambda: list(nx.k_core(graph, CORE)), lambda those: marked(count, those)),
        }
        if not edges.directed:
            found["louvain"] = (lambda: nx.community.louvain_communities(graph, weight=None, seed=1), parts)
            found["coloring"] = (lambda: nx.greedy_color(graph), known)
            found["triangles"] = (lambda: nx.triangles(graph), known)
            found["lcc"] = (lambda: nx.clustering(graph), known)
            found["mis"] = (lambda: nx.maximal_independent_set(graph, seed=1), lambda those: marked(count, those))
        return found


def _of(count: int, known: Any) -> Values:
    """The values of a mapping from vertices, infinity for those that it lacks."""
    found = np.full(count, np.inf)
    found[np.fromiter(known.keys(), np.int64, len(known))] = np.fromiter(known.values(), float, len(known))
    return found


def _labels(count: int, sets: Any) -> Values:
    """The number of the set that a vertex is in."""
    found = np.zeros(count)
    for number, members in enumerate(sets):
        found[list(members)] = number
    return found
