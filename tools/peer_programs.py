"""Owns what scipy, networkit, igraph and networkx have of Penstock's programs, each as its documentation would have it.

Graphs are given as arrays, and made into each system's own kind of graph before anything is timed. Refuses to time, and
to time what is another question: where a system's algorithm has another definition (directed clustering coefficients,
label propagation in random order) it has no entry.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from penstock.tools.catalogue import CORE, Edges, katz_alpha
from penstock.tools.peers import (
    BFS,
    DAMPING,
    RANK,
    SSSP,
    TOLERANCE,
    WCC,
    Igraph,
    Networkit,
    Peer,
    ProgramSystem,
    Scipy,
    Task,
    Values,
    package,
)


class ScipyPrograms(Scipy):
    """scipy.sparse.csgraph, and sweeps by its matrix-vector product."""

    def __init__(self, edges: Edges) -> None:
        sparse = package("scipy.sparse")
        self._edges, self._vertices = edges, edges.vertices
        sources, targets, weights = edges.sources, edges.targets, edges.weights
        if not edges.directed:
            sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
            weights = np.concatenate([weights, weights])
        shape = (edges.vertices, edges.vertices)
        self._weighted = sparse.coo_array((weights, (sources, targets)), shape=shape).tocsr()
        self._out = self._weighted.copy()
        self._out.data[:] = 1.0
        self._into = self._out.T.tocsr()

    def programs(self) -> dict[str, Task]:
        """Searches, components and sweeps."""
        csgraph = package("scipy.sparse.csgraph")
        source = self._edges.starts[0]
        tasks = self.tasks(source)
        return {
            "bfs": tasks[BFS],
            "reachability": Task(
                lambda: csgraph.breadth_first_order(self._out, source, return_predecessors=False),
                lambda order: _marked(self._vertices, order),
            ),
            "sssp": tasks[SSSP],
            "pagerank": tasks[RANK],
            "katz": Task(self._katz, np.asarray),
            "wcc": tasks[WCC],
            "scc": Task(
                lambda: csgraph.connected_components(self._out, connection="strong"),
                lambda found: np.asarray(found[1]),
            ),
        }

    def _katz(self) -> Values:
        alpha, katz = katz_alpha(self._edges), np.zeros(self._vertices)
        while True:
            new = alpha * (self._into @ katz) + 1.0
            change, katz = np.abs(new - katz).sum(), new
            if change < TOLERANCE * self._vertices:
                return np.asarray(katz)


class NetworkitPrograms(Networkit):
    """networkit, with all its OpenMP threads, or `threads`."""

    def __init__(self, edges: Edges, threads: int | None = None) -> None:
        nk = package("networkit")
        nk.setNumberOfThreads(threads or nk.getMaxNumberOfThreads())
        self._edges = edges
        ends = edges.sources.astype(np.uint64), edges.targets.astype(np.uint64)
        size = {"n": edges.vertices, "directed": edges.directed}
        self._graph = nk.GraphFromCoo(ends, weighted=False, **size)
        self._weighted = nk.GraphFromCoo((edges.weights, ends), weighted=True, **size)

    def programs(self) -> dict[str, Task]:
        """Searches, PageRank, components; on undirected graphs cores and clustering too."""
        nk = package("networkit")
        tasks = self.tasks(self._edges.starts[0])
        found = {"bfs": tasks[BFS], "sssp": tasks[SSSP], "pagerank": tasks[RANK]}

        def parts(make: Callable[[], Any]) -> Task:
            return Task(lambda: make().run(), lambda run: np.array(run.getPartition().getVector()))

        def scores(make: Callable[[], Any]) -> Task:
            return Task(lambda: make().run(), lambda run: np.array(run.scores()))

        if self._edges.directed:
            strong = nk.components.StronglyConnectedComponents
            return found | {"wcc": tasks[WCC], "scc": parts(lambda: strong(self._graph))}
        return found | {
            "wcc": parts(lambda: nk.components.ParallelConnectedComponents(self._graph)),
            "coreness": scores(lambda: nk.centrality.CoreDecomposition(self._graph)),
            "lcc": scores(lambda: nk.centrality.LocalClusteringCoefficient(self._graph, True)),
        }


class IgraphPrograms(Igraph):
    """igraph."""

    def __init__(self, edges: Edges) -> None:
        pairs = np.stack([edges.sources, edges.targets], axis=1)
        self._edges = edges
        self._graph = package("igraph").Graph(edges.vertices, pairs, directed=edges.directed)
        self._weights = edges.weights.tolist()
        self._both = self._graph.as_undirected(mode="collapse") if edges.directed else self._graph

    def programs(self) -> dict[str, Task]:
        """Most of them."""
        graph, edges, both = self._graph, self._edges, self._both
        source = edges.starts[0]
        tasks = self.tasks(source)
        parts: Callable[[Any], Values] = lambda found: np.array(found.membership)  # noqa: E731
        found = {
            "bfs": tasks[BFS],
            "reachability": Task(
                lambda: graph.subcomponent(source, mode="out"), lambda order: _marked(edges.vertices, order)
            ),
            "sssp": tasks[SSSP],
            "betweenness": Task(
                lambda: graph.betweenness(sources=edges.starts, directed=True),
                lambda values: np.array(values) * (1 if edges.directed else 2),
            ),
            "pagerank": tasks[RANK],
            "personalized_pagerank": Task(
                lambda: graph.personalized_pagerank(damping=DAMPING, reset_vertices=[source]), np.array
            ),
            "hits": Task(lambda: (graph.hub_score(), graph.authority_score()), lambda two: np.array(two[0])),
            "wcc": Task(lambda: graph.connected_components(mode="weak"), parts),
            "scc": Task(lambda: graph.connected_components(mode="strong"), parts),
            "degrees": Task(graph.degree, lambda values: np.array(values, dtype=float)),
            "coreness": Task(lambda: graph.coreness(mode="all"), lambda values: np.array(values, dtype=float)),
            "triangles": Task(both.list_triangles, lambda rows: _corners(edges.vertices, rows)),
            "coloring": Task(both.vertex_coloring_greedy, np.array),
        }
        if not edges.directed:
            found["lcc"] = Task(lambda: graph.transitivity_local_undirected(mode="zero"), np.array)
        return found


class NetworkxPrograms(Peer):
    """networkx, on its own backend."""

    name = "networkx"
    package: ClassVar[str] = "networkx"

    def __init__(self, edges: Edges) -> None:
        nx = package("networkx")
        self._edges = edges
        self._graph = (nx.DiGraph if edges.directed else nx.Graph)()
        self._graph.add_nodes_from(range(edges.vertices))
        rows = zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True)
        self._graph.add_weighted_edges_from(rows, weight="length")

    def programs(self) -> dict[str, Task]:
        """Most of them; a coloring in its own order, an independent set at random; neither of a directed graph."""
        nx, graph, edges = package("networkx"), self._graph, self._edges
        count, source = edges.vertices, edges.starts[0]
        rank = {"alpha": DAMPING, "tol": TOLERANCE / max(1, count), "max_iter": 1000, "weight": None}
        parts: Callable[[Any], Values] = lambda sets: _labels(count, sets)  # noqa: E731
        known: Callable[[Any], Values] = lambda found: _of(count, found, np.inf)  # noqa: E731
        weakly = nx.weakly_connected_components if edges.directed else nx.connected_components
        strongly = nx.strongly_connected_components if edges.directed else nx.connected_components
        found = {
            "bfs": Task(lambda: nx.single_source_shortest_path_length(graph, source), known),
            "reachability": Task(lambda: nx.descendants(graph, source), lambda those: _marked(count, [source, *those])),
            "sssp": Task(lambda: nx.single_source_dijkstra_path_length(graph, source, weight="length"), known),
            "pagerank": Task(lambda: nx.pagerank(graph, **rank), known),
            "personalized_pagerank": Task(lambda: nx.pagerank(graph, personalization={source: 1.0}, **rank), known),
            "katz": Task(lambda: nx.katz_centrality(graph, katz_alpha(edges), tol=TOLERANCE, max_iter=1000), known),
            "hits": Task(lambda: nx.hits(graph)[0], known),
            "wcc": Task(lambda: list(weakly(graph)), parts),
            "scc": Task(lambda: list(strongly(graph)), parts),
            "degrees": Task(lambda: dict(graph.degree()), known),
            "coreness": Task(lambda: nx.core_number(graph), known),
            "kcore": Task(lambda: list(nx.k_core(graph, CORE)), lambda those: _marked(count, those)),
        }
        if not edges.directed:
            found["coloring"] = Task(lambda: nx.greedy_color(graph), known)
            found["triangles"] = Task(lambda: nx.triangles(graph), known)
            found["lcc"] = Task(lambda: nx.clustering(graph), known)
            found["mis"] = Task(lambda: nx.maximal_independent_set(graph, seed=1), lambda those: _marked(count, those))
        return found


def _marked(count: int, vertices: Any) -> Values:
    """1 for these vertices, else 0."""
    found = np.zeros(count)
    found[np.asarray(list(vertices), dtype=np.int64)] = 1
    return found


def _of(count: int, known: Any, absent: float) -> Values:
    """The values of a mapping from vertices."""
    found = np.full(count, absent)
    found[np.fromiter(known.keys(), np.int64, len(known))] = np.fromiter(known.values(), float, len(known))
    return found


def _labels(count: int, sets: Any) -> Values:
    """The number of the set that a vertex is in."""
    found = np.zeros(count)
    for number, members in enumerate(sets):
        found[list(members)] = number
    return found


def _corners(count: int, triangles: Any) -> Values:
    """How many triangles a vertex is in."""
    return np.bincount(np.asarray(triangles, dtype=np.int64).reshape(-1), minlength=count).astype(float)


PEERS = (ScipyPrograms, NetworkitPrograms, IgraphPrograms, NetworkxPrograms)


def installed(threads: int | None = None) -> dict[str, Callable[[Edges], ProgramSystem]]:
    """Those that can be imported, as functions of the graph, by name; threads: of networkit, the others have one."""
    makers: tuple[type[ProgramSystem], ...] = (ScipyPrograms, IgraphPrograms, NetworkxPrograms)
    found: dict[str, Callable[[Edges], ProgramSystem]] = {make.name: make for make in makers}
    found["networkit"] = partial(NetworkitPrograms, threads=threads)
    return {name: make for name, make in found.items() if importlib.util.find_spec(name) is not None}
