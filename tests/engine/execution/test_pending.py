"""What waits in the active vertices is added up per partition, and decides which partition goes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine.program.program import Field, Program, Start
from penstock.engine.session import Session
from support.graphs import on_disk, skewed
from support.oracles import EdgeList


class Waiting(Program):
    """Everyone waits with the square root of its number."""

    value = Field(np.float64)
    combine = "sum"
    max_iter = 1

    def start(self, graph: Any, state: Any) -> Start:
        state["value"][:] = np.sqrt(np.arange(graph.vertices))
        return Start(active=np.arange(0, graph.vertices, 3))

    def edge(value):  # type: ignore[no-untyped-def]
        return value

    def vertex(value, incoming):  # type: ignore[no-untyped-def]
        return value + incoming

    def pending(value, degree):  # type: ignore[no-untyped-def]
        return value * degree


@pytest.mark.parametrize("kernels", ["host", "reference", "cuda"])
@pytest.mark.parametrize("priority", [True, False])
def test_the_largest_pending_value_goes_first(tmp_path: Any, kernels: Any, priority: bool) -> None:
    edges = EdgeList(90, *skewed(90, 700, 4), None, True)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    options = {
        "device": "emulated",
        "route": "filter",
        "device_edge_memory": 300,
        "partition_bytes": 64,
        "tuning": {"combine": 1, "priority": priority},
    }
    with Session(graph, direction="push", kernels=kernels, **options) as session:
        session.run(Waiting())  # it reads the graph, and partitions come as the disk gives them
        record = session.run(Waiting()).records[0]
        table = session._equipment.pipeline.directory("out").table
    starts = graph.out.index().starts(0, graph.vertices + 1)
    expected = np.zeros(len(table))
    for v in range(0, graph.vertices, 3):
        degree = starts[v + 1] - starts[v]
        if degree:
            expected[starts[v] // table.partition_edges] += np.sqrt(v) * degree
    order = [task.partitions[0] for task in record.tasks]
    assert sorted(order) == sorted(set(order))
    if priority:
        found = expected[order]
        assert np.all(found[:-1] >= found[1:] - 1e-9)
    else:
        assert order == sorted(order)
