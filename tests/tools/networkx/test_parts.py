"""What connects a graph, and how alike neighbors are, through the networkx backend: answers are networkx's."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from penstock.engine import from_edges
from penstock.tools.networkx.backend import can_run, convert_to_nx

ON = {"backend": "penstock"}


def chain() -> Any:
    """Two squares that share a node, a tail, and a pair apart."""
    return nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 6), (6, 3), (6, 7), (7, 8), (20, 21)])


GRAPHS: dict[str, Any] = {
    "chain": chain,
    "gnp": lambda: nx.gnp_random_graph(40, 0.06, seed=3),
    "multi": lambda: nx.MultiGraph(
        [("a", "b"), ("a", "b"), ("b", "c"), ("c", "c"), ("c", "d"), ("d", "b"), ("d", "e")]
    ),
    "whole": lambda: nx.complete_graph(5),
    "nothing": nx.Graph,
    "one": lambda: nx.empty_graph(1),
}


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Any:
    return GRAPHS[request.param]()


def unordered(parts: Iterable[Any]) -> list[list[Any]]:
    """Sets, or pairs, in an order of their own."""
    return sorted(sorted(part) for part in parts)


def outcome(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a call returns, or the type and the text of what it raises (of errors of Python the type alone)."""
    try:
        return function(*arguments, **options)
    except (nx.NetworkXException, ValueError) as error:
        return type(error), str(error) if isinstance(error, nx.NetworkXException) else ""


def alike(function: Any, *arguments: Any, **options: Any) -> None:
    """Assert that both give the same, exceptions included."""
    right, found = (outcome(function, arguments, options | more) for more in ({}, ON))
    assert found == (right if isinstance(right, tuple) else pytest.approx(right, nan_ok=True))


def test_what_connects(graph: Any) -> None:
    assert unordered(nx.bridges(graph, **ON)) == unordered(nx.bridges(graph))
    assert set(nx.articulation_points(graph, **ON)) == set(nx.articulation_points(graph))
    assert unordered(nx.biconnected_components(graph, **ON)) == unordered(nx.biconnected_components(graph))
    parts = nx.connectivity.bridge_components
    if not graph.is_multigraph():
        assert list(parts(graph, **ON)) == list(parts(graph))
    for function in (nx.has_bridges, nx.is_biconnected, nx.diameter):
        alike(function, graph)
    for node in [*list(graph)[:2], *list(graph)[-1:], "absent"]:
        alike(nx.has_bridges, graph, root=node)
        alike(nx.eccentricity, graph, node)
    connected = graph.subgraph(max(nx.connected_components(graph), key=len, default=()))
    alike(nx.diameter, connected)
    alike(nx.eccentricity, connected, list(connected)[:3])


def test_least_trees() -> None:
    graph = nx.gnp_random_graph(30, 0.2, seed=5)
    for number, (u, v) in enumerate(graph.edges):
        graph[u][v]["weight"] = number * 37 % 11
    found = list(nx.minimum_spanning_edges(graph, data=False, **ON))
    assert found == list(nx.minimum_spanning_edges(graph, data=False))
    with pytest.raises(ValueError, match="not a valid choice"):
        list(nx.minimum_spanning_edges(graph, algorithm="none", data=False, **ON))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_neighbors_that_are_alike(directed: bool) -> None:
    graph = nx.gnp_random_graph(40, 0.1, seed=7, directed=directed)
    graph.add_edge(3, 3)
    for x, y in (("out", "in"), ("in", "out"), ("out", "out")) if directed else (("out", "in"),):
        alike(nx.degree_assortativity_coefficient, graph, x=x, y=y)
    alike(nx.average_neighbor_degree, graph)
    alike(nx.average_neighbor_degree, graph, nodes=[3, 1])
    alike(nx.degree_assortativity_coefficient, nx.cycle_graph(4, create_using=type(graph)))
    if not directed:
        graph.remove_edge(3, 3)
        pairs = list(combinations(range(0, 40, 5), 2))
        assert list(nx.jaccard_coefficient(graph, pairs, **ON)) == list(nx.jaccard_coefficient(graph, pairs))
        with pytest.raises(nx.NodeNotFound, match="absent"):
            nx.jaccard_coefficient(graph, [(0, "absent")], **ON)


def test_communities_of_leiden() -> None:
    graph = nx.planted_partition_graph(4, 20, 0.7, 0.02, seed=2)
    found = nx.community.leiden_communities(graph, seed=1, **ON)
    assert sorted(map(sorted, found)) == [list(range(first, first + 20)) for first in range(0, 80, 20)]
    assert nx.community.leiden_communities(nx.empty_graph(2), **ON) == [{0}, {1}]
    with pytest.raises(ValueError, match="must be a positive integer"):
        nx.community.leiden_communities(graph, max_level=0, **ON)


def test_of_a_stored_graph(tmp_path: Path) -> None:
    sources, targets = zip(*chain().edges, strict=True)
    weights = [float(number % 3) for number in range(len(sources))]
    graph = from_edges(sources, targets, weights, undirected=True, renumber=True).save(tmp_path / "g.h5")
    loaded = convert_to_nx(graph)
    assert unordered(nx.bridges(graph, root=3)) == [[6, 7], [7, 8]]
    assert list(nx.connectivity.bridge_components(graph)) == [set(range(7)), {7}, {8}, {20}, {21}]
    assert unordered(nx.biconnected_components(graph)) == unordered(nx.biconnected_components(loaded))
    assert list(nx.articulation_points(graph)) == [3, 6, 7]
    least = list(nx.minimum_spanning_edges(graph))
    assert sum(data["weight"] for *_, data in least) == nx.minimum_spanning_tree(loaded).size("weight")
    assert list(nx.jaccard_coefficient(graph, [(0, 2), (8, 21)])) == [(0, 2, 1.0), (8, 21, 0.0)]
    assert set(next(iter(nx.community.leiden_communities(graph, weight=None, seed=1)))) <= set(loaded)


def test_what_is_left_to_networkx() -> None:
    undirected, directed = nx.path_graph(3), nx.path_graph(3, create_using=nx.DiGraph)
    for name, graph, options in (
        ("diameter", directed, {}),
        ("diameter", undirected, {"weight": "weight"}),
        ("eccentricity", undirected, {}),
        ("eccentricity", undirected, {"v": 1, "sp": {}}),
        ("jaccard_coefficient", undirected, {}),
        ("degree_assortativity_coefficient", undirected, {"nodes": [1]}),
        ("degree_assortativity_coefficient", undirected, {"weight": "weight"}),
        ("average_neighbor_degree", directed, {"source": "in"}),
        ("average_neighbor_degree", undirected, {"source": "in"}),
        ("average_neighbor_degree", nx.MultiGraph(), {}),
        ("minimum_spanning_edges", nx.MultiGraph(), {}),
        ("leiden_communities", undirected, {"max_level": 1}),
    ):
        assert isinstance(can_run(name, (graph,), options), str), (name, options)
    undirected.add_edge(0, 0)
    with pytest.raises(NotImplementedError, match="raised NotImplementedError"):
        nx.jaccard_coefficient(undirected, [(0, 1)], **ON)
