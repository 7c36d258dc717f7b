"""Every program gives its answer where ranks compute behind links, on simulated GPUs, or some so and some on cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Result
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.kernels.cuda import driver
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.ranks.rank_devices import RankDevices
from penstock.engine.ranks.rank_exchange import RankExchange
from penstock.engine.session import Session
from penstock.transfer.devices.device import Device
from penstock.transfer.devices.emulated import EmulatedDevice
from support import thread_ranks
from support.covering import covering
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import CASES, PROGRAMS, check, program_of, tangle
from support.thread_ranks import ThreadRanks, on_ranks, small, small_graph

LINKED: dict[str, Any] = {"device": "emulated", "kernels": "reference"}
SIMULATED: dict[str, Any] = {"device": "emulated", "kernels": "cuda"}
ON_CORES: dict[str, Any] = {"device": "cpu", "kernels": "reference"}
simulator = pytest.mark.skipif(not driver.SIMULATED, reason="there is a device: tests/gpu")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give simulated kernels their time."""
    monkeypatch.setattr(thread_ranks, "PATIENCE_SECONDS", 60)


def _run(make: Any, graph: Graph, *each: dict[str, Any], **options: Any) -> list[Result]:
    def work(ranks: ThreadRanks) -> Result:
        with Session(graph, ranks=ranks, threads=1, **each[ranks.rank], **options) as session:
            return session.run(make())

    return on_ranks(len(each), work)


@covering("name", CASES, strength=1, rare=[*CASES][::2])
def test_every_program_on_two_ranks_behind_links(name: str) -> None:
    """By default every second one; test_rebalance.py has the others, test_ranks_programs.py all."""
    make, right = CASES[name]
    for result in _run(make, small_graph(True), LINKED, LINKED):
        right(small(True), result.fields)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_some_programs_on_one_and_on_three(name: str, size: int) -> None:
    edges = small(False)
    for result in _run(lambda: program_of(name, edges), small_graph(False), *[LINKED] * size):
        check(name, edges, result.fields)


@pytest.mark.parametrize("route", ["filter", "compaction", "zero-copy"])
@pytest.mark.parametrize(("name", "direction"), [("sweeps", "pull"), ("pagerank", "push"), ("bfs", "auto")])
def test_edges_that_come_over_links_and_from_disk(tmp_path: Path, route: str, name: str, direction: str) -> None:
    edges = shape("skewed")
    graph = on_disk(edges, tmp_path / "skewed.h5", chunk_edges=32)
    options = {"route": route, "direction": direction, "partition_bytes": 300, "device_edge_memory": 3000}
    for result in _run(lambda: program_of(name, edges), graph, LINKED, LINKED, **options):
        check(name, edges, result.fields)


@simulator
@pytest.mark.parametrize("name", ["bfs", "pagerank", "cdlp", "triangles", "coreness", "betweenness"])
def test_programs_on_two_simulated_gpus(name: str) -> None:
    make, right = CASES[name]
    edges = tangle(directed=True, core=19, tail=2, count=35)
    for result in _run(make, in_memory(edges), SIMULATED, SIMULATED):
        right(edges, result.fields)


@simulator
@pytest.mark.parametrize("name", ["wcc", "sssp", "pagerank"])
def test_cores_beside_gpus(name: str) -> None:
    """What is said of links and of edges kept behind them is not said of the cores."""
    edges, options = small(True), {"device_edge_memory": 1 << 12}
    for result in _run(lambda: program_of(name, edges), small_graph(True), ON_CORES, SIMULATED, LINKED, **options):
        check(name, edges, result.fields)


@simulator
@pytest.mark.parametrize("seed", [1, 5])
def test_rows_of_unsettled_vertices_are_walked_by_their_owners(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = weighed(EdgeList(20, *skewed(20, 100, seed), None, False), "uint8")
    settled: list[int] = []
    share = RankExchange.share_settled
    monkeypatch.setattr(
        RankExchange, "share_settled", lambda self, bounds: (settled.append(self.ranks.rank), share(self, bounds))
    )
    for result in _run(lambda: program_of("sssp", edges), in_memory(edges), *[SIMULATED] * 3, device_edge_memory=0):
        check("sssp", edges, result.fields)
    assert sorted(set(settled)) == [0, 1, 2]


@simulator
def test_vectors_are_summed_by_the_owners_of_their_rows() -> None:
    def make() -> CollaborativeFiltering:
        return CollaborativeFiltering(rank=2, max_iter=2, rate=0.1)

    (alone,) = _run(make, small_graph(True), ON_CORES)
    for result in _run(make, small_graph(True), SIMULATED, ON_CORES):
        np.testing.assert_allclose(result.fields["vector"], alone.fields["vector"], rtol=1e-5)


@simulator
@pytest.mark.parametrize("name", ["bfs", "pagerank"])
def test_a_run_goes_on_with_another_number_and_kind_of_ranks(name: str, tmp_path: Path) -> None:
    edges = small(True)

    def work(ranks: ThreadRanks, each: tuple[dict[str, Any], ...], stop: int, *, resume: bool) -> Result | None:
        kept = Checkpoints(tmp_path, 1, resume=resume, follows=ranks.rank > 0)
        with Session(small_graph(True), ranks=ranks, threads=1, **each[ranks.rank]) as session:
            steps = session.steps(program_of(name, edges), kept)
            try:
                for _ in range(stop):
                    next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            steps.close()
        return None

    first, then = (SIMULATED, LINKED), (ON_CORES, SIMULATED, SIMULATED)
    on_ranks(2, lambda ranks: work(ranks, first, 2, resume=False))
    for result in on_ranks(3, lambda ranks: work(ranks, then, 1000, resume=True)):
        assert result is not None
        assert result.before == 2
        check(name, edges, result.fields)


def test_every_rank_brings_its_own_edges_only(tmp_path: Path) -> None:
    edges = shape("wide")
    graph = on_disk(edges, tmp_path / "wide.h5", chunk_edges=512)
    room = graph.edges * 4 * 6 // 10

    def work(ranks: ThreadRanks) -> tuple[int, int, bool]:
        with Session(graph, ranks=ranks, threads=1, device_edge_memory=room, **LINKED) as session:
            check("sweeps", edges, session.run(program_of("sweeps", edges)).fields)
            held = session.holdings
            assert held is not None
            assert isinstance(session.device, EmulatedDevice)
            foreseen = session.forecast(program_of("sweeps", edges)).first
            assert 4 * foreseen.edges == held.edges
            return session.device.bytes_in, held.device, held.edges == held.device

    for brought, held, whole in on_ranks(2, work):
        assert whole
        assert brought == held < room


@simulator
def test_ranks_know_of_each_others_devices() -> None:
    device = EmulatedDevice()

    def work(ranks: ThreadRanks) -> tuple[bool, bool, bool, bool]:
        here = Device() if ranks.rank == 0 else device
        found = RankDevices.of(ranks, here, state_there=here is device)
        return found.linked, found.on_devices, found.alike, found.arrays is ranks

    assert on_ranks(2, work) == [(True, True, False, True), (True, True, False, False)]
