"""A run that was cut off on a GPU goes on there or on the cores, and vice versa."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Session, run
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.triangles import Triangles
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import program_of

pytestmark = pytest.mark.gpu

EDGES = weighed(EdgeList(4000, *skewed(4000, 60_000, 3), None, True), "uint8")
GPU: dict[str, Any] = {"device": "cuda:0"}
SMALL: dict[str, Any] = {"device": "cuda:0", "device_edge_memory": 200_000, "partition_bytes": 16_384}
CORES: dict[str, Any] = {"device": "cpu"}
OWN = {"cdlp": CDLP, "scc": SCC, "triangles": Triangles}


def make(name: str) -> Any:
    return OWN[name]() if name in OWN else program_of(name, EDGES)


def cut_off(name: str, graph: Graph, folder: Path, stop: int, way: dict[str, Any]) -> None:
    with Session(graph, **way) as session:
        steps = session.steps(make(name), Checkpoints(folder, 1))
        for _, _ in zip(range(stop), steps, strict=False):
            pass
        steps.close()


@pytest.mark.parametrize(("first", "second"), [(GPU, GPU), (GPU, CORES), (CORES, GPU), (SMALL, GPU), (GPU, SMALL)])
@pytest.mark.parametrize("name", ["bfs", "sssp", "pagerank", "wcc", *OWN])
def test_cut_off_here_and_resumed_there(
    name: str, first: dict[str, Any], second: dict[str, Any], tmp_path: Path
) -> None:
    graph = on_disk(EDGES, tmp_path / "graph.h5", chunk_edges=1024)
    wanted = run(make(name), graph, **CORES)
    for stop in (1, 3):
        cut_off(name, graph, tmp_path / f"kept{stop}", stop, first)
        found = run(make(name), graph, checkpoint=tmp_path / f"kept{stop}", resume=True, **second)
        for field, values in wanted.fields.items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(found.fields[field], values, rtol=1e-7)
            else:
                np.testing.assert_array_equal(found.fields[field], values)
