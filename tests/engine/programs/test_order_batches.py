"""Greedy walks batch by batch give what one walk over all vertices gives, however few edges a batch has."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine import Graph, run
from penstock.engine.programs import order_batches
from penstock.engine.programs.coloring import Coloring, ColoringByHashes
from support.graphs import in_memory, skewed
from support.oracles import EdgeList


def crowded(*, directed: bool) -> Graph:
    """Seventy vertices of which each is every other's neighbor, so that colors are of two windows, and others."""
    ones, others = np.triu_indices(70, 1)
    sources, targets = skewed(200, 900, 3)
    return in_memory(EdgeList(200, np.append(ones, sources), np.append(others, targets), None, directed))


@pytest.mark.parametrize("directed", [True, False])
def test_batches_of_any_size_have_the_colors_of_a_serial_walk(directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = crowded(directed=directed)
    wanted = run(Coloring(), graph, kernels="reference").fields["color"]
    assert wanted.max() > 63
    monkeypatch.setattr(order_batches, "EDGE_BYTES", 1 << 40)
    iterations = []
    for fewest in (1 << 14, 1000, 40, 1):
        monkeypatch.setattr(order_batches, "FEWEST", fewest)
        found = run(ColoringByHashes(), graph, kernels="reference")
        np.testing.assert_array_equal(found.fields["color"], wanted)
        iterations.append(found.iterations)
    assert iterations == sorted(iterations)
    assert iterations[0] < 3 < 30 < iterations[-1]
