"""Random walks on a GPU are those of the cores, on random graphs that are new each time, whatever the GPU keeps."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Session, walk
from support.graphs import in_memory, on_disk, skewed, weighed
from support.oracles import EdgeList

pytestmark = pytest.mark.gpu

VERTICES, EDGES = 40_000, 600_000
KINDS: dict[str, dict[str, Any]] = {
    "uniform": {"weight": False},
    "weighted": {},
    "restart": {"restart": 0.15, "dead_ends": "restart"},
    "node2vec": {"weight": False, "p": 0.25, "q": 4.0},
    "weighted node2vec": {"p": 0.01, "q": 0.5},
}


def edges_of(seed: int, *, directed: bool) -> EdgeList:
    """Skewed degrees, dead ends, and weights in 64 bits of which many are nearly equal."""
    ends = EdgeList(VERTICES, *skewed(VERTICES, EDGES, seed), None, directed)
    return weighed(ends, "float64", seed)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_walks_are_those_of_the_cores(kind: str, directed: bool, tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    edges = edges_of(seed, directed=directed)
    graph = in_memory(edges, both=False)
    stored = on_disk(edges, tmp_path / "g.h5", both=False, chunk_edges=4096)
    given: dict[str, Any] = {"length": 30, "walks_per_vertex": 2, "seed": seed} | KINDS[kind]
    expected = walk(graph, **given).to_numpy()
    quarter = graph.edges * (12 if graph.weight_dtype is not None and given.get("weight", True) else 4) // 4
    longest = int(graph.out.index().degrees(0, VERTICES).max())
    for one, budget in (
        (graph, {}),
        (stored, {}),
        (graph, {"device_edge_memory": max(quarter, longest * 40)}),
        (stored, {"device_edge_memory": max(quarter, longest * 40)}),
        (graph, {"device_memory": 24 << 20}),
        (graph, {"device_edge_memory": 0}),
    ):
        with Session(one, device="cuda:0", **budget) as session:
            walks = session.walk(**given)
            np.testing.assert_array_equal(walks.to_numpy(), expected, f"seed {seed}, {budget}")
            assert walks.progress.steps == (expected[:, 1:] >= 0).sum()
            if "device_edge_memory" in budget:
                assert walks.progress.sweeps > 0
                assert (walks.progress.bytes_copied > 0) == (budget["device_edge_memory"] > 0)
            assert not session.device.reads_host
            assert session.device.used_bytes <= session.device.memory_bytes


def test_few_walkers_read_in_place(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    graph = in_memory(edges_of(seed, directed=False), both=False)
    given: dict[str, Any] = {"length": 50, "walks_per_vertex": 3, "seed": seed, "sources": [1, 7, 5000]}
    with Session(graph, device="cuda:0", device_edge_memory=graph.edges * 4) as session:
        walks = session.walk(**given)
        np.testing.assert_array_equal(walks.to_numpy(), walk(graph, **given).to_numpy(), f"seed {seed}")
    assert (walks.progress.in_place > 0, walks.progress.bytes_copied) == (True, 0)
