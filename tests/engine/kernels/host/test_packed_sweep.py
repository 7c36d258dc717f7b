"""A packed sweep gathers what a sweep along the same plain edges gathers, however chunks and rows are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine.kernels.host import launch
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.kernels.interface import STEP_EDGES
from penstock.engine.program.bindings import scalar_values
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.state.state import Frontier, State
from penstock.storage.encoding.packed_store import pack_arrays
from penstock.storage.format.graph import Graph
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import Payloads, View
from support.covering import covering
from support.graphs import in_memory, skewed
from support.oracles import EdgeList

VERTICES = 3000


@pytest.fixture(name="graph", scope="module")
def two_steps_of_edges() -> Graph:
    return in_memory(EdgeList(VERTICES, *skewed(VERTICES, STEP_EDGES + 5000, 3)))


def swept(graph: Graph, view: View, dtype: Any) -> NDArray[Any]:
    """Messages after one sweep along a view of every in-edge."""
    program = PageRank()
    kernels = HostKernels(program, np.dtype(dtype), False, 2)
    kernels.use()
    state = State(program, kernels.author, 0, graph.vertices, np.dtype(dtype))
    state.accumulate_apart()
    program.start(graph, state.fields)
    values = np.random.default_rng(3).random(graph.vertices)
    for field in state.fields.values():
        field[:] = values
    every = Frontier(graph.vertices, graph.edges, everything=True)
    scalars = scalar_values(program, kernels.author, {"iteration": 0, "vertices": graph.vertices, "dangling": 0.0})
    kernels.send(state, every, graph.out.index(), scalars)
    assert graph.into is not None
    kernels.pull(view, state, every, (graph.into.index(), graph.out.index()), scalars)
    return state.target.copy()


@covering(
    "dtype, chunk", [np.uint32, np.uint64], [256, 1000, 5000, STEP_EDGES, STEP_EDGES + 256 * 19, 1 << 20], strength=1
)
def test_a_packed_sweep_is_a_sweep(graph: Graph, chunk: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "SMALL", 64)
    assert graph.into is not None
    assert graph.into.arrays is not None
    ids, record = graph.into.arrays[0].astype(dtype), TaskRecord("filter", "in", (0,))
    right = swept(graph, View(0, graph.edges, 0, graph.vertices, ids, None, record), dtype)
    assert right.any()
    words, starts = pack_arrays(ids, chunk, True, 1)
    packed = View(0, graph.edges, 0, graph.vertices, words, None, record, payloads=Payloads(starts, chunk))
    assert np.allclose(swept(graph, packed, dtype), right, rtol=1e-12, atol=0)
