"""igraph, with its own reader and algorithms; its PageRank (PRPACK) solves to its own precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from penstock.tools.bench.queries import DAMPING
from penstock.tools.bench.system import Implementation, Peer, SimpleEdges, Values, marked, package


class Igraph(Peer):
    """igraph."""

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
        found = {
            "bfs": Implementation(lambda: graph.distances(source, mode="out"), _first),
            "reachability": Implementation(
                lambda: graph.subcomponent(source, mode="out"), lambda order: marked(edges.vertices, order)
            ),
            "sssp": Implementation(lambda: graph.distances(source, weights=self._weights, mode="out"), _first),
            "betweenness": Implementation(
                lambda: graph.betweenness(sources=edges.starts, directed=True),
                lambda values: np.array(values) * (1 if edges.directed else 2),
            ),
            "pagerank": Implementation(lambda: graph.pagerank(damping=DAMPING), np.array),
            "personalized_pagerank": Implementation(
                lambda: graph.personalized_pagerank(damping=DAMPING, reset_vertices=[source]), np.array
            ),
            "eigenvector": Implementation(lambda: graph.eigenvector_centrality(scale=False), _floats),
            "hits": Implementation(lambda: (graph.hub_score(), graph.authority_score()), _first),
            "wcc": Implementation(lambda: graph.connected_components(mode="weak"), _members),
            "scc": Implementation(lambda: graph.connected_components(mode="strong"), _members),
            "degrees": Implementation(graph.degree, _floats),
            "coreness": Implementation(lambda: graph.coreness(mode="all"), _floats),
            "triangles": Implementation(lambda: both.list_triangles(), lambda rows: _corners(edges.vertices, rows)),
            "coloring": Implementation(lambda: both.vertex_coloring_greedy(), np.array),
        }
        if not edges.directed:
            found["louvain"] = Implementation(graph.community_multilevel, _members)
            found["leiden"] = Implementation(
                lambda: graph.community_leiden(objective_function="modularity", n_iterations=-1), _members
            )
            found["lcc"] = Implementation(lambda: graph.transitivity_local_undirected(mode="zero"), np.array)
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
