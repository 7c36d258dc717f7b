"""Sweep after sweep: the next one's edges are on their way before the last kernels of this one, and nothing is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.planning.host_budget import HostBudget
from penstock.transfer.prefetch_queue import PrefetchQueue
from penstock.transfer.staging.link_reader import LinkReader
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList
from support.small_host import dividing

EDGES = EdgeList(3000, *skewed(3000, 60_000, 5), None, False)
LINKED: dict[str, Any] = {"device": "emulated", "device_edge_memory": 100_000, "partition_bytes": 1 << 13}
PARTITION = 2048


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return on_disk(EDGES, tmp_path / "g.h5", chunk_edges=512)


@pytest.fixture(params=["linked", "fed", "cores"])
def session(request: pytest.FixtureRequest, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Behind a link with all edges in host memory, with some of them there, and on the cores."""
    if request.param != "linked":
        dividing(monkeypatch, lambda *_: HostBudget(PARTITION, 3, 6, 2, False, 5))
    with Session(
        graph, threads=1, **({"device": "cpu"} if request.param == "cores" else {**LINKED, "route": "filter"})
    ) as opened:
        yield opened


def at_rest(pipeline: Pipeline) -> bool:
    stagings = [pipeline.staging]
    if isinstance(pipeline.source, LinkReader) and pipeline.source.host is not None:
        pipeline.source.settle()  # what the host has lent it takes back when it is next asked for room
        stagings.append(pipeline.source.host)
    return all(pool.free == pool.count for staging in stagings for pool in (staging.slabs, staging.places))


def test_the_next_sweep_is_under_way_before_this_one_ends(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    apply, start, next_ready = HostKernels.apply, Pipeline.start, PrefetchQueue.next_ready

    def told(name: str, function: Any) -> Any:
        def called(*arguments: Any) -> Any:
            happened.append(name)
            return function(*arguments)

        return called

    session.run(PageRank(tol=0, max_iter=1))
    monkeypatch.setattr(HostKernels, "apply", told("apply", apply))
    monkeypatch.setattr(Pipeline, "start", told("start", start))
    monkeypatch.setattr(PrefetchQueue, "next_ready", told("view", next_ready))
    session.run(PageRank(tol=0, max_iter=3))
    order = [name for at, name in enumerate(happened) if at == 0 or happened[at - 1] != name]
    ends = ["start", "apply"] if session.device.reads_host else ["apply", "start"]
    assert order == ["view", *ends, "view", *ends, "view", "apply"]


@pytest.mark.parametrize("route", ["auto", "filter", "zero-copy", "compaction"])
def test_every_route_gives_the_ranks(graph: Graph, route: str) -> None:
    with Session(graph, route=route, **LINKED) as session, Session(in_memory(EDGES), device="cpu") as host:
        for program in (PageRank(tol=0, max_iter=7), PageRank(tol=1e-9)):
            found, wanted = session.run(program), host.run(program)
            assert found.iterations == wanted.iterations
            np.testing.assert_allclose(found.fields["rank"], wanted.fields["rank"], rtol=1e-9)


def test_a_run_that_is_over_has_given_everything_back(session: Session) -> None:
    """One ends by its tolerance, in the middle of what it has begun; one is closed by who looks on."""
    wanted = Session(in_memory(EDGES), device="cpu").run(PageRank(tol=1e-4)).fields["rank"]
    assert session.run(PageRank(tol=1e-4)).converged
    assert session._equipment is not None
    pipeline = session._equipment.pipeline
    assert at_rest(pipeline)
    steps = session.steps(PageRank(tol=0, max_iter=50))
    for _ in range(2):
        next(steps)
    assert not at_rest(pipeline)
    steps.close()
    assert at_rest(pipeline)
    assert session.run(BFS(3)).fields["level"].max() > 0
    np.testing.assert_allclose(session.run(PageRank(tol=1e-4)).fields["rank"], wanted, rtol=1e-9)


def test_what_is_resident_needs_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pipeline, "start", None)
    with Session(in_memory(EDGES), device="cpu") as session:
        session.run(PageRank(tol=0, max_iter=3))


def test_who_looks_on_may_fail_and_begin_anew(session: Session) -> None:
    """The failed run's frames live as long as its error; what it had started goes to the next one."""
    wanted = Session(in_memory(EDGES), device="cpu").run(PageRank(tol=1e-4)).fields["rank"]
    try:
        for number, _ in enumerate(session.steps(PageRank(tol=0, max_iter=50))):
            if number == 2:
                raise ValueError("looked too closely")
    except ValueError:
        found = session.run(PageRank(tol=1e-4))
    np.testing.assert_allclose(found.fields["rank"], wanted, rtol=1e-9)
    assert session._equipment is not None
    assert at_rest(session._equipment.pipeline)


def test_a_run_in_between_is_refused_and_disturbs_nothing(session: Session) -> None:
    wanted = Session(in_memory(EDGES), device="cpu").run(PageRank(tol=0, max_iter=6)).fields["rank"]
    steps = session.steps(PageRank(tol=0, max_iter=6))
    next(steps)
    with pytest.raises(InputError, match="in the middle of a run"):
        session.run(PageRank(tol=0, max_iter=6))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            np.testing.assert_allclose(end.value.fields["rank"], wanted, rtol=1e-9)
            break
    np.testing.assert_allclose(session.run(PageRank(tol=0, max_iter=6)).fields["rank"], wanted, rtol=1e-9)


def test_a_session_may_be_closed_in_between(session: Session) -> None:
    steps = session.steps(PageRank(tol=0, max_iter=50))
    next(steps)
    assert session._equipment is not None
    pipeline = session._equipment.pipeline
    session.close()
    assert at_rest(pipeline)
    steps.close()
