"""Rows of unsettled vertices relaxed both ways: on all kernels the distances of the oracle, and fewer edges read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Session
from penstock.engine.execution import stream_walk
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.programs.sssp import SSSP
from penstock.engine.state.records import IterationRecord
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList, check_sssp

SIMULATOR = pytest.param(
    "cuda", marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu/test_device.py")
)
KERNELS = ["reference", "host", SIMULATOR]


def pulled(records: list[IterationRecord]) -> list[int]:
    """The numbers of the iterations that read rows of unsettled vertices."""
    return [record.number for record in records if record.direction == "pull"]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every iteration that may reads them, and none is fused."""
    monkeypatch.setattr(CudaKernels, "can_fuse", lambda self, frontier: False)
    monkeypatch.setattr(stream_walk, "MANY", 1 << 40)
    monkeypatch.setattr(stream_walk, "FIRST", 0)
    monkeypatch.setattr(stream_walk, "AGAIN", 0)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("weights", ["uint8", "float32"])
@pytest.mark.parametrize("delta", [None, 40.0])
def test_distances(kernels: str, weights: str, delta: float | None, tmp_path: Path) -> None:
    """A hub whose row is longer than a tile and than a partition, rows cut by both, vertices that are not reached."""
    hub = np.stack([np.full(60, 3), np.arange(60)])
    edges = weighed(EdgeList(90, *np.concatenate([skewed(80, 200, 5), hub], axis=1), None, False), weights)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    options: dict[str, Any] = {"device_edge_memory": 1200, "partition_bytes": 128, "kernels": kernels}
    with Session(graph, device="emulated", **options) as session:
        for source in (3, 17):
            result = session.run(SSSP(source, delta))
            check_sssp(edges, source, result.fields["distance"])
            assert pulled(result.records)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", ["loops", "parallel", "cliques", "sparse"])
def test_shapes(kernels: str, kind: str, tmp_path: Path) -> None:
    edges = shape(kind, directed=False, weights="uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    source = int(edges.sources[0])
    with Session(graph, device="emulated", kernels=kernels, device_edge_memory=1200, partition_bytes=128) as session:
        check_sssp(edges, source, session.run(SSSP(source)).fields["distance"])


@pytest.mark.parametrize(
    ("directed", "options"),
    [(True, {}), (False, {"direction": "push"}), (False, {"mode": "sync"}), (False, {"route": "compaction"})],
    ids=["directed", "push only", "synchronous", "route"],
)
@pytest.mark.usefixtures("always")
def test_where_it_may_not(directed: bool, options: dict[str, Any], tmp_path: Path) -> None:
    edges = weighed(EdgeList(80, *skewed(80, 300, 8), None, directed), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    with Session(graph, device="emulated", device_edge_memory=1200, partition_bytes=128, **options) as session:
        result = session.run(SSSP(3))
    check_sssp(edges, 3, result.fields["distance"])
    assert not pulled(result.records)


def test_edges_read_on_a_skewed_graph() -> None:
    """Once, where the frontier is widest; in all fewer edges are read than there are."""
    edges = weighed(EdgeList(3000, *skewed(3000, 60_000, 5), None, False), "uint8")
    graph = in_memory(edges)
    with Session(graph, device="emulated", device_edge_memory=100_000) as session:
        result = session.run(SSSP(3))
    check_sssp(edges, 3, result.fields["distance"])
    assert len(pulled(result.records)) == 1
    assert sum(task.edges for record in result.records for task in record.tasks) < graph.edges
