"""Programs give on a GPU the answers on a list that they give on rows, with all edges there and with some."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.engine import run
from penstock.engine.kernels.cuda.edge_blocks import CudaBlockKernels
from penstock.storage.format.graph import Graph
from support.graphs import skewed, weighed
from support.oracles import EdgeList
from support.program_cases import CASES, ROWS, check, program_of, tangle

pytestmark = pytest.mark.gpu


def listed(edges: EdgeList) -> Graph:
    return Graph.from_list(
        edges.sources, edges.targets, edges.weights, vertices=edges.vertices, directed=edges.directed
    )


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", [name for name in CASES if name not in ROWS])
def test_every_program(name: str, directed: bool) -> None:
    edges = tangle(directed=directed)
    make, verify = CASES[name]
    verify(edges, run(make(), listed(edges), device="cuda:0").fields)


@pytest.mark.parametrize("keeps_sums", [True, False])
@pytest.mark.parametrize("memory", [None, 3 << 20])
@pytest.mark.parametrize("name", ["bfs", "sssp", "sweeps", "wcc"])
def test_many_blocks(name: str, memory: int | None, keeps_sums: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough edges for sums that blocks of threads keep; fewer on the device than there are."""
    monkeypatch.setattr(CudaBlockKernels, "keeps_sums", keeps_sums)
    edges = weighed(EdgeList(60_000, *skewed(60_000, 1 << 24 if name == "sweeps" else 1 << 20, 5), None, True), "uint8")
    options: dict[str, Any] = {} if memory is None else {"device_edge_memory": memory, "partition_bytes": 1 << 20}
    check(name, edges, run(program_of(name, edges), listed(edges), device="cuda:0", **options).fields)
