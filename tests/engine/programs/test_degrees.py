"""A column of degrees is what an array of them would be, by whatever it is read; the run keeps none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.program.program import has_phases
from penstock.engine.programs.degrees import DegreeColumn, Degrees
from penstock.engine.state.state import field_bytes
from penstock.storage.format.schema import CHUNK_EDGES, CHUNK_VERTICES
from support.graphs import in_memory, on_disk, shape
from support.oracles import EdgeList


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("rows", [slice(3, 9), slice(None), slice(9, 3), slice(0, 50, 7), np.array([5, 2, 5]), 4])
def test_it_is_read_as_an_array(rows: Any, both: bool) -> None:
    edges = shape("sparse")
    result = run("degrees", in_memory(edges, both=both), kernels="reference")
    leaving, arriving = (np.bincount(ends, minlength=edges.vertices) for ends in (edges.sources, edges.targets))
    wanted = {"degree": leaving + arriving, "in_degree": arriving, "out_degree": leaving}
    for name, values in wanted.items():
        column = result.stored[name]
        assert isinstance(column, DegreeColumn)
        assert (column.shape, column.dtype) == (values.shape, np.int64)
        np.testing.assert_array_equal(column[rows], values[rows])
        np.testing.assert_array_equal(result.fields[name], values)


@pytest.mark.parametrize(("both", "kept"), [(True, 0), (False, 8)])
def test_a_run_keeps_what_no_index_has(both: bool, kept: int) -> None:
    graph = in_memory(shape("sparse"), both=both)
    made = Degrees().form(graph, "auto")
    assert has_phases(made)
    assert sum(field_bytes(made, 1, np.dtype(np.uint32)).values()) == kept


def test_degrees_of_a_file_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    vertices = CHUNK_VERTICES + 100
    line = EdgeList(vertices, np.arange(1, vertices - 1), np.arange(2, vertices), None, directed=True)
    graph = on_disk(line, tmp_path / "line.h5", chunk_edges=CHUNK_EDGES)
    stored = run("degrees", graph).stored
    near = slice(CHUNK_VERTICES - 1, CHUNK_VERTICES + 2)
    far = np.array([vertices - 1, 0, CHUNK_VERTICES, 1])
    assert stored["degree"][near].tolist() == [2, 2, 2]
    assert stored["degree"][far].tolist() == [1, 0, 2, 1]
    assert stored["in_degree"][:3].tolist() == [0, 0, 1]
    assert int(np.asarray(stored["out_degree"]).sum()) == vertices - 2
    assert all(graph.degree_frames(direction) is not None for direction in ("out", "in")), "no index was made"
