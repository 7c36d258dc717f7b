"""Sums of the first vertices, kept apart by parts of the edges, are those of a push without: values, marks, choices."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.kernels import hot_vertices
from penstock.engine.kernels.host import push
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.state.state import Frontier, State
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import View
from support.graphs import in_memory, shape, skewed
from support.oracles import EdgeList
from support.program_cases import Counts, check, program_of


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The parts of each push that keeps sums: any push that may, with 32 sums of 8 bytes."""
    monkeypatch.setattr(hot_vertices, "KEPT_BYTES", 256)
    monkeypatch.setattr(hot_vertices, "EDGES_EACH", 0)
    found: list[int] = []
    call = HostKernels._call

    def noted(kernels: HostKernels, kernel: Any, small: bool, steps: int, *arguments: Any) -> None:
        if kernel is push.make_push_rows_replicas:
            found.append(steps)
        call(kernels, kernel, small, steps, *arguments)

    monkeypatch.setattr(HostKernels, "_call", noted)
    return found


def pushed(cuts: tuple[int, ...], *, hot: bool, whole: bool) -> tuple[Any, Any]:
    """Messages and marks after pushes over pieces of the edges."""
    graph, program = in_memory(shape("skewed", weights="uint8")), Counts()
    kernels = HostKernels(program, graph.vertex_dtype, True, 2)
    kernels.use()
    kernels.hot_first = hot
    state = State(program, kernels.author, 0, graph.vertices, graph.vertex_dtype)
    state.accumulate_apart()
    words = np.random.default_rng(3).integers(0, 1 << 63, len(state.active.words), np.uint64)
    words[1] = 0
    state.active.words[:] = words
    index, (neighbors, weights) = graph.out.index(), graph.out.arrays
    for e0, e1 in itertools.pairwise([0, *cuts, graph.edges]):
        rows = index.row_of(e0), index.row_of(e1 - 1) + 1
        view = View(e0, e1, *rows, neighbors[e0:e1], weights[e0:e1], TaskRecord("resident", "out", ()))
        kernels.push(view, state, Frontier(graph.vertices, graph.edges, everything=whole), index, (0,) * 4)
    return state.incoming, state.touched.words


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("cuts", [(), (7, 200, 1100)])
def test_messages_and_marks(cuts: tuple[int, ...], whole: bool, kept: list[int]) -> None:
    """A sum that is 0 is marked too."""
    messages, marks = pushed(cuts, hot=False, whole=whole)
    assert not kept
    assert len(set(messages.tolist())) > 10
    found, found_marks = pushed(cuts, hot=True, whole=whole)
    assert len(kept) == len(cuts) + 1
    assert np.array_equal(found, messages)
    assert np.array_equal(found_marks, marks)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_pagerank(mode: str, kept: list[int]) -> None:
    """Only on a graph in an order, with several threads."""
    name = "sweeps" if mode == "sync" else "pagerank"
    edges = EdgeList(90, *skewed(90, 700, 4))
    graph = in_memory(edges, both=False)
    way: dict[str, Any] = {"mode": mode} if mode == "async" else {}
    ordered = replace(graph, provenance={"options": {"order": "degree"}})
    for given, threads in ((graph, 2), (ordered, 1), (ordered, 2)):
        assert not kept
        check(name, edges, run(program_of(name, edges), given, direction="push", threads=threads, **way).fields)
    assert kept


def test_few_edges_or_few_that_go_there(kept: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    edges = EdgeList(90, *skewed(90, 700, 4))
    ordered = replace(in_memory(edges, both=False), provenance={"options": {"order": "hubs"}})
    for name, value in (("LEAST_SHARE", 1.1), ("EDGES_EACH", 32)):
        with monkeypatch.context() as patch:
            patch.setattr(hot_vertices, name, value)
            run(program_of("sweeps", edges), ordered, direction="push", threads=2)
    assert not kept
