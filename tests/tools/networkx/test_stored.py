"""Functions of networkx on stored graphs: what they answer is what networkx answers on the same graph in memory."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from penstock.engine import Graph, from_edges
from penstock.storage.access import vertex_lookup
from penstock.storage.base.errors import InputError
from penstock.tools.networkx import backend, held

EDGES = [(7, 3), (3, 9), (9, 7), (9, 30), (30, 31), (31, 7), (50, 51), (51, 51), (7, 31)]


def stored(path: Path, names: str, **options: Any) -> Graph:
    ends = np.array(EDGES, np.uint64)
    edges = ends if names == "numbers" else np.array([[f"v{end:02}" for end in pair] for pair in EDGES])
    return from_edges(edges, weights=[float(number % 4 + 1) for number in range(len(EDGES))], **options).save(path)


@pytest.fixture(params=["numbers", "strings", "ordered strings"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    more: dict[str, Any] = {"order": "degree"} if request.param.startswith("ordered") else {}
    names = request.param.split()[-1]
    return stored(tmp_path / "g.h5", names, **({"renumber": True} if names == "numbers" else {}) | more)


def close(found: Any, right: Any) -> None:
    assert isinstance(found, Mapping)
    assert len(found) == len(right)
    assert dict(found) == dict(found.items()) == pytest.approx(right)
    assert list(found.values()) == [found[node] for node in found]
    assert "absent" not in found
    assert 10**6 not in found


def test_a_stored_graph_is_answered(graph: Graph) -> None:
    loaded = backend.convert_to_nx(graph)
    assert (loaded.number_of_nodes(), loaded.number_of_edges()) == (graph.vertices, len(EDGES))
    first = next(iter(loaded))
    close(nx.pagerank(graph), nx.pagerank(loaded))
    close(
        nx.pagerank(graph, personalization={first: 1}, weight=None),
        nx.pagerank(loaded, personalization={first: 1}, weight=None),
    )
    close(nx.single_source_shortest_path_length(graph, first), nx.single_source_shortest_path_length(loaded, first))
    close(
        nx.single_source_dijkstra_path_length(graph, first, cutoff=4),
        nx.single_source_dijkstra_path_length(loaded, first, cutoff=4),
    )
    close(nx.betweenness_centrality(graph, k=4, seed=3), nx.betweenness_centrality(loaded, k=4, seed=3))
    close(nx.harmonic_centrality(graph, nbunch=[first]), nx.harmonic_centrality(loaded, nbunch=[first]))
    assert nx.closeness_centrality(graph, u=first) == pytest.approx(nx.closeness_centrality(loaded, u=first))
    close(nx.degree_centrality(graph), nx.degree_centrality(loaded))


def test_sets_of_a_stored_graph(graph: Graph) -> None:
    loaded = backend.convert_to_nx(graph)
    found = list(nx.weakly_connected_components(graph))
    assert all(isinstance(part, Set) for part in found)
    assert {frozenset(part) for part in found} == {frozenset(part) for part in nx.weakly_connected_components(loaded)}
    largest = max(found, key=len)
    assert largest == max(nx.weakly_connected_components(loaded), key=len)
    assert all(node in largest for node in largest)
    assert "absent" not in largest
    assert largest & {next(iter(largest)), "absent"} == {next(iter(largest))}
    assert nx.number_strongly_connected_components(graph) == nx.number_strongly_connected_components(loaded)
    assert nx.is_weakly_connected(graph) is False
    first = next(iter(loaded))
    assert nx.ancestors(graph, first) == nx.ancestors(loaded, first)
    assert nx.has_path(graph, first, first)
    with pytest.raises(nx.NodeNotFound, match="absent"):
        nx.has_path(graph, first, "absent")
    with pytest.raises(nx.NetworkXNotImplemented, match="directed"):
        nx.connected_components(graph)


def test_an_undirected_stored_graph(tmp_path: Path) -> None:
    graph = stored(tmp_path / "g.h5", "numbers", undirected=True, renumber=True, dedupe="first")
    loaded = backend.convert_to_nx(graph)
    close(nx.degree_centrality(graph), nx.degree_centrality(loaded))
    close(nx.clustering(graph), nx.clustering(loaded))
    close(nx.triangles(graph, [7, 31]), nx.triangles(loaded, [7, 31]))
    assert nx.triangles(graph, 7) == nx.triangles(loaded, 7)
    assert nx.transitivity(graph) == pytest.approx(nx.transitivity(loaded))
    assert nx.average_clustering(graph) == pytest.approx(nx.average_clustering(loaded))
    loaded.remove_edge(51, 51)
    close(nx.core_number(graph), nx.core_number(loaded))


def test_both_sides_of_a_bipartite_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are looked up in their order, and none is searched for among all."""
    graph = from_edges([1, 1, 2], [1, 2, 2], bipartite=True, undirected=True).save(tmp_path / "b.h5")
    components = list(nx.connected_components(graph))
    assert components == [{"source:1", "source:2", "target:1", "target:2"}]
    lengths = nx.single_source_shortest_path_length(graph, "source:1")
    monkeypatch.setattr(vertex_lookup, "_places", None)
    assert lengths["target:2"] == 1
    assert all(node not in lengths for node in (1, "1", "source:9", "target:", 2**70))


def test_what_is_not_answered_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = stored(tmp_path / "g.h5", "numbers", renumber=True)
    with pytest.raises(NotImplementedError, match="louvain_communities"):
        nx.community.louvain_communities(graph)
    monkeypatch.setattr(backend, "available_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"7 vertices and 9 edges; as Python objects .* and 1000 B are free"):
        backend.convert_to_nx(graph)


def test_answers_are_short_to_look_at(graph: Graph) -> None:
    ranks = nx.pagerank(graph)
    assert repr(ranks).startswith("<values of 7 vertices: {")
    assert repr(ranks).endswith(", ...}>")
    assert repr(next(nx.weakly_connected_components(graph))).startswith("<5 vertices: {")
    assert repr(held.NamedVertices(held.StoredGraph(graph), np.arange(0))) == "<0 vertices: {}>"
