"""A graph in memory becomes a graph file: the same graph, sound, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from penstock.engine import Graph, from_edges
from penstock.storage.base.errors import InputError
from penstock.storage.read.verify import verify

SOURCES, TARGETS = np.array([0, 3, 3, 900, 7]), np.array([3, 0, 900, 900, 7])
CASES = {
    "directed": from_edges(SOURCES, TARGETS, [1, 2, 3, 4, 300], renumber=True),
    "out only": from_edges(SOURCES, TARGETS, direction="out"),
    "undirected": from_edges(SOURCES, TARGETS, [0.5, 2, 3, 4, 5], undirected=True),
    "by degree": from_edges(SOURCES, TARGETS, renumber=True, order="degree"),
    "two sides": from_edges(SOURCES, TARGETS, bipartite=True),
    "names": from_edges(["ü", "b", "ü"], ["b", "a", "long" * 20]),
    "listed": from_edges([5], [9], vertices=[9, 5, 77]),
    "no edges": from_edges([], [], vertices=3),
    "no vertices": from_edges([], [], vertices=0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_file_is_the_graph(name: str, tmp_path: Path) -> None:
    graph = CASES[name]
    found = graph.save(tmp_path / "g.h5")
    assert verify(tmp_path / "g.h5").problems == []
    for field in ("vertices", "edges", "input_edges", "directed", "weight_range", "left", "weight_dtype", "id_dtype"):
        assert getattr(found, field) == getattr(graph, field), field
    assert [rows.direction for rows in found.adjacencies] == [rows.direction for rows in graph.adjacencies]
    assert pa.table(found) == pa.table(graph)
    ids = graph.original_ids()
    assert (found.original_ids() is None) if ids is None else (found.original_ids() == ids).all()


def test_vertices_without_edges_are_counted(tmp_path: Path) -> None:
    assert CASES["listed"].save(tmp_path / "a.h5").without_edges == 1
    assert CASES["out only"].save(tmp_path / "b.h5").without_edges is None


def test_parallel_edges_are_sorted_by_weight_in_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    offsets = np.array([0, 0, 300, 300, 700, 700])
    rows = [np.sort(rng.integers(0, 5, count)) for count in np.diff(offsets)]
    weights = rng.integers(0, 200, 700).astype(np.uint8)
    saved = Graph.from_arrays(offsets, np.concatenate(rows), weights).save(tmp_path / "g.h5")
    assert verify(tmp_path / "g.h5").problems == []
    neighbors, found = saved.out.edges_in(0, 700)
    assert found is not None
    for v, row in enumerate(rows):
        mine = slice(offsets[v], offsets[v + 1])
        expected = sorted(zip(row, weights[mine], strict=True))
        assert list(zip(neighbors[mine], found[mine], strict=True)) == expected


def test_what_exists_stays_and_files_are_not_saved_again(tmp_path: Path) -> None:
    path = tmp_path / "g.h5"
    path.write_bytes(b"mine")
    with pytest.raises(InputError, match="exists already; force=True replaces it"):
        CASES["directed"].save(path)
    assert path.read_bytes() == b"mine"
    with pytest.raises(InputError, match=r"in a file already, .*g\.h5: copy it"):
        CASES["directed"].save(path, force=True).save(tmp_path / "h.h5")
    assert [file.name for file in tmp_path.iterdir()] == ["g.h5"]
    assert isinstance(Graph.open(path), Graph)
