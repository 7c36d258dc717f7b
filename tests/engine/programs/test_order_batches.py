"""Greedy walks batch by batch give what one walk over all vertices gives, however few edges a batch has."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph, run
from penstock.engine.programs import order_batches
from penstock.engine.programs.coloring import Coloring, ColoringByHashes
from penstock.storage.checkpoint.state_pages import values_in_file
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


@pytest.mark.parametrize("in_file", [False, True])
def test_a_batch_takes_no_more_than_its_edges_are_counted_for(in_file: bool, tmp_path: Path) -> None:
    """Of few edges and many vertices, as where most of these have none within the batch, an edge takes most."""
    count, edges = 1_000_000, 60_000
    random = np.random.default_rng(1)
    hashes, taken = random.permutation(count).astype(np.uint64), np.zeros(count, np.uint64)
    chosen = random.permutation(count)[: 2 * edges].astype(np.uint32)
    ends = chosen[:edges], chosen[edges:]
    paged = [values_in_file([tmp_path], count, np.uint64, 0) for _ in range(2)] if in_file else [hashes, taken]
    paged[0][:] = hashes
    tracemalloc.start()
    try:
        vertices, bits = order_batches.bits_of_earlier(paged[0], ends, paged[1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    first = hashes[ends[0]] < hashes[ends[1]]
    assert set(vertices[bits == 1]) == {*np.where(first, *ends[::-1])}
    assert peak + 2 * ends[0].nbytes < order_batches.EDGE_BYTES * edges * 1.25
