"""The order of paths: components in topological order, paths together, whatever fits into the buffer of edges."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.renumber.vertex_order import LEAST_EDGES, PathOrder, by_paths
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source

Ids = np.ndarray[tuple[int], np.dtype[np.uint32]]


def order_of(sources: Ids, targets: Ids, vertices: int, *, room: int = 1 << 30, both: bool = False) -> Ids:
    def batches() -> Iterator[EdgeBatch]:
        for first in range(0, len(sources), 1000):
            part = slice(first, first + 1000)
            yield EdgeBatch(sources[part], targets[part], None)

    return by_paths(batches, PathOrder(vertices, room, len(sources), both=both))


def ids(*values: int) -> Ids:
    return np.array(values, np.uint32)


def acyclic(vertices: int, edges: int) -> tuple[Ids, Ids]:
    """Edges that lead from earlier to later vertices of a random order."""
    random = np.random.default_rng(3)
    ends = np.sort(random.integers(0, vertices, (edges, 2)), axis=1)
    ends = ends[ends[:, 0] != ends[:, 1]]
    names = random.permutation(vertices).astype(np.uint32)
    return names[ends[:, 0]], names[ends[:, 1]]


def test_strong_components_are_in_topological_order() -> None:
    random = np.random.default_rng(5)
    sources, targets = (random.integers(0, 500, 700).astype(np.uint32) for _ in range(2))
    new = order_of(sources, targets, 500).astype(np.int64)
    matrix = scipy.sparse.coo_array((np.ones(700), (sources, targets)), (500, 500))
    count, component = scipy.sparse.csgraph.connected_components(matrix, connection="strong")
    first = np.full(count, 500)
    np.minimum.at(first, component, new)
    apart = component[sources] != component[targets]
    assert 0 < apart.sum() < 700
    assert (first[component[sources[apart]]] < first[component[targets[apart]]]).all()


@pytest.mark.parametrize("both", [False, True])
def test_edges_that_exceed_the_buffer_still_give_a_permutation(both: bool) -> None:
    sources, targets = acyclic(3000, 5 * LEAST_EDGES)
    new = order_of(sources, targets, 3000, room=1, both=both)
    assert np.array_equal(np.sort(new), np.arange(3000))
    if not both:
        upward = np.count_nonzero(new[sources] < new[targets]) / len(sources)
        assert upward > 0.75  # 0.5 of them do in the order of the ids


@pytest.mark.parametrize("vertices", [0, 1, 3])
def test_without_edges_vertices_stay(vertices: int) -> None:
    assert order_of(ids(), ids(), vertices).tolist() == list(range(vertices))


def test_loops_and_parallel_edges_change_nothing() -> None:
    assert order_of(ids(2, 2, 0, 0), ids(2, 0, 1, 1), 3).tolist() == [1, 2, 0]


@pytest.mark.parametrize(("order", "hot"), [("paths", False), ("degree", True), ("hubs", True), ("none", False)])
def test_only_orders_by_degree_put_hot_vertices_first(tmp_path: Path, order: Any, hot: bool) -> None:
    (tmp_path / "edges.txt").write_text("2 0\n0 1\n")
    source = open_source([tmp_path / "edges.txt"], None, IngestOptions())
    convert(source, tmp_path / "g.h5", ConvertOptions(order=order))
    graph = Graph.open(tmp_path / "g.h5")
    assert (graph.reordered, graph.hot_first) == (order != "none", hot)
    if order == "paths":
        assert graph.original_ids().tolist() == [2, 0, 1]  # type: ignore[union-attr]


def test_memory_for_too_many_vertices_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("0 1000000\n")
    source = open_source([tmp_path / "edges.txt"], None, IngestOptions())
    with pytest.raises(InputError, match=r"--order paths of 1000001 vertices .* give --host-memory 7\d"):
        convert(source, tmp_path / "g.h5", ConvertOptions(order="paths", host_memory=32 << 20, renumber=False))
