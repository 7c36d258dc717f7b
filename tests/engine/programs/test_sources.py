"""What choosing sources takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from penstock.engine.programs.sources import FEW_DRAWN, chosen_sources, source_bytes
from support.graphs import in_memory
from support.oracles import EdgeList

VERTICES = 1 << 17
NONE = np.zeros(0, np.int64)


@pytest.mark.parametrize(
    ("k", "each"), [(7, 0), (VERTICES // FEW_DRAWN, 0), (VERTICES // FEW_DRAWN + 1, 8), (VERTICES, 4), (None, 4)]
)
def test_the_bytes_that_are_counted_are_those_that_are_taken(k: int | None, each: int) -> None:
    graph = in_memory(EdgeList(VERTICES, NONE, NONE, None, True))
    chosen_sources(graph, None, 1, 0)
    tracemalloc.start()
    try:
        assert len(chosen_sources(graph, None, k, 0)) == (k or VERTICES)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert source_bytes(graph, None, k) == 1 + each
    assert peak <= each * VERTICES + (1 << 17)


def test_given_sources_take_what_there_are_of_them() -> None:
    assert source_bytes(in_memory(EdgeList(5, NONE, NONE, None, True)), [1, 2], None) == 1
