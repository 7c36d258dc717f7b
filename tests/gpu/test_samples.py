"""Neighborhoods and timed walks on a GPU are those of the cores, on random graphs that are new each time."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, NeighborSampler, Session, convert, sample_neighbors, walk
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList
from support.samples import assert_same

pytestmark = pytest.mark.gpu

VERTICES, EDGES = 40_000, 600_000


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(("fanouts", "replace"), [([15, 10], False), ([5, 3, 2], True), ([4, -1], False)])
def test_samples_are_those_of_the_cores(fanouts: list[int], replace: bool, directed: bool, tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    edges = EdgeList(VERTICES, *skewed(VERTICES, EDGES, seed), None, directed)
    graph, stored = in_memory(edges), on_disk(edges, tmp_path / "g.h5", chunk_edges=4096)
    batches = [np.random.default_rng(seed + i).integers(0, VERTICES, 300) for i in range(4)]
    expected = [sample_neighbors(graph, one, fanouts, replace=replace, seed=seed) for one in batches]
    for one, room in ((graph, None), (stored, None), (stored, graph.edges), (graph, graph.edges), (stored, 0)):
        given: dict[str, Any] = {"replace": replace, "device": "cuda:0", "device_edge_memory": room}
        with NeighborSampler(one, fanouts, **given) as sampler:
            for batch, wanted in zip(batches, expected, strict=True):
                assert_same(sampler.sample(batch, seed=seed), wanted)


@pytest.mark.parametrize("given", [{}, {"restart": 0.2}, {"dead_ends": "restart"}])
def test_timed_walks_are_those_of_the_cores(given: dict[str, Any], tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    sources, targets = skewed(VERTICES, EDGES, seed)
    days = np.random.default_rng(seed).integers(0, 1000, EDGES)
    table = np.column_stack([sources, targets, days])
    np.savetxt(tmp_path / "p.csv", table, "%d", ",", header="src,dst,day", comments="")
    convert(tmp_path / "p.csv", tmp_path / "p.h5", edge_properties="day")
    graph = Graph.open(tmp_path / "p.h5")
    limits = np.random.default_rng(seed).integers(0, 1000, graph.vertices)
    given = {"length": 20, "walks_per_vertex": 1, "time": "day", "until": limits, "seed": seed} | given
    expected = walk(graph, **given).to_numpy()
    for room in (None, graph.edges * 6, 0):
        with Session(graph, device="cuda:0", device_edge_memory=room) as session:
            walks = session.walk(**given)
            np.testing.assert_array_equal(walks.to_numpy(), expected, f"seed {seed}, {room}")
            assert (walks.progress.sweeps > 0) == (room is not None)
