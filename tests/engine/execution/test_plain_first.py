"""First runs on small graphs by the plain definition of the kernels: whose answers, for how long, and where not."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock import engine
from penstock.engine import Graph, Program, Session
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution import plain_first
from penstock.engine.programs.articulation import Articulation
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.circuit import Circuit
from penstock.engine.programs.coloring import Coloring
from penstock.engine.programs.diameter import Diameter
from penstock.engine.programs.heat import Heat
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.louvain import Louvain
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.php import PHP
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.spanning_forest import SpanningForest
from penstock.engine.programs.triangles import Triangles
from penstock.engine.state.records import IterationRecord, PhaseRecord
from penstock.storage.base import missing_code
from penstock.storage.base.errors import InputError
from penstock.storage.base.timeline import Timeline
from support.faults import python
from support.graphs import in_memory, on_disk, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import CASES, ROWS, tangle

MAKERS: dict[str, Callable[[], Program]] = {
    "bfs": lambda: BFS(0),
    "pagerank": lambda: PageRank(max_iter=20),
    "phases": SCC,
    "rows": Triangles,
    "forest": Articulation,
    "tree": SpanningForest,
    "both ways": lambda: Circuit(fixed={0: 1.0, 1: 0.5}, floating=True),
    "branches": lambda: Heat(fixed={0: 1.0, 1: 0.5}, max_iter=30),
    "bits": Coloring,
    "whole rows": lambda: CDLP(max_iter=4),
}


class Own(BFS):
    """A search of somebody else."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return in_memory(weighed(EdgeList(300, *skewed(300, 2000, 7), None, directed=True), "uint8"))


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Nothing has been compiled; yields the kinds of kernels that are made."""
    made: list[str] = []
    new = engine.session.new_kernels

    def noted(kind: str, *given: Any) -> Any:
        made.append(kind)
        return new(kind, *given)

    monkeypatch.setattr(engine.session, "new_kernels", noted)
    monkeypatch.setattr(engine.session, "expect_run", lambda *_, **__: True)
    monkeypatch.setattr(plain_first, "_spent", Counter())
    monkeypatch.setattr(missing_code, "FEW", 1 << 18)
    for name in ("SECONDS", "FORESEEN"):
        monkeypatch.setattr(plain_first, name, 1000.0)
    return made


@pytest.mark.parametrize("name", MAKERS)
def test_answers_are_those_of_compiled_kernels_to_the_bit(
    name: str, graph: Graph, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(graph, threads=2) as session:
        steps, records = session.steps(MAKERS[name]()), []
        while True:
            try:
                records.append(next(steps))
            except StopIteration as end:
                plain = end.value
                break
    assert set(kinds) == {"plain"}
    assert len(records) == plain.iterations
    kinds.clear()
    monkeypatch.setattr(missing_code, "FEW", 0)
    with Session(graph, threads=2) as session:
        compiled = session.run(MAKERS[name]())
    assert set(kinds) == {"host"}
    assert plain.iterations == compiled.iterations
    for field, values in compiled.fields.items():
        np.testing.assert_array_equal(plain.fields[field][:], values[:])


def test_sums_that_overflow_are_infinite_without_a_warning(kinds: list[str]) -> None:
    ends = np.array([0, 0]), np.array([1, 2])
    with Session(in_memory(EdgeList(3, *ends, np.full(2, 1e308), directed=True)), threads=1) as session:
        assert session.run(PHP(0)).fields["php"][:].tolist() == [1, 0, 0]
    assert set(kinds) == {"plain"}


@pytest.mark.parametrize(("directed", "direction"), [(True, "push"), (False, "pull")])
def test_whole_arrays_give_what_one_edge_after_another_gives(directed: bool, direction: str) -> None:
    """To the bit, for all programs of the catalogue."""
    for name, (make, _) in CASES.items():
        found = []
        for kind in ("plain", "reference"):
            way = direction if name not in ROWS else "auto"
            with Session(in_memory(tangle(directed=directed)), kernels="reference", direction=way) as session:
                session._kind = kind
                found.append({field: values[:] for field, values in session.run(make()).fields.items()})
        for field, values in found[0].items():
            np.testing.assert_array_equal(values, found[1][field], f"{name}, {field}", strict=True)


@pytest.mark.parametrize("seconds", [1e-9, 0.0])
def test_what_takes_longer_is_compiled_and_begins_anew(
    seconds: float, graph: Graph, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_first, "SECONDS", seconds)
    with Session(graph, threads=1) as session:
        records = list(session.steps(PageRank(tol=0, max_iter=3, weight=None)))
        assert session.run(PageRank(tol=0, max_iter=3, weight=None)).iterations == 3
    assert [record.number for record in records] == [0, 1, 2]
    assert kinds == (["plain", "host"] if seconds else ["host"])


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (lambda: PageRank(weight=None), 2),
        (lambda: PageRank(weight=None, tol=0, max_iter=3), 5),
        (lambda: BFS(0), 5),
    ],
)
def test_sweeps_are_given_up_early_where_many_will_follow(
    make: Callable[[], Program], seen: int, kinds: list[str]
) -> None:
    walked: list[int] = []

    def steps() -> Generator[IterationRecord, None, Any]:
        for number in range(5):
            walked.append(number)
            yield IterationRecord(number, "push", 1, 1)

    clock = itertools.count(0, plain_first.FORESEEN / 15)
    with mock.patch.object(plain_first.time, "thread_time", side_effect=clock):
        assert (plain_first.result_of(steps(), make(), bool) is None) == (seen == 2)
    assert len(walked) == seen
    assert not kinds


@pytest.mark.parametrize(("phases", "expected", "seen"), [(None, 4, 2), (4, 20, 4), (40, 4, 2), (0, 4, 4), (0, 40, 2)])
def test_phases_are_given_longer_where_few_will_follow(
    phases: int | None, expected: int, seen: int, kinds: list[str]
) -> None:
    """None: it has no phases; 0: it does not count them, and so many are expected."""
    walked: list[int] = []

    def steps() -> Generator[IterationRecord, None, Any]:
        for number in range(4):
            walked.append(number)
            record = IterationRecord(0, "push", 1, 1)
            record.phase = None if phases is None else PhaseRecord(number, "search", phases or None)
            yield record

    clock = itertools.count(0, 1.0)
    known = {"SECONDS": 1.5, "FORESEEN": 6.0, "SWEEPS": expected}
    with (
        mock.patch.multiple(plain_first, **known),
        mock.patch.object(plain_first.time, "thread_time", side_effect=clock),
    ):
        assert (plain_first.result_of(steps(), BFS(0), bool) is None) == (seen < 4)
    assert len(walked) == seen


def test_all_runs_of_a_program_share_the_time(graph: Graph, kinds: list[str]) -> None:
    for _ in range(2):
        with Session(graph, threads=1) as session:
            session.run(BFS(0))
    assert kinds == ["plain"] * 2
    assert 0 < plain_first._spent[BFS] < plain_first.SECONDS
    assert plain_first.is_tried(PageRank(), graph)
    plain_first._spent[BFS] += plain_first.SECONDS
    assert not plain_first.is_tried(BFS(0), graph)


def test_programs_of_others_many_edges_traces_and_checkpoints_wait_for_kernels(
    graph: Graph, kinds: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Session(graph, threads=1) as session:
        session.run(Own(0))
        session.run(BFS(0), Checkpoints(tmp_path / "kept", 1))
    with Session(graph, threads=1, timeline=Timeline()) as session:
        session.run(BFS(0))
    with Session(graph, threads=1, precision="single") as session:
        session.run(PageRank(weight=None, max_iter=1))
    monkeypatch.setattr(missing_code, "FEW", graph.vertices + graph.edges)
    tried = [plain_first.is_tried(one, graph) for one in (SCC(), PageRank(), Triangles(), Louvain())]
    assert tried == [True, False, False, False]
    monkeypatch.setattr(missing_code, "FEW", graph.vertices + graph.edges - 1)
    with Session(graph, threads=1) as session:
        session.run(BFS(0))
    assert set(kinds) == {"host"}


def test_what_was_not_compiled_is_not_known_as_such(
    graph: Graph, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with phases on other graphs, one that fails, and one that is left."""
    ended: list[bool] = []
    monkeypatch.setattr(engine.session, "end", lambda *, compiled: ended.append(compiled))
    program = Louvain()
    with Session(graph, threads=1) as session:
        found = session.run(program)
        with pytest.raises(InputError, match="too large"):
            session.run(Katz(alpha=5.0))
        steps = session.steps(BFS(0))
        next(steps)
        steps.close()
        assert ended == [False] * 3
        plain_first._spent[Louvain] += plain_first.SECONDS
        compiled = session.run(Louvain())
    assert ended == [False] * 3 + [True]
    np.testing.assert_array_equal(found.fields["community"][:], compiled.fields["community"][:])
    assert program.modularity == found.measures["modularity"] != []


def test_a_companion_is_started_where_a_run_takes_long(
    graph: Graph, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(engine.session, "expect_run", lambda *_, early=True: asked.append(early) or True)
    with Session(graph, threads=1) as session:
        session.run(BFS(0))
        monkeypatch.setattr(plain_first, "LATE", 0.0)
        session.run(BFS(0))
        plain_first._spent[BFS] += plain_first.SECONDS
        session.run(BFS(0))
    assert asked == [False, False, True, True]
    assert kinds == ["plain", "plain", "host"]


def test_a_small_graph_is_read_and_searched_without_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = weighed(EdgeList(2000, *skewed(2000, 10000, 7), None, directed=True), "uint8")
    on_disk(edges, tmp_path / "g.h5", chunk_edges=1 << 16)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    code = (
        "import sys; from penstock.engine import Graph, Session; from penstock.engine.programs.table import PROGRAMS\n"
        "with Session(Graph.open(sys.argv[1]), threads=2) as session:\n"
        "    for name, given in (('sssp', [0]), ('wcc', [])): session.run(PROGRAMS[name](*given))\n"
        "print('numba' in sys.modules)"
    )
    done = python(code, str(tmp_path / "g.h5"))
    assert (done.stdout, done.stderr) == ("False\n", "")
    assert not list(tmp_path.rglob("*.kernel"))


def test_what_begins_anew_measures_anew(graph: Graph, kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plainly = plain_first.result_of
    monkeypatch.setattr(plain_first, "result_of", lambda *given: plainly(*given) and None)
    with Session(graph, threads=1) as session:
        found = session.run(Diameter(k=2))
    assert set(kinds) == {"plain", "host"}
    assert len(found.measures["diameter_at_least"]) <= 2
