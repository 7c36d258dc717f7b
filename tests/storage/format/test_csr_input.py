"""Graphs from arrays: checked, narrowed, and the same to their users as graphs from files."""

from typing import Any

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph


def test_arrays_become_a_graph() -> None:
    graph = Graph.from_arrays([0, 2, 3, 3], [1, 2, 0], [5, 300, 7], original_id=[10, 20, 30])
    assert (graph.vertices, graph.edges, graph.input_edges, graph.directed) == (3, 3, 3, True)
    assert graph.path is None
    assert graph.into is None
    assert graph.vertex_dtype == np.uint32
    assert graph.weight_dtype == np.uint16
    assert graph.file_bytes == 0
    assert graph.out.arrays is not None
    neighbors, weights = graph.out.arrays
    assert neighbors.tolist() == [1, 2, 0]
    assert weights is not None
    assert weights.tolist() == [5, 300, 7]
    assert graph.out.index().degrees(0, 3).tolist() == [2, 1, 0]
    assert graph.out.chunk_bytes(True).tolist() == [18]
    original = graph.original_ids()
    assert original is not None
    assert original.tolist() == [10, 20, 30]
    graph.out.drop_index()
    assert graph.out.index().edges == 3


def test_an_undirected_graph_has_one_adjacency_for_both() -> None:
    graph = Graph.from_arrays([0, 2, 3], [0, 1, 0], directed=False)
    assert graph.into is graph.out
    assert (graph.edges, graph.input_edges) == (3, 2)


def test_in_edges_can_be_given() -> None:
    graph = Graph.from_arrays([0, 2, 3, 3], [1, 2, 0], into=([0, 1, 2, 3], [1, 0, 0], None))
    assert graph.into is not None
    assert graph.into.direction == "in"
    with pytest.raises(InputError, match="the in-adjacency has 1 vertices"):
        Graph.from_arrays([0, 2, 3, 3], [1, 2, 0], into=([0, 0], [], None))


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        ([1, 2, 3], np.uint8),
        ([1, 2, 70000], np.uint32),
        ([1, -2, 3], np.float32),
        ([0.5, 1, 2], np.float64),
        (np.array([1, 2, 2**40 + 1]), np.float64),
        (np.array([1, -(2**63), 2**62 + 2**30]), np.float64),
        (np.array([1, 2, 3], np.float32), np.float32),
        (np.array([1, 2, 3], np.uint32), np.uint32),
        (np.array([True, False, True]), np.uint8),
        (np.array([1, 2, 3], np.float16), np.float32),
    ],
)
def test_weights_keep_their_values_in_the_narrowest_dtype(weights: Any, kind: Any) -> None:
    graph = Graph.from_arrays([0, 2, 3, 3], [1, 2, 0], weights)
    assert graph.weight_dtype == kind
    assert graph.out.arrays is not None
    found = graph.out.arrays[1]
    assert found is not None
    assert found.tolist() == [float(value) for value in weights]


@pytest.mark.parametrize(
    ("offsets", "neighbors", "weights", "message"),
    [
        ([], [], None, "offsets"),
        ([0.5, 1], [0], None, "offsets must be"),
        ([1, 1], [0], None, "rise from 0"),
        ([0, 2], [0], None, "rise from 0"),
        ([0, 2, 1, 3], [0, 1, 2], None, "rise from 0"),
        ([0, 1], [1], None, "ids from 0 to 0"),
        ([0, 1], [-1], None, "ids from 0 to 0"),
        ([0, 1], [0.5], None, "integers"),
        ([0, 1], [[0]], None, "one dimension"),
        ([0, 2, 2], [1, 0], None, r"row 0 is not sorted.*sort_indices"),
        ([0, 1], [0], [1, 2], "one numeric weight each"),
        ([0, 1], [0], ["a"], "one numeric weight each"),
        ([0, 1], [0], [2**53 + 1], "the weight 9007199254740993 is a whole number that no 64-bit float holds; scale"),
        ([0, 1], [0], np.array([2**64 - 1], np.uint64), "the weight 18446744073709551615 is a whole number"),
    ],
)
def test_arrays_that_are_no_graph_are_refused(offsets: Any, neighbors: Any, weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph.from_arrays(offsets, neighbors, weights)


def test_original_ids_must_be_one_a_vertex() -> None:
    with pytest.raises(InputError, match="one id each"):
        Graph.from_arrays([0, 0], [], original_id=[1, 2])
