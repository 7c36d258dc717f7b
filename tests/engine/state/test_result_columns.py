"""Columns of a result, read range by range: ids of a file by chunk, hubs back in order, ids that are strings."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine import Graph
from penstock.engine.state.result_columns import columns_of
from penstock.storage.checkpoint.page_file import PageFile
from penstock.storage.checkpoint.state_pages import PagedValues, StatePages
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.format.schema import CHUNK_VERTICES
from penstock.storage.format.writer import GraphWriter
from penstock.storage.results.result_tables import write
from penstock.storage.tables.columns import WriteOptions

VERTICES = 10 * CHUNK_VERTICES + 1000


def graph_on_disk(path: Path, ids: NDArray[Any], **provenance: Any) -> Graph:
    """A graph of VERTICES vertices without edges, with these original ids."""
    settings: dict[str, Any] = {"weight_dtype": None, "threads": 2, "directed": True}
    kind = np.dtype(np.uint32)
    with GraphWriter(path, vertices=len(ids), vertex_dtype=kind, provenance=provenance, **settings) as writer:
        writer.input_edges = 0
        adjacency = writer.adjacency("out")
        adjacency.append(np.empty(0, np.uint32), None)
        adjacency.degrees(np.zeros(len(ids), np.int64))
        adjacency.finish()
        writer.original_ids(ids)
    return Graph.open(path)


@pytest.fixture(scope="module")
def ids() -> NDArray[np.uint64]:
    return np.cumsum(np.random.default_rng(5).integers(1, 9, VERTICES)).astype(np.uint64)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, ids: NDArray[np.uint64]) -> Graph:
    path = tmp_path_factory.mktemp("ids") / "plain.h5"
    return graph_on_disk(path, ids, options={})


def test_ids_of_a_file_are_read_by_chunk(plain: Graph, ids: NDArray[np.uint64]) -> None:
    for first, last in ((0, 10), (CHUNK_VERTICES - 3, CHUNK_VERTICES + 3), (5, VERTICES), (7, 7)):
        found = plain.original_ids_in(first, last)
        assert found.tolist() == ids[first:last].tolist()
    some = np.array([VERTICES - 1, 0, CHUNK_VERTICES, 3, 3])
    assert plain.original_ids_of(some).tolist() == ids[some].tolist()
    assert plain.original_ids_of(some[:0]).tolist() == []
    assert plain.id_dtype == ids.dtype


def test_strings_and_arrays_of_ids() -> None:
    named = Graph.from_arrays([0, 0, 0, 0], [], original_id=np.array(["b", "a", "c"], STRINGS))
    assert named.original_ids_of(np.array([2, 1])).tolist() == ["c", "a"]
    assert named.original_ids_in(0, 2).tolist() == ["b", "a"]
    columns = columns_of(named, {"x": (np.array([1, 2, 3]), 3)})
    assert columns["vertex"].arrays()[0].tolist() == ["a", "b", "c"]
    values, present = columns["x"].arrays()
    assert present is not None
    assert (values.tolist(), present.tolist()) == ([2, 1, 3], [True, True, False])


def test_hubs_go_back_into_order(tmp_path: Path, ids: NDArray[np.uint64]) -> None:
    order = np.random.default_rng(6).permutation(VERTICES)
    graph = graph_on_disk(tmp_path / "hubs.h5", ids[order], options={"order": "degree"})
    columns = columns_of(graph, {"x": (order, None)})
    read = columns["x"].opened()
    assert read(100, 200)[0].tolist() == list(range(100, 200))
    assert np.array_equal(columns["vertex"].arrays()[0], ids)


def test_writing_takes_no_array_of_the_vertices(plain: Graph, ids: NDArray[np.uint64], tmp_path: Path) -> None:
    values = np.arange(VERTICES, dtype=np.int64)
    columns = columns_of(plain, {"x": (values, 7)})
    for name in ("r.npy", "r.h5"):
        write(tmp_path / name, columns)  # what is imported and compiled for it is there
        tracemalloc.start()
        try:
            write(tmp_path / name, columns, force=True, options=WriteOptions(threads=2))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < values.nbytes  # some ranges of rows, and their chunks of ids; whole columns: twice as much
    records = np.load(tmp_path / "r.npy")
    assert np.array_equal(records["x"], values)
    assert np.array_equal(records["vertex"], ids)


@pytest.mark.parametrize("shape", [(16,), (2, 8)])
def test_a_number_of_vectors_in_a_file_keeps_no_others(shape: tuple[int, ...], plain: Graph, tmp_path: Path) -> None:
    """Writers hold ranges of all columns at once; checkpoints have all numbers one behind the other."""
    width, kind = 16, np.dtype((np.float64, shape))
    room = CHUNK_VERTICES * kind.itemsize
    pages = StatePages(VERTICES, CHUNK_VERTICES, room, PageFile([tmp_path], 12 * room))
    pages.add("x", kind, 0.0)
    values, (first, last) = PagedValues(pages, "x"), (CHUNK_VERTICES - 500, CHUNK_VERTICES + 500)
    wanted = np.arange((last - first) * width, dtype=np.float64).reshape(-1, width)
    values[first:last] = wanted.reshape(-1, *shape)
    numbers = values.reshape(-1)
    assert len(numbers) == VERTICES * width
    assert np.array_equal(numbers[first * width + 3 : last * width], wanted.reshape(-1)[3:])
    columns = columns_of(plain, {"x": (values, None)})
    tracemalloc.start()
    try:
        found = [columns[f"x_{place}"].opened()(first, last)[0] for place in range(width)]
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert np.array_equal(np.stack(found, axis=1), wanted)
    assert kept < 2 * wanted.nbytes
