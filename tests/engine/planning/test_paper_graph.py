"""A graph that need not exist has the bytes, rows and chunks that a plan asks for."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.planning.paper_graph import ROW_BYTES, paper_graph


@pytest.mark.parametrize(("vertices", "dtype"), [(1 << 32, np.uint32), ((1 << 32) + 1, np.uint64)])
def test_it_has_so_many_bytes(vertices: int, dtype: type) -> None:
    graph = paper_graph(vertices, 10_000_000, 0.5)
    assert (graph.vertices, graph.edges, graph.vertex_dtype) == (vertices, 10_000_000, dtype)
    assert graph.out.chunk_bytes(with_weights=False).sum() == pytest.approx(5_000_000, rel=0.03)
    assert graph.out.degrees is not None
    assert graph.out.degrees.lengths.sum() == pytest.approx(ROW_BYTES * vertices, rel=0.01)
    assert graph.out.has_row_pages
