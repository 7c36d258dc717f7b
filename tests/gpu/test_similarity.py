"""Given pairs on a GPU share the neighbors that cores count, with all rows there and with a quarter of the memory."""

from __future__ import annotations

import time

import numpy as np
import pytest
from penstock.engine import from_edges, similarity
from support.graphs import skewed

pytestmark = pytest.mark.gpu
VERTICES, EDGES, PAIRS = 1 << 17, 1 << 21, 1 << 20


@pytest.mark.parametrize("directed", [True, False])
def test_pairs(directed: bool) -> None:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    sources, targets = skewed(VERTICES, EDGES, seed)
    graph = from_edges(sources, targets, undirected=not directed, vertices=VERTICES)
    random = np.random.default_rng(seed)
    pairs = random.integers(0, VERTICES, (PAIRS, 2))
    pairs[: PAIRS // 2] = np.stack([sources, targets], axis=1)[: PAIRS // 2]  # vertices of many neighbors, too
    began = time.perf_counter()
    wanted = similarity(graph, pairs)
    seconds = [time.perf_counter() - began]
    rows = EDGES * (4 if directed else 8) + 40 * VERTICES
    for memory in (4 * rows, 4 * rows, rows):
        began = time.perf_counter()
        found = similarity(graph, pairs, device="cuda:0", device_memory=memory)
        seconds.append(time.perf_counter() - began)
        np.testing.assert_array_equal(found.common, wanted.common, err_msg=f"seed {seed}, {memory} bytes")
        np.testing.assert_array_equal(found.sizes, wanted.sizes, err_msg=f"seed {seed}, {memory} bytes")
    print(f"seed {seed}: cores, GPU, again, with a quarter: {', '.join(f'{one:.2f} s' for one in seconds)}")
