"""Random walks on a GPU, under numba's simulator: the same as on the cores, whatever the device keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine import Graph, Session, from_edges, walk
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.programs.bfs import BFS
from penstock.engine.queries.walk_memory import WalkMemory
from penstock.engine.queries.walks import Walks
from penstock.storage.base.errors import BudgetError, InputError
from penstock.transfer.values.rates import Rates
from support.graphs import in_memory, on_disk, shape
from support.oracles import EdgeList

pytestmark = [
    pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),  # random numbers are hashes
]

DEVICE: dict[str, Any] = {"device": "emulated", "kernels": "cuda", "threads": 2}
KINDS: list[dict[str, Any]] = [
    {"weight": False, "restart": 0.2},
    {"dead_ends": "restart"},
    {"p": 0.3, "q": 3.0},
    {"weight": False, "p": 0.01, "q": 0.2},
]
COPIES = Rates()
"""Of a link whose copies take no time, so that nothing is read in place."""
GIVEN: dict[str, Any] = {"length": 5, "walks_per_vertex": 1, "seed": 5}


def hub(*, directed: bool) -> EdgeList:
    """60 vertices, one with a long row, some without out-edges, parallel edges and weights of 0."""
    random = np.random.default_rng(7)
    ends = random.integers(0, 60, (2, 240))
    ends[0, :40], ends[0, ends[0] > 50] = 9, 3
    return EdgeList(60, ends[0], ends[1], random.integers(0, 5, 240).astype(np.uint8), directed)


def made(graph: Graph, options: dict[str, Any], **budget: Any) -> tuple[NDArray[Any], Walks]:
    """Walks on the device, and what made them."""
    with Session(graph, **DEVICE, **budget) as session:
        walks = session.walk(**GIVEN, **options)
        return walks.to_numpy(), walks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directed", [True, False])
def test_walks_are_those_of_the_cores(kind: dict[str, Any], directed: bool, tmp_path: Path) -> None:
    """All rows on the device; a part of them, of which partitions are copied; none, which are read in place."""
    edges = hub(directed=directed)
    graph, stored = in_memory(edges), on_disk(edges, tmp_path / "g.h5", both=False, chunk_edges=16)
    expected = walk(graph, **GIVEN, **kind).to_numpy()
    found, walks = made(stored, kind)
    np.testing.assert_array_equal(found, expected)
    assert (walks.progress.sweeps, walks.progress.steps) == (0, (expected[:, 1:] >= 0).sum())
    longest = int(graph.out.index().degrees(0, graph.vertices).max()) + 32
    slabs = 2 * longest * (4 if not kind.get("weight", True) else 12)
    with mock.patch("penstock.engine.queries.row_windows.IN_MEMORY_CHUNK", 16):
        for one in (graph, stored):
            found, walks = made(one, kind, device_edge_memory=slabs * 5 // 4, rates=COPIES)
            np.testing.assert_array_equal(found, expected)
            assert walks.progress.sweeps > 1
            assert walks.progress.bytes_copied > 0
        found, walks = made(graph, kind, device_edge_memory=0)
        np.testing.assert_array_equal(found, expected)
        assert (walks.progress.bytes_copied, walks.progress.in_place) == (0, walks.progress.sweeps)


def test_rows_from_disk_in_small_batches(tmp_path: Path) -> None:
    """Neither the device nor the host keeps all rows; walkers are several batches, and so are those of all rows."""
    edges = hub(directed=False)
    stored = on_disk(edges, tmp_path / "g.h5", both=False, chunk_edges=16)
    options = {"p": 0.5, "q": 2.0, "sources": list(range(0, 60, 2)), "dead_ends": "restart"}
    expected = walk(stored, **GIVEN, **options).to_numpy()
    memory = WalkMemory(96, 160, 160, 11, 4, reads=1, device_edges=60, device_slab_edges=160)
    with mock.patch("penstock.engine.queries.walks.divide_device_walks", return_value=memory):
        found, walks = made(stored, options, rates=COPIES)
    np.testing.assert_array_equal(found, expected)
    assert walks.progress.bytes_read > 60 * 12
    with (
        mock.patch("penstock.engine.queries.walk_memory.MANY", 2),
        mock.patch("penstock.engine.queries.walk_memory.WHOLE_BATCH_BYTES", 500),
    ):
        found, walks = made(stored, options)
    np.testing.assert_array_equal(found, expected)


def test_a_session_walks_between_runs() -> None:
    graph = in_memory(shape("skewed", directed=False))
    alone = walk(graph, **GIVEN).to_numpy()
    with Session(graph, **DEVICE) as session:
        first = session.run(BFS(source=0)).fields["level"]
        walks = session.walk(**GIVEN)
        np.testing.assert_array_equal(walks.to_numpy(), alone)
        np.testing.assert_array_equal(session.run(BFS(source=0)).fields["level"], first)
        np.testing.assert_array_equal(walks.to_numpy(), alone)
        blocks = walks.blocks()
        next(blocks)
        with pytest.raises(InputError, match="in the middle of a run"):
            session.run(BFS(source=0))
        blocks.close()
    with Session(graph, device="cpu") as session:
        np.testing.assert_array_equal(session.walk(**GIVEN).to_numpy(), alone)
    with pytest.raises(InputError, match="closed"):
        session.walk()


def test_refusals() -> None:
    graph = from_edges([(0, 1), (1, 5), (5, 0)])
    with pytest.raises(InputError, match="give cpu or cuda:0"):
        walk(graph, device="emulated")
    with pytest.raises(InputError, match=r"device_memory is 4096.*leave it out"):
        walk(graph, device_memory=4096)
    with pytest.raises(InputError, match="cuda:7"):
        walk(graph, device="cuda:7")
    with Session(graph, **DEVICE, device_memory=40_000) as session:
        with pytest.raises(InputError, match="unknown option 'pace'"):
            session.walk(pace=3)
        assert session.walk(length=3).count == 30
        with pytest.raises(BudgetError, match=r'device_memory="\d+MiB" or more|--device-memory \d+MiB'):
            session.walk(length=100_000)
