"""What is said of several ranks: summary, metrics and report have a row for each, and sums of all."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from penstock.engine import Graph
from penstock.engine.session import Session
from penstock.tools import cli
from penstock.tools.answers.answer_options import AnswerOptions
from penstock.tools.base.rank_table import HEADS, rank_table
from penstock.tools.report.metrics_lines import checked
from penstock.tools.report.read_metrics import read
from penstock.tools.run.metrics import open_metrics
from penstock.tools.run.result_summary import ResultSummary
from support.graphs import on_disk
from support.program_cases import program_of, tangle
from support.thread_ranks import ThreadRanks, on_ranks

SMALL = tangle(directed=True, core=24, tail=6, count=70)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return on_disk(SMALL, tmp_path / "small.h5", chunk_edges=16)


def _run(graph: Graph, metrics_file: Path | None = None) -> list[ResultSummary]:
    def work(ranks: ThreadRanks) -> ResultSummary:
        with (
            Session(graph, ranks=ranks, kernels="reference", threads=1) as session,
            open_metrics(None if ranks.rank else metrics_file) as metrics,
        ):
            metrics.begin(session, {"program": "pagerank"})
            steps = session.steps(program_of("sweeps", SMALL))
            while True:
                try:
                    metrics.note(next(steps))
                except StopIteration as end:
                    summary = ResultSummary(end.value, peak_memory_bytes=1 << 20)
                    metrics.end(summary.facts(), end.value.ranks)
                    return summary

    return on_ranks(2, work)


def test_one_process_has_no_rows() -> None:
    assert rank_table([]) == ([], [])


def test_the_summary_has_a_row_for_each_rank_and_the_sum_of_memory(graph: Graph) -> None:
    summary = _run(graph)[0]
    facts = summary.facts()
    assert [one["rank"] for one in facts["ranks"]] == [0, 1]
    assert facts["peak_memory_bytes"] == sum(one["peak_memory_bytes"] for one in facts["ranks"])
    assert facts["ranks"][0]["peak_memory_bytes"] == 1 << 20
    assert facts["bytes_read"] == sum(one["bytes_disk"] for one in facts["ranks"])
    lines = summary.lines(AnswerOptions())
    heads = next(at for at, line in enumerate(lines) if all(head in line for head in HEADS))
    assert [line.split()[0] for line in lines[heads + 2 : heads + 4]] == ["0", "1"]


def test_metrics_and_report_have_every_rank_by_iteration(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(graph, tmp_path / "m.jsonl")
    run = read(tmp_path / "m.jsonl")[0]
    assert [len(one["by_iteration"]["exchange_seconds"]) for one in run.ranks] == [len(run.iterations)] * 2
    disk = [iteration["bytes_disk"] for iteration in run.iterations]
    assert run.ranks[0]["by_iteration"]["bytes_disk"] == disk
    assert cli.run_command(["report", str(tmp_path / "m.jsonl"), "--html", str(tmp_path / "m.html")]) == 0
    assert all(head in capsys.readouterr().out for head in ["exchanging"])
    assert "<h2>Ranks</h2>" in (tmp_path / "m.html").read_text()
    assert cli.run_command(["report", str(tmp_path / "m.jsonl"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "exchange_seconds" in json.dumps(told)
    assert "by_iteration" not in json.dumps(told)


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ({}, "it must be a list"),
        ([{"rank": 0}], r"ranks\[0\].host is missing"),
        ([{"rank": -1, "host": "a", "device": "cpu"}], r"ranks\[0\].rank is -1"),
        ([7], r"ranks\[0\] is 7"),
    ],
)
def test_other_ranks_are_refused(ranks: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked({"kind": "result", "ranks": copy.deepcopy(ranks)})
