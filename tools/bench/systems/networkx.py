"""networkx, on its own backend."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from penstock.tools.bench.queries import CORE, DAMPING, TOLERANCE, katz_alpha
from penstock.tools.bench.system import Implementation, Peer, SimpleEdges, Values, marked, package


class Networkx(Peer):
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
        found = {
            "bfs": Implementation(lambda: nx.single_source_shortest_path_length(graph, source), known),
            "reachability": Implementation(
                lambda: nx.descendants(graph, source), lambda those: marked(count, [source, *those])
            ),
            "sssp": Implementation(
                lambda: nx.single_source_dijkstra_path_length(graph, source, weight="length"), known
            ),
            "pagerank": Implementation(lambda: nx.pagerank(graph, **rank), known),
            "personalized_pagerank": Implementation(
                lambda: nx.pagerank(graph, personalization={source: 1.0}, **rank), known
            ),
            "katz": Implementation(
                lambda: nx.katz_centrality(graph, katz_alpha(edges), tol=TOLERANCE, max_iter=1000), known
            ),
            "eigenvector": Implementation(
                lambda: nx.eigenvector_centrality(graph, tol=TOLERANCE, max_iter=1000), known
            ),
            "hits": Implementation(lambda: nx.hits(graph)[0], known),
            "wcc": Implementation(lambda: list(weakly(graph)), parts),
            "scc": Implementation(lambda: list(strongly(graph)), parts),
            "degrees": Implementation(lambda: dict(graph.degree()), known),
            "coreness": Implementation(lambda: nx.core_number(graph), known),
            "kcore": Implementation(lambda: list(nx.k_core(graph, CORE)), lambda those: marked(count, those)),
        }
        if not edges.directed:
            found["louvain"] = Implementation(
                lambda: nx.community.louvain_communities(graph, weight=None, seed=1), parts
            )
            found["coloring"] = Implementation(lambda: nx.greedy_color(graph), known)
            found["triangles"] = Implementation(lambda: nx.triangles(graph), known)
            found["lcc"] = Implementation(lambda: nx.clustering(graph), known)
            found["mis"] = Implementation(
                lambda: nx.maximal_independent_set(graph, seed=1), lambda those: marked(count, those)
            )
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
