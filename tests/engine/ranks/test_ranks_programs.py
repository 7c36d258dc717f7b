"""Every program gives the reference's answer on several ranks: threads here, plain Python kernels, small graphs.

`test_mpi.py` has processes and compiled kernels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.triangles import Triangles
from penstock.engine.session import Session
from penstock.storage.base.errors import RunError
from support.covering import covering
from support.graphs import SHAPES, in_memory, on_disk, shape, weighed
from support.oracles import EdgeList
from support.program_cases import CASES, PROGRAMS, check, program_of
from support.thread_ranks import ThreadRanks, on_ranks, run_on, small, small_graph


@covering("name, directed", CASES, (True, False), strength=1)
def test_every_program_on_two_ranks(name: str, directed: bool) -> None:
    make, right = CASES[name]
    for result in run_on(make, small_graph(directed), 2):
        right(small(directed), result.fields)


@pytest.mark.parametrize("name", ["coreness", "heat", "kcore"])
def test_messages_both_ways_along_out_edges_alone_count_once(name: str, tmp_path: Path) -> None:
    edges = weighed(EdgeList(3000, *np.random.default_rng(5).integers(0, 3000, (2, 9000)), None, True), "uint8")
    graph = on_disk(edges, tmp_path / "out.h5", both=False, chunk_edges=1024)
    (alone,) = run_on(CASES[name][0], graph, 1, kernels="host")
    for result in run_on(CASES[name][0], graph, 3, kernels="host"):
        for field, values in result.fields.items():
            np.testing.assert_allclose(values, alone.fields[field], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernels", ["reference", "host"])
@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_components_are_joined_by_ranges(kernels: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostExchangeKernels, "exchanged_at_once", at_once)
    for seed, size in ((0, 2), (1, 3), (2, 3)):
        random = np.random.default_rng(seed)
        edges = EdgeList(300, *random.integers(0, 300, (2, 260)), None, bool(seed % 2))
        graph = in_memory(edges)
        for result in run_on(lambda edges=edges: program_of("wcc", edges), graph, size, kernels=kernels):
            check("wcc", edges, result.fields)


@covering("options, name", [{"direction": "push"}, {"direction": "pull"}, {"mode": "sync"}, {}], PROGRAMS, strength=1)
def test_every_direction_and_mode_on_three_ranks(name: str, options: dict[str, str]) -> None:
    edges = small(True)
    options = {} if name == "wcc" else options
    for result in run_on(lambda: program_of(name, edges), small_graph(True), 3, **options):
        check(name, edges, result.fields)


@pytest.mark.parametrize("name", ["empty", "one", "isolated", "two", "star-in", "star-out"])
def test_odd_graphs_on_three_ranks(name: str) -> None:
    edges = shape(name)
    graph = in_memory(edges)
    assert name in SHAPES
    for program in ("sssp", "sweeps", "wcc") if edges.vertices else ("wcc",):
        for result in run_on(lambda program=program: program_of(program, edges), graph, 3):
            check(program, edges, result.fields)


def test_pulled_sums_are_the_same_bits_for_any_number_of_ranks() -> None:
    edges = small(True)
    found = [run_on(lambda: program_of("pagerank", edges), small_graph(True), size) for size in (1, 2, 3)]
    assert len({result.fields["rank"].tobytes() for results in found for result in results}) == 1


def test_ranks_read_their_own_rows_only(tmp_path) -> None:
    edges = shape("wide")
    graph = on_disk(edges, tmp_path / "wide.h5", chunk_edges=512)
    alone = run_on(lambda: program_of("sweeps", edges), graph, 1)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.engine.resources.ownership.MARGIN", 64)
        shared = run_on(lambda: program_of("sweeps", edges), graph, 2, repartition=False)
    assert all(one.bytes_disk < 0.6 * alone.bytes_read for one in shared[0].ranks)
    for result in shared:
        check("sweeps", edges, result.fields)


def test_triangles_are_dealt_out_in_strips(monkeypatch) -> None:
    edges = small(False)
    monkeypatch.setattr("penstock.engine.execution.triangles.strip_edges", lambda graph, memory: 20)
    results = run_on(Triangles, small_graph(False), 2)
    assert len(results[0].records) > 2
    for result in results:
        CASES["triangles"][1](edges, result.fields)


def test_a_run_that_is_not_the_same_everywhere_is_refused() -> None:
    edges = small(True)

    def work(ranks: ThreadRanks) -> None:
        program = program_of("sssp", edges)
        program.source = np.int64(ranks.rank)
        with Session(small_graph(True), ranks=ranks, kernels="reference", threads=1) as session:
            session.run(program)

    with pytest.raises(RunError, match="rank 1 has other values than rank 0 after 0 iterations"):
        on_ranks(2, work)


@pytest.mark.parametrize("directed", [True, False])
def test_vectors_are_summed_by_the_owners_of_their_rows(directed: bool) -> None:
    edges, graph = small(directed), small_graph(directed)
    one, two = (
        run_on(lambda: CollaborativeFiltering(rank=2, max_iter=3, rate=0.1), graph, size)[0].fields["vector"]
        for size in (1, 2)
    )
    assert edges.weights is not None
    np.testing.assert_array_equal(one, two)
