"""Ties and names go by the ids of the input, in whichever order vertices are stored."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, from_edges, run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.program.vertex_ids import in_original_order
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.table import PROGRAMS, named
from support.graphs import skewed, weighed
from support.oracles import EdgeList, check_bfs

VERTICES, SOURCE = 24, 17
ORDERS = ("degree", "hubs", "paths")
PARAMETERS: dict[str, dict[str, Any]] = {
    "betweenness": {"k": 5},
    "closeness": {"k": 5},
    "katz": {"alpha": 0.01, "weight": False},
    "hyperball": {"log2m": 4},
    "kcore": {"k": 4},
    "pagerank": {"personalization": {SOURCE: 1.0, 3: 2.0}},
    "cf": {"rank": 2, "max_iter": 3},
    "heat": {"initial": {SOURCE: 3.0}, "max_iter": 5},
    "circuit": {"fixed": {SOURCE: 3.0, 3: 1.0}, "floating": True},
    "neural": {"inputs": {SOURCE: 0.5, 3: 1.0}, "gain": 0.01},
}


NEARLY = (
    *("pagerank", "php", "adsorption", "katz", "eigenvector", "hits", "personalized_pagerank", "betweenness"),
    *("closeness", "harmonic", "hyperball"),
    *("heat", "circuit", "neural"),
)
"""Sums of floats, whose order, and with it that of equal vertices, differs."""


def edges_of(*, directed: bool) -> EdgeList:
    """Hubs are the largest ids here, so that hub order turns them round."""
    sources, targets = VERTICES - 1 - skewed(VERTICES, 80, 4)
    return weighed(EdgeList(VERTICES, sources, targets, None, directed), "uint8")


def graph_of(edges: EdgeList, **options: Any) -> Graph:
    ends, undirected = (edges.sources, edges.targets), not edges.directed
    return from_edges(*ends, edges.weights, vertices=edges.vertices, undirected=undirected, **options)


@pytest.mark.parametrize("name", ["coloring", "diameter", "mis"])
def test_a_lighter_program_has_the_same_answer(name: str) -> None:
    for directed, order in ((True, "none"), (False, "degree")):
        graph = graph_of(edges_of(directed=directed), order=order)
        whole: Any = PROGRAMS[name]()
        lighter = whole.lighter(graph)
        one, other = (run(program, graph, kernels="reference").fields for program in (whole, lighter))
        for field, values in one.items():
            np.testing.assert_array_equal(other[field], values)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_order_of_vertices_changes_no_answer(name: str) -> None:
    """Every program in every order, on directed and on undirected graphs; every order on both, with one or another."""
    parameters = PARAMETERS.get(name, {})
    if "source" in inspect.signature(named(name)).parameters and name not in ("betweenness", "closeness"):
        parameters = {**parameters, "source": SOURCE}
    first = sorted(PROGRAMS).index(name)
    for directed in (True, False):
        edges = edges_of(directed=directed)
        plain = graph_of(edges, order="none")
        assert in_original_order(plain)
        one = run(name, plain, kernels="reference", **parameters)
        for order in [order for at, order in enumerate(ORDERS, first) if (at % 2 == 0) == directed]:
            moved = graph_of(edges, order=order)
            assert not in_original_order(moved)
            other = run(name, moved, kernels="reference", **parameters)
            for column, (values, present) in other.columns().items():
                wanted, there = one.columns()[column]
                assert (present is None) == (there is None), (order, directed)
                assert present is None or np.array_equal(present, there), (order, directed)
                if values.dtype.kind == "f":
                    assert np.allclose(values, wanted, rtol=1e-9, atol=1e-5), (order, directed)
                else:
                    assert np.array_equal(values, wanted), (order, directed)
            if name not in NEARLY:
                assert one.top(20) == other.top(20), (order, directed)


WAYS: list[dict[str, Any]] = [
    {"kernels": "reference", "direction": "push"},
    {"kernels": "reference", "direction": "pull"},
    {"threads": 1},
    pytest.param(
        {"device": "emulated", "kernels": "cuda"},
        marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    ),
]


class Heir(BFS):
    """Somebody's own search."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ["degree", "hubs"])
@pytest.mark.parametrize("program", [BFS, Heir])
def test_parents_of_a_search(program: type[BFS], order: str, way: dict[str, Any]) -> None:
    edges = edges_of(directed=True)
    graph = graph_of(edges, order=order)
    result = run(program(SOURCE), graph, **way)
    order = np.argsort(result.ids)
    check_bfs(edges, SOURCE, result.fields["level"][order], result.fields["parent"][order])


def test_ids_in_any_order_are_looked_at() -> None:
    names = np.array([30, 20, 10, 40], np.uint64)
    graph = Graph.from_arrays([0, 2, 3, 4, 4], [1, 2, 3, 3], original_id=names)
    assert run("bfs", graph, source=30, kernels="reference").to_dict("parent") == {30: 30, 20: 30, 10: 30, 40: 10}
