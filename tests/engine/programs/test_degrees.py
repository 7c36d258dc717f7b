"""A column of degrees is what an array of them would be, by whatever it is read; the run keeps none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.program.program import has_phases
from penstock.engine.programs.degrees import DegreeColumn, Degrees
from penstock.engine.state.state import field_bytes
from support.graphs import in_memory, shape


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
