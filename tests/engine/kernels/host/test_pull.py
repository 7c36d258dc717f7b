"""A sweep gathers what a pull with every vertex active gathers, to the bit, however rows are cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine.kernels.host import launch
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program.bindings import scalar_values
from penstock.engine.program.program import Program
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.pagerank_forms import WeightedSweeps
from penstock.engine.state.state import Bitmap, Frontier, State
from penstock.storage.format.graph import Graph
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import View
from support.graphs import in_memory, shape

CUTS = {"few edges": {}, "blocks of 64": {"SMALL": 64, "SMALLEST_BLOCK": 64, "LARGEST_BLOCK": 64}}


def views(graph: Graph, weighted: bool, pieces: int) -> list[View]:
    """Every in-edge, in so many views, between which rows are cut."""
    adjacency = graph.into
    assert adjacency is not None
    assert adjacency.arrays is not None
    neighbors, weights = adjacency.arrays[0], adjacency.arrays[1] if weighted else None
    whole = View(0, graph.edges, 0, graph.vertices, neighbors, weights, TaskRecord("resident", "in", (0,)))
    ends = np.linspace(0, graph.edges, pieces + 1).astype(int)
    return [
        replace(
            whole,
            e0=int(e0),
            e1=int(e1),
            neighbors=neighbors[e0:e1],
            weights=None if weights is None else weights[e0:e1],
        )
        for e0, e1 in pairwise(ends)
    ]


def gathered(program: Program, graph: Graph, frontier: Frontier, weighted: bool, pieces: int) -> NDArray[Any]:
    """Messages after one iteration in which every vertex sends."""
    kernels = HostKernels(program, graph.vertex_dtype, weighted, 2)
    state = State(program, kernels.author, 0, graph.vertices, graph.vertex_dtype)
    kernels.use()
    state.accumulate_apart()
    state.active = Bitmap.empty(graph.vertices)  # sweeps have none of their own
    program.start(graph, state.fields)
    values = np.random.default_rng(3).random(graph.vertices)
    for field in state.fields.values():
        field[:] = values
    kernels.mark(state, np.ones(graph.vertices, np.bool_))
    scalars = scalar_values(program, kernels.author, {"iteration": 0, "vertices": graph.vertices, "dangling": 0.0})
    kernels.select(state, graph.out.index(), scalars, np.inf)
    kernels.send(state, replace(frontier, everything=True), graph.out.index(), scalars)
    assert graph.into is not None
    for view in views(graph, weighted, pieces):
        kernels.pull(view, state, frontier, (graph.into.index(), graph.out.index()), scalars)
    return state.target.copy()


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sweep_is_a_pull_of_every_vertex(weighted: bool, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CUTS[cut].items():
        monkeypatch.setattr(launch, name, value)
    graph = in_memory(shape("skewed", weights="uint8" if weighted else None))
    program: Program = PageRank()
    if weighted:
        program = PageRank().like(WeightedSweeps)
    every = Frontier(graph.vertices, graph.edges)
    pulled = gathered(program, graph, every, weighted, 3)
    assert pulled.any()
    assert np.array_equal(gathered(program, graph, replace(every, everything=True), weighted, 3), pulled)
