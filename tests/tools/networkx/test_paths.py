"""Shortest paths through the networkx backend: each is one of networkx's length, and exceptions are networkx's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from penstock.engine import from_edges
from penstock.tools.networkx.backend import can_run, convert_to_nx

ON = {"backend": "penstock"}
EDGES = [(7, 3, 1.0), (3, 9, 2.0), (9, 7, 0.5), (9, 30, 0.0), (30, 31, 4.0), (31, 7, 1.0), (7, 31, 9.0), (50, 51, 1.0)]


def graph_of(kind: Any) -> Any:
    """A cycle with a shortcut, an edge that weighs nothing, and a part that nothing leads to."""
    graph = kind()
    graph.add_weighted_edges_from(EDGES)
    return graph


def fails_alike(function: Callable[..., Any], graph: Any, *arguments: Any, **options: Any) -> None:
    """Assert that both raise the same."""
    with pytest.raises((nx.NetworkXException, ValueError)) as right:
        function(graph, *arguments, **options)
    with pytest.raises(type(right.value)) as found:
        function(graph, *arguments, **options, **ON)
    assert str(found.value) == str(right.value)


def length(graph: Any, path: list[Any], weight: str | None) -> float:
    """What a path of the graph weighs."""
    assert nx.is_path(graph, path)
    total: float = nx.path_weight(graph, path, weight) if weight else len(path) - 1
    return total


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_paths_are_shortest(kind: Any, weight: str | None) -> None:
    graph = graph_of(kind)
    lengths = nx.shortest_path_length(graph, 7, weight=weight)
    paths = nx.shortest_path(graph, 7, weight=weight, **ON)
    assert {node: length(graph, path, weight) for node, path in paths.items()} == lengths
    assert all((path[0], path[-1]) == (7, node) for node, path in paths.items())
    assert nx.shortest_path(graph, 7, 31, weight=weight, **ON) == paths[31]
    assert nx.single_source_dijkstra(graph, 7, 31, weight=weight, **ON) == (lengths[31], paths[31])
    found, ways = nx.multi_source_dijkstra(graph, {7, 50}, weight=weight, cutoff=2, **ON)
    assert found == nx.multi_source_dijkstra_path_length(graph, {7, 50}, weight=weight, cutoff=2)
    assert {node: length(graph, path, weight) for node, path in ways.items()} == found
    if kind is nx.Graph:
        backward = nx.shortest_path(graph, target=7, weight=weight, **ON)
        assert {node: length(graph, path, weight) for node, path in backward.items()} == lengths
        assert all((path[0], path[-1]) == (node, 7) for node, path in backward.items())
    else:
        assert isinstance(can_run("shortest_path", (graph,), {"target": 7}), str)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_all_shortest_and_simple_paths_are_networkxs(kind: Any, weight: str | None) -> None:
    graph = graph_of(kind)
    graph.add_weighted_edges_from([(9, 31, 4.0), (3, 30, 2.0)])
    for target in (9, 31, 30, 7):
        found = [*nx.all_shortest_paths(graph, 7, target, weight=weight, **ON)]
        assert sorted(found) == sorted(nx.all_shortest_paths(graph, 7, target, weight=weight))
        if kind is nx.MultiDiGraph:
            assert isinstance(can_run("shortest_simple_paths", (graph, 7, target), {}), str)
            continue
        simple = [*nx.shortest_simple_paths(graph, 7, target, weight=weight, **ON)]
        right = [*nx.shortest_simple_paths(graph, 7, target, weight=weight)]
        assert sorted(simple) == sorted(right)
        assert [length(graph, one, weight) for one in simple] == [length(graph, one, weight) for one in right]

    def read(function: Any) -> Callable[..., Any]:
        return lambda *given, **named: [*function(*given, **named)]

    for source, last in ((7, 50), (7, "absent"), ("absent", 7)):
        fails_alike(read(nx.all_shortest_paths), graph, source, last, weight=weight)
        if kind is not nx.MultiDiGraph:
            fails_alike(read(nx.shortest_simple_paths), graph, source, last, weight=weight)
    fails_alike(read(nx.all_shortest_paths), graph, 7, 9, weight="weight", method="neither")


def test_what_has_no_path_is_said_as_networkx_does() -> None:
    graph = graph_of(nx.DiGraph)
    for source, target in ((7, 50), (7, "absent"), ("absent", 7)):
        for weight in (None, "weight"):
            fails_alike(nx.shortest_path, graph, source, target, weight=weight)
        fails_alike(nx.dijkstra_path, graph, source, target)
    fails_alike(nx.single_source_dijkstra, graph, 7, 31, cutoff=3)
    fails_alike(nx.single_source_shortest_path, graph, "absent")
    fails_alike(nx.single_source_dijkstra_path, graph, "absent")
    fails_alike(nx.multi_source_dijkstra, graph, set())
    fails_alike(nx.shortest_path, graph, 7, method="neither")
    for function in (nx.dijkstra_path, nx.bidirectional_shortest_path):
        assert function(graph, 7, 7, **ON) == [7]
    graph.add_edge(7, 9, weight=-1)
    with pytest.raises(ValueError, match="Contradictory paths"):
        nx.single_source_dijkstra(graph, 7, **ON)
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path(graph, 7, 9, **ON)


def test_paths_of_a_stored_graph(tmp_path: Path) -> None:
    sources, targets, weights = zip(*EDGES, strict=True)
    names = ([f"v{end}" for end in ends] for ends in (sources, targets))
    graph = from_edges(*names, weights, order="degree").save(tmp_path / "g.h5")
    loaded = convert_to_nx(graph)
    paths = nx.single_source_dijkstra_path(graph, "v7")
    lengths = nx.single_source_dijkstra_path_length(loaded, "v7")
    assert set(paths) == set(lengths)
    assert {node: length(loaded, paths[node], "weight") for node in paths} == lengths
    assert nx.shortest_path(graph, "v7", "v31", weight="weight") == paths["v31"]
    assert nx.shortest_path(graph, "v7", "v30") == ["v7", "v3", "v9", "v30"]
    layers = [sorted(layer) for layer in nx.bfs_layers(graph, ["v7"])]
    assert layers == [["v7"], ["v3", "v31"], ["v9"], ["v30"]]
    assert "v50" not in paths
    assert "absent" not in paths
    assert repr(paths).startswith("<paths to 5 vertices: 'v7'")
    with pytest.raises(nx.NetworkXNoPath, match="v50"):
        nx.shortest_path(graph, "v7", "v50")
