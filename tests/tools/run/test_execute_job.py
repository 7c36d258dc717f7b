"""What a job computes for its answers: only what somebody reads, once, and nothing of a program that is over."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from penstock.engine.program.program import Program
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.storage.base.errors import RunError
from penstock.storage.results import column_statistics
from penstock.tools import cli
from penstock.tools.run.result_summary import ResultSummary
from support.graphs import shape, write


@pytest.fixture(autouse=True)
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(shape("skewed"), Path("g.h5"))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is computed of the result, call by call."""
    calls: list[str] = []

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            calls.append(name)
            return real(*given, **named)

        return called

    for owner, name in ((column_statistics, "facts_of"), (column_statistics, "count_present"), (Result, "top_rows")):
        monkeypatch.setattr(owner, name, noted(name, getattr(owner, name)))
    return calls


BFS = ["run", "bfs", "g.h5", "--source", "0", "--threads", "2"]
FIELDS = ["facts_of", "count_present"]  # of levels, of parents


def test_quiet_computes_nothing_but_what_metrics_need(computed: list[str]) -> None:
    assert cli.run_command([*BFS, "--quiet"]) == 0
    assert cli.run_command([*BFS, "--quiet", "--top", "3", "--output", "a.npy"]) == 0
    assert computed == []
    assert cli.run_command([*BFS, "--quiet", "--top", "3", "--metrics", "m.jsonl"]) == 0
    assert computed == FIELDS


def test_everything_else_is_computed_once(computed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command([*BFS]) == 0
    assert computed == FIELDS
    computed.clear()
    assert cli.run_command([*BFS, "--json", "--top", "3", "--output", "a.csv", "--metrics", "n.jsonl"]) == 0
    assert computed == [*FIELDS, "top_rows"]
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(facts["top"]) == 3
    lines = [json.loads(line) for line in Path("n.jsonl").read_text().splitlines()]
    told = next(line for line in lines if line["kind"] == "result")
    assert told["fields"] == facts["fields"]


def test_a_summary_that_fails_is_an_error_though_the_answer_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: ResultSummary) -> None:
        raise RunError("the ids are damaged")

    monkeypatch.setattr(ResultSummary, "facts", fail)
    assert cli.run_command([*BFS, "--json", "--output", "a.csv"]) == 1
    assert Path("a.csv").exists()


def test_a_job_keeps_no_answer_of_a_program_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[Result]] = []
    alive: list[int] = []
    real = ResultSummary.facts

    def noting(self: ResultSummary) -> dict[str, Any]:
        gc.collect()
        alive.append(sum(one() is not None for one in kept))
        kept.append(weakref.ref(self.result))
        return real(self)

    monkeypatch.setattr(ResultSummary, "facts", noting)
    job = 'graph = "g.h5"\n' + '[[programs]]\nname = "bfs"\nsource = 0\n' * 3
    Path("job.toml").write_text(job)
    assert cli.run_command(["run", "job.toml", "--json"]) == 0
    assert alive == [0, 0, 0]


def test_edges_need_no_memory_while_the_last_answer_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("job.toml").write_text(
        'graph = "g.h5"\nprograms = [{name = "wcc", output = "a.npy"}, {name = "pagerank", output = "b.npy"}]\n'
    )
    sessions: list[Session] = []
    held: list[bool] = []
    begin, written = Session.prepare, Result.write

    def prepare(self: Session, *programs: Program, begins: bool) -> None:
        sessions.append(self)
        begin(self, *programs)

    def write_answer(self: Result, *given: Any, **named: Any) -> None:
        held.append(sessions[-1].holdings is not None)
        written(self, *given, **named)

    monkeypatch.setattr(Session, "prepare", prepare)
    monkeypatch.setattr(Result, "write", write_answer)
    assert cli.run_command(["run", "job.toml", "--host-memory", "200MiB"]) == 0
    assert held == [True, False]
