"""Many iterations in one launch: the records and the answers of one iteration at a time, wherever a launch must end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda import fused
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.program.bindings import bind
from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.session import Session
from support.covering import covering
from support.graphs import in_memory, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import Patient, Wandering, check, program_of

pytestmark = [
    pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    pytest.mark.usefixtures("unfused"),  # the cores that are compared
]

DEVICE: dict[str, Any] = {"device": "emulated", "kernels": "cuda"}


def grid(side: int) -> EdgeList:
    at = np.arange(side * side).reshape(side, side)
    ends = [(at[:, :-1].ravel(), at[:, 1:].ravel()), (at[:-1].ravel(), at[1:].ravel())]
    sources, targets = (np.concatenate(those) for those in zip(*ends, strict=True))
    return weighed(EdgeList(side * side, sources, targets, None, False), "uint8")


def hub() -> EdgeList:
    """A path into a vertex of 60 edges, and out of it: rows of many pieces among rows of one."""
    path = np.stack([np.arange(69), np.arange(1, 70)])
    star = np.stack([np.full(60, 35), np.arange(5, 65)])
    return weighed(EdgeList(70, *np.concatenate([path, star], axis=1), None, False), "uint16")


GRAPHS = {"grid": grid(8), "hub": hub(), "skewed": weighed(EdgeList(80, *skewed(80, 300, 8), None, False), "uint8")}

MOST = {"MOST_ITERATIONS": 3, "MOST_EDGES": 20, "MOST_PIECES": 9}


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the number of iterations of every launch."""
    found: list[int] = []
    stretch = CudaKernels.fused_iterations

    def counted(*arguments: Any) -> Any:
        done = stretch(*arguments)
        found.append(len(done[0]))
        return done

    monkeypatch.setattr(CudaKernels, "fused_iterations", counted)
    return found


def compare(name: str, edges: EdgeList, **options: Any) -> Any:
    """Run it in stretches and by host kernels on the same device: right answers, the same record of every iteration.

    Asynchronous programs see updates of the same iteration or do not, so their frontiers may differ.
    """
    graph = in_memory(edges)
    results = []
    for kernels in ("host", "cuda"):
        with Session(graph, **options, **(DEVICE | {"kernels": kernels})) as session:
            results.append(session.run(program_of(name, edges)))
        check(name, edges, results[-1].fields)
    host, ours = ([(r.number, r.direction, r.vertices, r.edges) for r in result.records] for result in results)
    assert host == ours or name == "sssp"  # a launch keeps the width of the buckets with which it begins
    assert all(len(r.tasks) == 1 and r.tasks[0].edges == r.edges for r in results[1].records)
    return results[1]


@covering("kind, name, mode", GRAPHS, ("bfs", "sssp"), ("auto", "sync"))
def test_one_launch_does_it_all(kind: str, name: str, mode: str, lengths: list[int]) -> None:
    """Of SSSP, changes of bucket too."""
    result = compare(name, GRAPHS[kind], mode=mode, direction="push")
    assert lengths == [result.iterations]


def test_it_ends_before_an_iteration_that_pulls(lengths: list[int]) -> None:
    """The grid is small, so that the rule wants to pull as soon as the frontier has more than 1/15 of the edges."""
    result = compare("bfs", GRAPHS["grid"])
    pulls = sum(r.direction == "pull" for r in result.records)
    assert pulls > 0
    assert sum(lengths) + pulls == result.iterations


@covering("name, mode, most", ("bfs", "sssp"), ("auto", "sync"), MOST, where=lambda n, m, _: (n, m) != ("bfs", "sync"))
def test_the_loop_takes_over_anywhere(
    name: str, mode: str, most: str, lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, most, MOST[most])
    result = compare(name, GRAPHS["hub"], direction="push", mode=mode)
    assert 0 < max(lengths) < result.iterations


def test_large_buckets_are_left_to_the_loop(lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets begin too large for a launch, so that one ends with its bucket, and the loop moves the limit."""
    edges = grid(8)
    monkeypatch.setattr(fused, "MOST_EDGES", 12)
    program = SSSP(0, delta=40)
    buckets: list[float] = []
    stretch = CudaKernels.fused_iterations

    def noted(*arguments: Any) -> Any:
        buckets.append(arguments[6].bucket)
        return stretch(*arguments)

    monkeypatch.setattr(CudaKernels, "fused_iterations", noted)
    with Session(in_memory(edges), mode="sync", direction="push", **DEVICE) as session:
        result = session.run(program)
    with Session(in_memory(edges), mode="sync", direction="push", device="cpu") as session:
        host = session.run(SSSP(0, delta=40))
    assert np.array_equal(result.fields["distance"], host.fields["distance"])
    assert [(r.vertices, r.edges) for r in result.records] == [(r.vertices, r.edges) for r in host.records]
    assert {0.0, 40} == set(buckets)
    assert max(lengths) < result.iterations


@pytest.mark.parametrize("limit", [1, 4])
def test_the_iteration_limit_holds(limit: int, lengths: list[int]) -> None:
    edges = shape("path")
    program = BFS(0)
    program.max_iter = limit
    with Session(in_memory(edges), **DEVICE) as session:
        result = session.run(program)
    assert (result.iterations, result.converged, lengths) == (limit, False, [limit])
    assert result.fields["level"][: limit + 2].tolist() == [*range(limit + 1), 2**32 - 1]


class Counted(SSSP):
    """SSSP whose edges read the iteration's number, which must go on inside a launch."""

    self_combining = False
    max_iter = 12

    def edge(distance, iteration):  # type: ignore[no-untyped-def]
        return distance + iteration

    def vertex(distance, incoming):  # type: ignore[no-untyped-def]
        return min(distance, incoming)


class Sending(Counted):
    """The same, sent by the vertex."""

    def send(distance, degree, iteration):  # type: ignore[no-untyped-def]
        return distance + iteration if degree > 0 else distance

    def edge(sent):  # type: ignore[no-untyped-def]
        return sent


@pytest.mark.parametrize("kind", [Counted, Sending])
def test_the_iteration_is_counted_inside(kind: type[SSSP], lengths: list[int]) -> None:
    graph = in_memory(GRAPHS["grid"])
    found = []
    for device in ({"kernels": "reference"}, DEVICE):
        with Session(graph, **device) as session:
            found.append(session.run(kind(27)).fields["distance"])
    assert np.array_equal(*found)
    assert sorted(set(found[0].tolist())) == [k * (k + 1) // 2 for k in range(8)]
    assert len(lengths) == 1


@pytest.mark.parametrize(
    ("program", "fitting"),
    [(BFS(0), True), (SSSP(0), True), (PageRank(), False), (WCC(), False), (Patient(0), False), (Wandering(0), False)],
)
def test_what_fits(program: Program, fitting: bool) -> None:
    author = bind(program, np.dtype(np.uint32), seam.compile_author, plain=False)
    assert fused.fits(program, author) is fitting


def test_what_does_not_fit_runs_one_at_a_time(lengths: list[int]) -> None:
    edges = shape("path")
    with Session(in_memory(edges), direction="push", **DEVICE) as session:
        result = session.run(Patient(0))
    assert (result.iterations, lengths) == (5, [])
