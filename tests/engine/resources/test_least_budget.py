"""Least budgets: the number that a refusal names is accepted by forecast and run, and one MiB less refused by both.

Over every program: a small graph on disk, with direct reads and without, and behind a link; a large one in memory.
"""

from __future__ import annotations

import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Field, Graph, Program, Session
from penstock.engine.kernels.host import vertices
from penstock.engine.planning.requirements import planned
from penstock.engine.programs.adsorption import Adsorption
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.circuit import Circuit
from penstock.engine.programs.closeness import Closeness, Harmonic
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.degrees import CountArriving, Degrees
from penstock.engine.programs.diameter import Diameter
from penstock.engine.programs.eigenvector import Eigenvector
from penstock.engine.programs.heat import Heat
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.hyperball import HyperBall
from penstock.engine.programs.kcore import Coreness
from penstock.engine.programs.leiden import Leiden
from penstock.engine.programs.louvain import Louvain
from penstock.engine.programs.neural import Neural
from penstock.engine.programs.pagerank import PPR, PageRank
from penstock.engine.programs.php import PHP
from penstock.engine.programs.sssp import SSSP, WideSSSP
from penstock.engine.programs.table import PROGRAMS
from penstock.engine.programs.triangles import Triangles
from penstock.engine.programs.wcc import WCC
from penstock.engine.resources.host_resources import HostResources
from penstock.storage.base.errors import BudgetError
from penstock.transfer.devices import cuda
from support.catalogue_oracles import SOURCE
from support.commands import answered, refused
from support.covering import covering
from support.graphs import on_disk
from support.program_cases import CASES, tangle

MIB = 1 << 20
MAKERS: dict[str, Callable[[], Program]] = {name: make for name, (make, _) in CASES.items()} | {
    "sssp": lambda: SSSP(SOURCE),
    "pagerank": lambda: PageRank(tol=0, max_iter=2),
    "personalized_pagerank": lambda: PPR(SOURCE, tol=0, max_iter=2),
    "wcc": WCC,
    "cf": lambda: CollaborativeFiltering(max_iter=2),
    "louvain": lambda: Louvain(tol=1.0),
    "leiden": lambda: Leiden(tol=1.0),
}
FEW: dict[str, Callable[[], Program]] = MAKERS | {
    "hits": lambda: HITS(max_iter=2),
    "php": lambda: PHP(SOURCE, max_iter=2),
    "adsorption": lambda: Adsorption(SOURCE, max_iter=2),
    "cdlp": lambda: CDLP(max_iter=1),
    "cf": lambda: CollaborativeFiltering(max_iter=1),
    "circuit": lambda: Circuit({SOURCE: 1.0}, max_iter=2, floating=True),
    "neural": lambda: Neural({SOURCE: 1.0}, max_iter=2),
    "heat": lambda: Heat({SOURCE: 1.0}, max_iter=2),
    "betweenness": lambda: Betweenness(SOURCE),
    "closeness": lambda: Closeness(k=1),
    "eigenvector": lambda: Eigenvector(max_iter=2),
    "hyperball": lambda: HyperBall(log2m=4, max_iter=2),
    "harmonic": lambda: Harmonic(SOURCE),
    "diameter": lambda: Diameter(k=1),
}
"""Of few iterations on a large graph."""
LEVELS = {"louvain", "leiden"}
"""Programs that run on graphs that they make, in as much memory as the budget leaves; tests/test_peak_memory.py."""
EDGES = tangle(directed=True)


def test_every_program_is_here() -> None:
    assert MAKERS.keys() == PROGRAMS.keys()


@pytest.fixture(autouse=True)
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "count", lambda: 0)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return on_disk(EDGES, tmp_path_factory.mktemp("g") / "g.h5", chunk_edges=32)


@pytest.fixture(scope="module")
def large() -> Graph:
    """2^17 vertices with three edges each: what is taken of a vertex shows in MiB."""
    count = 1 << 17
    random = np.random.default_rng(1)
    sources = np.sort(random.integers(0, count, 3 * count))
    targets = random.integers(0, count, 3 * count)
    return Graph.from_arrays(*rows(sources, targets, count), into=rows(targets, sources, count))


def rows(sources: Any, targets: Any, count: int) -> tuple[Any, Any, Any]:
    order = np.lexsort((targets, sources))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))])
    return offsets, targets[order].astype(np.uint32), np.ones(len(targets), np.uint8)


def told(graph: Graph, program: Program, **options: Any) -> BudgetError | None:
    """What a forecast says of a budget."""
    with Session(graph, **options) as session:
        try:
            session.forecast(program)
        except BudgetError as error:
            return error
    return None


def ran(graph: Graph, program: Program, *, most: int | None = None, **options: Any) -> tuple[BudgetError | None, int]:
    """What a run, or its first `most` iterations, says of a budget, and how many iterations there were."""
    count = 0
    with Session(graph, **options) as session:
        steps: Iterator[Any] = session.steps(program)
        try:
            for count, _ in enumerate(steps, start=1):
                if count == most:
                    break
        except BudgetError as error:
            return error, count
    return None, count


def assert_least(graph: Graph, make: Callable[[], Program], option: str, most: int | None = None, **others: Any) -> int:
    """The least budget that is told is accepted, one MiB less is refused: in the same words, before any iteration."""
    refusal = told(graph, make(), **{option: 1}, **others)
    assert refusal is not None
    assert f"give --{option.replace('_', '-')} {refusal.least_mib}MiB or more" in str(refusal)
    assert ran(graph, make(), **{option: 1}, **others)[1] == 0
    least, less = refusal.least_mib * MIB, (refusal.least_mib - 1) * MIB
    assert told(graph, make(), **{option: least}, **others) is None
    assert ran(graph, make(), most=most, **{option: least}, **others)[0] is None
    again = told(graph, make(), **{option: max(1, less)}, **others)
    run, iterations = ran(graph, make(), most=most, **{option: max(1, less)}, **others)
    assert (str(run), iterations) == (str(again), 0)
    assert again is not None
    assert again.least_mib == refusal.least_mib
    return refusal.least_mib


@covering("name, direct", MAKERS, (False, True), strength=1)
def test_the_least_that_is_told_is_the_least_that_runs(name: str, direct: bool, disk: Graph) -> None:
    assert_least(disk, MAKERS[name], "host_memory", direct_io=direct, threads=2)


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_so_where_vertices_and_rows_weigh(name: str, large: Graph) -> None:
    """In memory, where state, indexes and rows are all there is; three iterations."""
    least = assert_least(large, MAKERS[name], "host_memory", most=1, threads=1)
    assert least * MIB > 4 * large.vertices


def test_it_is_so_where_a_lighter_program_takes_more() -> None:
    """Hashes in the place of ranks are for values in a file, and in memory 4 bytes a vertex more."""
    some, count = np.arange(3), 1 << 19
    graph = Graph.from_arrays(*rows(some, some + 1, count), into=rows(some + 1, some, count))
    assert_least(graph, MAKERS["mis"], "host_memory", most=1, threads=1)


@covering("name, option", MAKERS, ["host_memory", "device_memory"], strength=1)
def test_it_is_so_behind_a_link(name: str, option: str, disk: Graph) -> None:
    if (name, option) == ("degrees", "device_memory"):  # reads row indexes, on the host
        assert ran(disk, Degrees(), device="emulated", device_memory=1) == (None, 0)
        return
    assert_least(disk, MAKERS[name], option, device="emulated", threads=1)


@pytest.mark.parametrize("options", [{"threads": 5}, {"direction": "push"}, {"mode": "sync"}, {"partition_bytes": 256}])
def test_it_is_so_however_a_search_runs(options: dict[str, Any], disk: Graph) -> None:
    assert_least(disk, MAKERS["sssp"], "host_memory", **options)


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - LEVELS))
def test_a_run_makes_its_equipment_once(name: str, monkeypatch: pytest.MonkeyPatch, disk: Graph) -> None:
    """What any phase needs was planned before the first one; so it is of the same size for all."""
    made = []
    original = HostResources.__init__

    def counted(self: HostResources, *arguments: Any, **named: Any) -> None:
        made.append(arguments[2])
        original(self, *arguments, **named)

    monkeypatch.setattr(HostResources, "__init__", counted)
    with Session(disk, threads=1) as session:
        *_, needed = planned(disk, MAKERS[name](), session._setting)
        session.run(MAKERS[name]())
    assert len(made) == (name != "degrees")
    for needs in made:
        assert needs.fixed == needed.needs.fixed


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - LEVELS))
def test_what_a_program_allocates_is_counted(name: str, large: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields, accumulators, and what its own functions take; small change hides 16 bytes a vertex here."""
    monkeypatch.setattr(vertices, "PATIENCE", sys.maxsize)  # what loading a kernel takes is not a program's
    with Session(large, threads=1) as session:
        session.run(FEW[name]())  # kernels are compiled
        parts = session.forecast(FEW[name]()).host.parts
    tracemalloc.start()
    try:
        with Session(large, threads=1) as session:
            session.run(FEW[name]())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= parts["state"] + parts["program"] + 2 * MIB


class TwoSteps(Program):
    """Phases of which nobody said that the second needs more."""

    count = Field(np.int64)

    def __init__(self, second: type[Program]) -> None:
        self.second = second

    def phases(self, graph: Graph, state: dict[str, Any], first: int = 0) -> Iterator[Program]:
        yield CountArriving()
        yield self.second()


@pytest.mark.parametrize("second", [Coreness, Triangles])
def test_a_phase_that_was_not_told_of_is_refused_with_the_least_budget(second: type[Program], large: Graph) -> None:
    refusal = told(large, TwoSteps(second), host_memory=1)
    assert refusal is not None
    later, iterations = ran(large, TwoSteps(second), host_memory=refusal.least_mib * MIB)
    assert iterations == 1
    assert later is not None
    again, iterations = ran(large, TwoSteps(second), host_memory=(later.least_mib - 1) * MIB)
    assert again is not None
    assert (again.least_mib, iterations) == (later.least_mib, 1)
    if second is Coreness:
        assert ran(large, TwoSteps(second), most=2, host_memory=later.least_mib * MIB)[0] is None


def test_distances_that_may_not_fit_are_counted_wide(disk: Graph, large: Graph) -> None:
    program = SSSP(SOURCE)
    assert list(program.may_run(large)) == []
    heavy = Graph.from_arrays([0, 1, 1], [1], np.array([2**32 - 1], np.uint32))
    assert [type(one) for one in program.may_run(heavy)] == [WideSSSP]
    with Session(heavy, kernels="reference") as session:
        assert session.run(SSSP(0)).fields["distance"].tolist() == [0, 2**32 - 1]


@covering(
    "more, program",
    [[], ["--direct-io"], ["--checkpoint", "kept"], ["--trace", "t.json", "--force"]],
    ["wcc", "degrees", "triangles"],
    strength=1,
)
def test_the_command_line_tells_what_it_accepts(
    program: str,
    more: list[str],
    disk: Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", program, disk.path, "--device", "cpu", "--no-calibrate", "--host-memory"]
    message = refused(capsys, *run, "1MiB", *more)
    assert refused(capsys, *run, "1MiB", *more, "--dry-run") == message
    found = re.search(r"give --host-memory (\d+)MiB or more", message)
    assert found is not None
    least = int(found[1])
    dry = answered(capsys, *run, f"{least}MiB", *more, "--dry-run")
    assert dry["programs"][0]["host"]["total"] <= least * MIB
    assert answered(capsys, *run, f"{least}MiB", *more)["program"] == program
    assert f"give --host-memory {least}MiB or more" in refused(capsys, *run, f"{least - 1}MiB", *more)
