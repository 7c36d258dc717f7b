"""Paths in the ids of the input, whatever these are and however vertices are ordered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, from_edges, run
from penstock.engine.state.found_paths import FoundPath
from penstock.storage.base.errors import InputError
from support.graphs import in_memory
from support.oracles import EdgeList

SLOW: dict[str, Any] = {"kernels": "reference"}


def test_numbers_are_the_vertices() -> None:
    result = run("sssp", from_edges([0, 1, 0, 3], [1, 2, 2, 4], [1.5, 2.0, 4.0, 1.0]), source=0, parents=True, **SLOW)
    assert result.path(2) == FoundPath([0, 1, 2], 3.5)
    assert result.path(2).hops == 2
    assert result.path(0) == FoundPath([0], 0.0)
    assert result.path(4) is None
    assert result.targets == []


@pytest.mark.parametrize("order", ["none", "hubs"])
def test_names_are_strings(order: str) -> None:
    ends = ["b", "c", "x", "a"], ["a", "b", "a", "d"]
    graph = from_edges(*ends, order=order)
    result = run("bfs", graph, source="c", target=["d", "x", "b"], **SLOW)
    assert result.path("d") == FoundPath(["c", "b", "a", "d"], 3)
    assert result.path("x") is None
    assert result.targets == ["d", "x", "b"]


def test_ids_in_any_order_are_found() -> None:
    names = np.array([30, 20, 10, 40], np.uint64)
    graph = Graph.from_arrays([0, 2, 3, 4, 4], [1, 2, 3, 3], original_id=names)
    assert run("bfs", graph, source=30, **SLOW).path(40).vertices == [30, 10, 40]
    assert run("widest", graph, source=30, parents=True, **SLOW).path(40) == FoundPath([30, 10, 40], 1)


def test_sides_are_named() -> None:
    graph = from_edges([7, 7, 8], [7, 9, 9], bipartite=True, undirected=True)
    result = run("bfs", graph, source="source:8", target="target:7", **SLOW)
    assert result.targets == ["target:7"]
    assert result.path("target:7").vertices == ["source:8", "target:9", "source:7", "target:7"]


def test_what_has_no_paths_says_so() -> None:
    graph = in_memory(EdgeList(2, np.array([0]), np.array([1]), None))
    with pytest.raises(InputError, match=r"the answer has level and no parents.*parents=True"):
        run("bfs", graph, source=0, parents=False, **SLOW).path(1)
    with pytest.raises(InputError, match="vertex 5 is not in the graph"):
        run("bfs", graph, source=0, **SLOW).path(5)
