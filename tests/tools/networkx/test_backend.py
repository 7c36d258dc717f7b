"""The networkx backend: what `backend="penstock"` answers is what networkx answers itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from penstock.engine.programs.table import PROGRAMS, info_of
from penstock.tools.networkx import backend
from penstock.tools.networkx.held import PenstockGraph
from penstock.tools.networkx.info import FUNCTIONS, NO_FUNCTION, TABLE, get_info

ON = {"backend": "penstock"}


def weighed(graph: Any, kind: str) -> Any:
    """The same graph with weights on most edges."""
    random = np.random.default_rng(5)
    for *_, data in graph.edges(data=True):
        if random.random() < 0.8:
            data["weight"] = int(random.integers(1, 9)) if kind == "int" else float(random.random())
    return graph


def loops_and_parallels(kind: Any) -> Any:
    graph = kind([("a", "b"), ("a", "b"), ("b", "b"), ("c", "a"), ((1, 2), "c"), (7, "b")])
    graph.add_nodes_from(["alone", 3.5])
    return graph


GRAPHS: dict[str, Any] = {
    "directed": lambda: nx.gnp_random_graph(120, 0.02, seed=1, directed=True),
    "undirected": lambda: nx.gnp_random_graph(150, 0.01, seed=2),
    "karate": nx.karate_club_graph,
    "weighted directed": lambda: weighed(nx.gnp_random_graph(80, 0.04, seed=3, directed=True), "int"),
    "weighted undirected": lambda: weighed(nx.gnp_random_graph(80, 0.03, seed=4), "float"),
    "multi": lambda: weighed(loops_and_parallels(nx.MultiGraph), "int"),
    "multi directed": lambda: weighed(loops_and_parallels(nx.MultiDiGraph), "float"),
    "strings": lambda: loops_and_parallels(nx.DiGraph),
    "nothing": nx.DiGraph,
    "one": lambda: nx.empty_graph(1),
}


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Any:
    return GRAPHS[request.param]()


def same(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Assert that both give the same, exceptions included."""
    right, found = (outcome(function, arguments, options | more) for more in ({}, ON))
    if isinstance(right, int | float):
        assert found == pytest.approx(right, rel=1e-12)
        return
    assert type(found) is type(right)
    if isinstance(right, ZeroDivisionError):
        return
    if isinstance(right, Exception):
        assert str(found) == str(right)
    elif isinstance(right, dict) and any(isinstance(value, float) for value in right.values()):
        assert found == pytest.approx(right, rel=1e-12, abs=1e-15, nan_ok=True)
    else:
        assert found == right


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a call returns, or the exception it raises."""
    try:
        return function(*arguments, **options)
    except Exception as error:
        return error


def test_a_function_that_a_program_answers_names_that_program_on_the_command_line() -> None:
    """But of those that compute more of a program's answer than the program does."""
    more = ("degree_assortativity_coefficient", "average_neighbor_degree")
    answered = {each.name: each.program for each in TABLE if each.program and each.name not in more}
    found = {name: info_of(name) for name in answered}
    assert {name: info and info.name for name, info in found.items()} == answered


def test_networkx_knows_the_backend() -> None:
    assert "penstock" in nx.utils.backends.backends
    assert set(get_info()["functions"]) == set(FUNCTIONS)
    for name in FUNCTIONS:
        assert "penstock" in nx.utils.backends._registered_algorithms[name].backends
        assert callable(getattr(backend, name))


def test_records_name_what_exists() -> None:
    for function in TABLE:
        parameters = inspect.signature(nx.utils.backends._registered_algorithms[function.name].orig_func).parameters
        assert next(iter(parameters)) == "G"
        assert {*function.passed.split()} <= parameters.keys(), function.name
        assert not function.program or hasattr(PROGRAMS[function.program], function.field or "start"), function.name


@pytest.mark.parametrize(
    "options",
    [{}, {"alpha": 0.5, "tol": 1e-9}, {"weight": None}, {"weight": "length"}, {"max_iter": 2, "tol": 1e-12}],
)
def test_pagerank(graph: Any, options: dict[str, Any]) -> None:
    same(nx.pagerank, graph, **options)


def test_pagerank_of_vectors(graph: Any) -> None:
    some = {node: number + 1 for number, node in enumerate(list(graph)[::3])}
    same(nx.pagerank, graph, personalization=some)
    same(nx.pagerank, graph, personalization=some, dangling=dict.fromkeys(list(graph)[1:4], 1) or None)
    same(nx.pagerank, graph, nstart=some or None)
    same(nx.pagerank, graph, personalization={"nobody": 1})


def test_pagerank_of_any_weights() -> None:
    """networkx shares out weights below 0 too, and a sum of 0 makes a node dangling; an alpha of 1 is one of its."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 3), (0, 2, -1), (1, 2, 1), (1, 0, -1), (2, 0, 0), (3, 1, 2), (2, 1, 5)])
    same(nx.pagerank, graph)
    same(nx.pagerank, graph, alpha=1.0, max_iter=3)
    same(nx.pagerank, nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 0)]), alpha=1.0, max_iter=500)


def test_ranks_come_in_the_order_of_the_nodes() -> None:
    graph = nx.relabel_nodes(nx.karate_club_graph(), {node: 40 - node for node in range(34)})
    assert list(nx.pagerank(graph, **ON)) == list(graph)


@pytest.mark.parametrize("cutoff", [None, 0, 2])
def test_distances(graph: Any, cutoff: int | None) -> None:
    for source in [*list(graph)[:3], "absent"]:
        same(nx.single_source_shortest_path_length, graph, source, cutoff=cutoff)
        same(nx.single_source_dijkstra_path_length, graph, source, cutoff=cutoff)
        same(nx.single_source_dijkstra_path_length, graph, source, weight=None)
    if len(graph):
        levels = list(nx.single_source_shortest_path_length(graph, next(iter(graph)), **ON).values())
        assert levels == sorted(levels)


def test_weights_that_cannot_be() -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 1, weight=-1)
    graph.add_edge(1, 0, weight=-1)
    with pytest.raises(ValueError, match="negative weights"):
        nx.single_source_dijkstra_path_length(graph, 0, **ON)
    with pytest.raises(NotImplementedError, match="for the given arguments"):
        nx.single_source_dijkstra_path_length(graph, 0, weight=lambda u, v, data: 1, **ON)
    assert backend.can_run("pagerank", (graph,), {"weight": len}) == NO_FUNCTION
    assert backend.can_run("pagerank", (graph,), {"weight": "length"}) is True


def test_reachability(graph: Any) -> None:
    for source in [*list(graph)[:3], "absent"]:
        same(nx.descendants, graph, source)
        for target in [*list(graph)[:6:2], "absent"]:
            same(nx.has_path, graph, source, target)


def test_components(graph: Any) -> None:
    names = ["connected_components", "number_connected_components", "is_connected"]
    if graph.is_directed():
        names = ["weakly_connected_components", "number_weakly_connected_components", "is_weakly_connected"]
    assert list(getattr(nx, names[0])(graph, **ON)) == list(getattr(nx, names[0])(graph))
    for name in names[1:]:
        same(getattr(nx, name), graph)


SMALL: dict[str, Any] = {
    "directed": lambda: weighed(nx.gnp_random_graph(9, 0.2, seed=1, directed=True), "int"),
    "undirected": lambda: weighed(nx.gnp_random_graph(9, 0.3, seed=2), "float"),
    "loops": lambda: loops_and_parallels(nx.Graph),
    "multi directed": lambda: weighed(loops_and_parallels(nx.MultiDiGraph), "int"),
    "nothing": nx.Graph,
    "one": lambda: nx.empty_graph(1, create_using=nx.DiGraph),
}


@pytest.fixture(params=SMALL)
def small(request: pytest.FixtureRequest) -> Any:
    return SMALL[request.param]()


def test_distances_to_and_between(graph: Any) -> None:
    ends = [*list(graph)[:2], "absent"]
    for end in ends:
        same(nx.ancestors, graph, end)
        same(nx.descendants_at_distance, graph, end, 1)
        same(nx.single_target_shortest_path_length, graph, end, cutoff=2)
        for weight in (None, "weight"):
            same(nx.shortest_path_length, graph, source=end, weight=weight)
            same(nx.shortest_path_length, graph, target=end, weight=weight)
    for weight, target in ((None, ends[-1]), ("weight", ends[-1]), (None, ends[-2:][0]), ("weight", ends[-2:][0])):
        same(nx.shortest_path_length, graph, ends[0], target, weight=weight)
    same(nx.shortest_path_length, graph, ends[0], method="neither")
    same(nx.dijkstra_path_length, graph, ends[0], ends[-2:][0])
    same(nx.multi_source_dijkstra_path_length, graph, set(ends[:-1]), cutoff=3)
    same(nx.multi_source_dijkstra_path_length, graph, set())


def test_strong_components(graph: Any) -> None:
    if not graph.is_directed():
        same(nx.node_connected_component, graph, next(iter(graph), "absent"))
        return
    right, found = (list(nx.strongly_connected_components(graph, **more)) for more in ({}, ON))
    assert {frozenset(part) for part in found} == {frozenset(part) for part in right}
    same(nx.number_strongly_connected_components, graph)
    same(nx.is_strongly_connected, graph)


def test_centralities_by_paths(small: Any) -> None:
    first = next(iter(small), "absent")
    for distance in (None, "weight"):
        same(nx.closeness_centrality, small, distance=distance)
        same(nx.closeness_centrality, small, u=first, distance=distance, wf_improved=False)
        same(nx.closeness_centrality, small, u="absent", distance=distance)
        same(nx.harmonic_centrality, small, distance=distance)
        same(nx.harmonic_centrality, small, nbunch=[first, "absent"], distance=distance)
    same(nx.betweenness_centrality, small)
    same(nx.betweenness_centrality, small, normalized=False)
    same(nx.betweenness_centrality, small, k=min(3, len(small)), seed=7)
    same(nx.betweenness_centrality, small, k=99, seed=7)


def test_centralities_by_walks(small: Any) -> None:
    same(nx.katz_centrality, small)
    same(nx.katz_centrality, small, alpha=0.05, beta=2, weight="weight", normalized=False)
    same(nx.katz_centrality, small, alpha=5.0, max_iter=300)
    same(nx.katz_centrality, small, max_iter=0)
    same(nx.eigenvector_centrality, small, max_iter=0)
    for weight in (None, "weight"):
        right, found = (
            outcome(nx.eigenvector_centrality, (small,), {"tol": 1e-11, "max_iter": 2000, "weight": weight} | more)
            for more in ({}, ON)
        )
        assert found == pytest.approx(right, abs=1e-8) if isinstance(right, dict) else type(found) is type(right)
    same(nx.eigenvector_centrality, type(small)())
    same(nx.hits, small, max_iter=0)


def test_hits() -> None:
    graph = weighed(nx.gnp_random_graph(20, 0.2, seed=1, directed=True), "int")
    right, found = (nx.hits(graph, **more) for more in ({}, ON))
    for one, other in zip(found, right, strict=True):
        assert one == pytest.approx(other, abs=1e-7)


def test_degrees(small: Any) -> None:
    for function in (nx.degree_centrality, nx.number_of_isolates):
        same(function, small)
    assert set(nx.isolates(small, **ON)) == set(nx.isolates(small))
    if small.is_directed():
        same(nx.in_degree_centrality, small)
        same(nx.out_degree_centrality, small)


def test_cores_and_triangles(small: Any) -> None:
    same(nx.core_number, small)
    if small.is_directed() or small.is_multigraph():
        return
    first = next(iter(small), "absent")
    for function in (nx.triangles, nx.clustering):
        same(function, small)
        same(function, small, [first, "absent"])
        same(function, small, first)
    same(nx.average_clustering, small)
    same(nx.average_clustering, small, count_zeros=False)
    same(nx.transitivity, small)


def test_calls_that_are_left_to_networkx() -> None:
    undirected, directed = nx.path_graph(3), nx.path_graph(3, create_using=nx.DiGraph)
    for name, graph, options in (
        ("betweenness_centrality", undirected, {"weight": "weight"}),
        ("betweenness_centrality", undirected, {"endpoints": True}),
        ("clustering", directed, {}),
        ("clustering", undirected, {"weight": "weight"}),
        ("average_clustering", nx.MultiGraph(), {}),
        ("transitivity", directed, {}),
        ("triangles", nx.MultiGraph(), {}),
        ("hits", undirected, {"nstart": {}}),
        ("hits", undirected, {"normalized": False}),
        ("katz_centrality", undirected, {"beta": {}}),
        ("katz_centrality", undirected, {"alpha": -1}),
        ("eigenvector_centrality", undirected, {"nstart": {}}),
        ("harmonic_centrality", undirected, {"sources": [1]}),
        ("shortest_path_length", undirected, {}),
        ("shortest_path_length", undirected, {"source": 0, "weight": "weight", "method": "bellman-ford"}),
        ("closeness_centrality", undirected, {"distance": len}),
    ):
        assert isinstance(backend.can_run(name, (graph,), options), str), (name, options)
    assert backend.can_run("louvain_communities", (undirected,), {}) is False
    assert backend.can_run("triangles", (), {"nodes": 1}) is True  # the call says what is missing
    undirected.add_edge(0, 1, weight="far")
    with pytest.raises(NotImplementedError, match="not numbers"):
        backend.convert_from_nx(undirected, edge_attrs={"weight": 1})
    with pytest.raises(NotImplementedError, match="at most one"):
        backend.convert_from_nx(undirected, preserve_edge_attrs=True)


def test_options_of_a_run_are_passed_on() -> None:
    graph = nx.path_graph(5)
    assert nx.number_connected_components(graph, **ON, threads=1, device="cpu") == 1
    with pytest.raises(Exception, match="no_such_option"):
        nx.number_connected_components(graph, **ON, no_such_option=1)


def test_a_converted_graph_goes_back(graph: Any) -> None:
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    assert isinstance(converted, PenstockGraph)
    assert (len(converted), list(converted)) == (len(graph), list(graph))
    back = backend.convert_to_nx(converted)
    assert type(back) is type(graph)
    assert set(back) == set(graph)
    ends = [sorted(map(repr, edge[:2])) if not graph.is_directed() else [*map(repr, edge[:2])] for edge in graph.edges]
    found = [sorted(map(repr, edge[:2])) if not graph.is_directed() else [*map(repr, edge[:2])] for edge in back.edges]
    assert sorted(found) == sorted(ends)
    assert backend.convert_to_nx({1: 2}) == {1: 2}


def test_a_converted_graph_is_answered_without_naming_the_backend() -> None:
    graph = nx.path_graph(4, create_using=nx.DiGraph)
    converted = backend.convert_from_nx(graph)
    assert nx.single_source_shortest_path_length(converted, 1) == {1: 0, 2: 1, 3: 2}
    assert 2 in converted
    assert 9 not in converted
