"""Sharing a sweep: what ranks divide, what they exchange, and that a forecast of ranks is of one rank's part."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph, Session
from penstock.engine.planning.forecast import Sweep
from penstock.engine.planning.rank_forecast import (
    PACKED,
    SCATTERED,
    PaperRanks,
    RankLink,
    SharedSweep,
    co_run,
    exchange_seconds,
    exchanged_bytes,
    rates_of_rank,
)
from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.triangles import Triangles
from penstock.engine.programs.wcc import WCC
from penstock.engine.resources.direction import Direction
from penstock.storage.base.errors import InputError
from penstock.transfer.devices import cuda
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.rates import Rates
from support.graphs import on_disk, shape
from support.paged_graphs import paged_graphs, room_for
from support.thread_ranks import ThreadRanks, on_ranks

__all__ = ["paged_graphs"]

RATES = Rates(disk_bytes=1e6, decode_bytes=1e6, kernel_edges=1e6)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return on_disk(shape("skewed"), tmp_path_factory.mktemp("g") / "g.h5", chunk_edges=32)


@pytest.fixture(autouse=True)
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 0)


@pytest.mark.parametrize(
    ("nbytes", "ranks", "seconds"),
    [(800, 1, 0.0), (800, 2, 0.1 + 4.0), (800, 4, 0.3 + 6.0), (0, 3, 0.2), (800, 8, 0.7 + 7.0)],
)
def test_a_ring_hands_out_slices(nbytes: int, ranks: int, seconds: float) -> None:
    assert exchange_seconds(nbytes, ranks, RankLink(100.0, 0.1)) == pytest.approx(seconds)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_a_host_is_divided(ranks: int) -> None:
    before, after = asdict(RATES), asdict(rates_of_rank(RATES, ranks))
    divided = {"disk_bytes", "decode_bytes", "gather_bytes", "kernel_edges", "sweep_edges", "kernel_rows"}
    assert {name for name in before if after[name] != before[name]} == (
        set() if ranks == 1 else divided - {"kernel_rows"}
    )
    assert all(after[name] == before[name] / ranks for name in divided)


@pytest.mark.parametrize(
    ("program", "direction", "each"),
    [
        (PageRank(), "pull", 8),
        (PageRank(), "push", 16),
        (WCC(), "push", 8),
        (Triangles(), "pull", None),
    ],
)
def test_what_is_exchanged_grows_with_vertices(program: Program, direction: Direction, each: int | None) -> None:
    told = exchanged_bytes(program, direction, 1000, 4)
    assert told == exchanged_bytes(program, direction, 2000, 4) / 2 > 0
    assert each is None or told == 1000 * each


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_rank_walks_its_share(graph: Graph, ranks: int) -> None:
    with Session(graph, host_memory="64MiB", threads=1, rates=RATES, partition_bytes=256) as session:
        whole = session.forecast(PageRank())
    with Session(
        graph, ranks=PaperRanks(ranks), host_memory="64MiB", threads=1, rates=RATES, partition_bytes=256
    ) as session:
        part = session.forecast(PageRank())
    assert (part.ranks, whole.ranks) == (ranks, 1)
    assert whole.later.exchange == 0.0 < part.later.exchange
    assert part.later.cost.kernel == pytest.approx(whole.later.cost.kernel / ranks, rel=0.1)
    assert part.first.disk_bytes < whole.first.disk_bytes
    assert part.later.disk_bytes == 0
    assert part.host.parts["cache"] <= whole.host.parts["cache"]
    assert part.host.parts["state"] == whole.host.parts["state"]  # slices are exchanged in their places
    assert part.later.seconds == part.later.cost.busiest + part.later.vertices + part.later.exchange
    assert part.later.vertices == whole.later.vertices > 0  # of all vertices, in every rank


@pytest.mark.parametrize(
    ("routes", "packed", "rate"), [({"resident": 3}, False, 1.0), ({"filter": 3}, False, SCATTERED), ({}, True, PACKED)]
)
def test_sweeps_have_a_rate_of_their_own(routes: dict[str, int], packed: bool, rate: float) -> None:
    sweep = Sweep(Cost(0.5, 0.25, 0.0, 0.0, 9.0, 0.0), 1, 0, routes, edges=1000)
    found = sweep.on_cores(Rates(sweep_edges=100.0), 2.0, packed=packed)
    assert found.cost == Cost(0.5, 0.25, 0.0, 0.0, 10.0 / rate + 0.25, 0.0)
    assert found.seconds == pytest.approx(10.0 / rate + 0.25 + 2.0)


def test_the_kernels_of_searches_have_the_rate_of_any_edges(graph: Graph) -> None:
    with Session(graph, host_memory="64MiB", threads=1, rates=RATES) as session:
        search, sweeps = session.forecast(BFS(source=0)), session.forecast(PageRank())
    assert search.later.vertices == 0.0 < sweeps.later.vertices
    assert search.later.cost.kernel > graph.edges / RATES.kernel_edges * 0.99
    assert sweeps.later.cost.kernel == pytest.approx(graph.edges / RATES.sweep_edges)


def test_an_exchange_may_limit(graph: Graph) -> None:
    fast = Rates(disk_bytes=1e15, decode_bytes=1e15, kernel_edges=1e15, kernel_latency=0.0)
    with Session(graph, ranks=PaperRanks(2), host_memory="64MiB", threads=1, rates=fast) as session:
        assert session.forecast(PageRank()).later.limit == "exchange"


def test_a_rank_without_room_for_all_values_has_them_in_windows(paged_graphs: dict[bool, Graph]) -> None:
    graph, program = paged_graphs[True], PageRank(tol=0, max_iter=8, weight=None)
    with room_for(6, graph.vertices), Session(graph, ranks=PaperRanks(2), threads=1) as session:
        told = session.forecast(program)
    assert (told.direction, told.windows, told.ranks) == ("push", 6, 2)
    assert 8 * graph.vertices <= told.value_file < (8 + 8 / 2) * graph.vertices  # ranks are where messages were
    with room_for(6, graph.vertices) as counts:
        moved = on_ranks(2, lambda ranks: _value_bytes(graph, program, ranks))
    assert set(counts) == {6}
    each = sum(moved) / 2  # pages between two ranks are both's; the forecast does not know which pages stay
    assert 0.7 < each / (8 * told.later.value_bytes) < 2


def _value_bytes(graph: Graph, program: Program, ranks: ThreadRanks) -> int:
    with Session(Graph.open(graph.files[0]), ranks=ranks, threads=1) as session:
        return int(session.run(program).ranks[ranks.rank].totals["value_bytes"])


def test_ranks_refuse_what_their_run_refuses(graph: Graph) -> None:
    with pytest.raises(InputError, match="route is 'cel', which sends along edges that other ranks have"):
        Session(graph, ranks=PaperRanks(2), device="emulated", route="cel")


def test_a_rank_with_a_device_has_its_own_edges_there(graph: Graph) -> None:
    half = graph.edges * 4 * 2 // 3
    with Session(graph, ranks=PaperRanks(2), device="emulated", device_edge_memory=half, threads=1) as session:
        found = session.forecast(PageRank())
    assert 0.4 * graph.edges < found.later.edges < 0.7 * graph.edges
    assert (set(found.later.routes), found.later.link_bytes) == ({"resident"}, 0)


def test_nobody_else_is_there(tmp_path: Path) -> None:
    ranks = PaperRanks(3)
    assert ranks.gather_numbers(np.arange(2)).tolist() == [[0, 1]] * 3
    with pytest.raises(RuntimeError, match="on paper"):
        ranks.wait()


GPU, CORES = Rates.pcie5(4), Rates.host(12)
SWEEP = SharedSweep(edges=1_000_000_000, link_bytes=4.0, exchanged=1_000_000 * 8)


@pytest.mark.parametrize(
    ("gpus", "link", "vertices", "threads", "pays"),
    [
        (1, 53e9, 33_000_000, 12, False),  # the exchange by way of host memory takes longer than the sweep
        (1, 53e9, 100_000, 12, True),  # few vertices: cores take a share of what the link would bring
        (1, 6e9, 1_000_000, 12, True),  # a slow link
        (1, 6e9, 99_000_000, 12, False),
        (1, 53e9, 100_000, 1, False),  # few cores
        (4, 53e9, 1_000_000, 12, False),
    ],
)
def test_when_it_pays(gpus: int, link: float, vertices: int, threads: int, pays: bool) -> None:
    work = replace(SWEEP, exchanged=8 * vertices)
    found = co_run(work, gpus, replace(GPU, copy_bytes=link), 0.0, Rates.host(threads))
    assert found.pays is pays
    assert pays == (found.alone / found.beside > 1.05)


def test_both_end_together() -> None:
    found = co_run(replace(SWEEP, exchanged=0), 2, GPU, 0.0, CORES)
    share = found.share * SWEEP.edges
    assert share / CORES.kernel_edges == pytest.approx((SWEEP.edges - share) / 2 * 4 / GPU.copy_bytes, rel=1e-6)
    assert found.beside < found.alone == pytest.approx(SWEEP.edges / 2 * 4 / GPU.copy_bytes, rel=1e-2)
    assert found.beside == pytest.approx(share / CORES.kernel_edges, rel=1e-2)


def test_what_stays_on_gpus_does_not_travel() -> None:
    found = co_run(replace(SWEEP, exchanged=0), 2, GPU, 1e10, CORES)
    assert found.alone == pytest.approx(SWEEP.edges / 2 / GPU.kernel_edges, rel=1e-2)


def test_a_disk_that_limits_both_makes_them_equal() -> None:
    found = co_run(replace(SWEEP, exchanged=0, disk_bytes=4e9), 1, GPU, 0.0, CORES)
    assert (found.alone, found.beside) == pytest.approx((4e9 / GPU.disk_bytes,) * 2, rel=1e-3)
    assert not found.pays
