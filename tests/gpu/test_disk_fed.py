"""A GPU that is fed from disk: host and device share the edges between them, whatever the route."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.programs.sssp import SSSP
from penstock.engine.resources import memory_plan
from penstock.engine.session import Session
from penstock.transfer.planning.host_budget import HostBudget
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList, check_sssp

pytestmark = pytest.mark.gpu

PARTITION = 8192


@pytest.mark.parametrize("route", ["auto", "filter", "zero-copy", "compaction"])
def test_the_answer_is_the_same(route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host keeps an eighth of the partitions, the device (by route auto) some others."""

    def divide(config: Any, needs: Any, graph: Graph, partition_bytes: int) -> HostBudget:
        return HostBudget(PARTITION, 3, 6, 2, False, 5)

    monkeypatch.setattr(memory_plan, "divide_host_memory", divide)
    edges = weighed(EdgeList(20_000, *skewed(20_000, 400_000, 5), None, True), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1024)
    source = int(np.argmax(np.diff(edges.rows[0])))
    options: dict[str, Any] = {"partition_bytes": 4 * PARTITION, "device_edge_memory": 12 * 5 * PARTITION}
    with Session(graph, device="cuda:0", route=route, direction="push", **options) as session:
        for _ in range(2):
            check_sssp(edges, source, session.run(SSSP(source)).fields["distance"])
