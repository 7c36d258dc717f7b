"""Neighborhoods sampled on a GPU, under numba's simulator: the same as on the cores, wherever the edges are."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Graph, NeighborSampler, sample_neighbors
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.queries import neighbors
from penstock.engine.resources.config import Config
from penstock.storage.base.errors import BudgetError, InputError, RunError
from support.graphs import in_memory, on_disk, shape, weighed
from support.samples import assert_same

pytestmark = [
    pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),  # random numbers are hashes
]


def simulated(graph: Graph, fanouts: list[int], **options: Any) -> NeighborSampler:
    """A sampler on a simulated GPU."""
    of = Config.of
    with mock.patch.object(neighbors.Config, "of", lambda **given: of(**given, kernels="cuda")):
        return NeighborSampler(graph, fanouts, device="emulated", **options)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_samples_are_those_of_the_cores(tmp_path: Path, direction: str, replace: bool) -> None:
    """All edges on the device; a part of them; none."""
    edges = shape("skewed")
    graph, stored = in_memory(edges), on_disk(edges, tmp_path / "g.h5", chunk_edges=256)
    options: dict[str, Any] = {"direction": direction, "replace": replace}
    fanouts = [5, 2 if replace else -1, 3]
    batches = [[3, 17, 3], np.arange(0, 200, 7), [5]]
    expected = [sample_neighbors(graph, batch, fanouts, seed=9, **options) for batch in batches]
    for one, room in ((graph, None), (stored, None), (graph, 4 * 300), (stored, 4 * 300), (stored, 0)):
        with simulated(one, fanouts, device_edge_memory=room, **options) as sampler:
            for batch, wanted in zip(batches, expected, strict=True):
                assert_same(sampler.sample(batch, seed=9), wanted)
            assert sampler.sample_together([]) == []
            there = sampler._there
            assert there is not None
            assert len(there._rest) == (0 if room is None else graph.edges - room // 4)


def test_chunks_go_to_the_device_through_the_slab(tmp_path: Path) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=256)
    made = neighbors.ChunkedEdges

    def chunked(*given: Any, **options: Any) -> Any:
        edges = made(*given, **options)
        edges.kept, edges._slab, edges._reader = None, np.empty(3 * 256, np.uint32), edges._opened(1)
        return edges

    with mock.patch.object(neighbors, "ChunkedEdges", chunked):
        with simulated(graph, [4, -1]) as sampler:
            assert_same(sampler.sample([3, 17], seed=1), sample_neighbors(graph, [3, 17], [4, -1], seed=1))
        with pytest.raises(BudgetError, match=r"host_memory does not hold them either.*or a larger host_memory"):
            simulated(graph, [4], device_edge_memory=1200)


def test_a_batch_that_does_not_fit_changes_nothing() -> None:
    graph = in_memory(shape("skewed"))
    with simulated(graph, [-1, 3], device_memory=45_000) as sampler:
        with pytest.raises(RunError, match="raise device_memory"):
            sampler.sample(np.arange(200), seed=1)
        assert_same(sampler.sample([3, 17], seed=1), sample_neighbors(graph, [3, 17], [-1, 3], seed=1))


def test_refusals() -> None:
    graph = in_memory(weighed(shape("skewed"), "uint8"))
    with pytest.raises(InputError, match="a GPU draws every neighbor alike"):
        simulated(graph, [3], weight=True)
    with pytest.raises(InputError, match="give cpu or cuda:0"):
        NeighborSampler(graph, [3], device="emulated")
    with pytest.raises(InputError, match=r"device_memory is 4096.*leave it out"):
        NeighborSampler(graph, [3], device_memory=4096)
    with pytest.raises(BudgetError, match="row index and places of vertices take"):
        simulated(graph, [3], device_memory=100)
    sampler = simulated(graph, [3])
    sampler._process += 1  # as in a fork
    with pytest.raises(InputError, match="multiprocessing_context='spawn'"):
        sampler.sample([3])
