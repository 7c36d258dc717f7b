"""What commands say: valid JSON whatever the values, aligned tables, readable durations."""

from __future__ import annotations

import copy
import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.session import Session
from penstock.tools import cli
from penstock.tools.base.output import RANK_HEADS, Console, pairs, seconds, table
from penstock.tools.report.read_metrics import read
from penstock.tools.run.answer_options import AnswerOptions
from penstock.tools.run.metric_lines import line_of
from penstock.tools.run.metrics import open_metrics
from penstock.tools.run.result_summary import ResultSummary
from support.graphs import on_disk
from support.program_cases import program_of, tangle
from support.thread_ranks import ThreadRanks, on_ranks


def test_json_takes_any_value(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {
        "count": np.int64(3),
        "rate": np.float32(0.5),
        "array": np.array([1, 2]),
        "nan": float("nan"),
        "inf": np.float64("inf"),
        "path": Path("/x/y"),
        "dtype": np.dtype(np.uint8),
        "nested": ({"a": (1, None, True)},),
        4: "key",
    }
    Console(as_json=True, quiet=True).answer(facts, ["not shown"])
    assert json.loads(capsys.readouterr().out) == {
        "count": 3,
        "rate": 0.5,
        "array": [1, 2],
        "nan": None,
        "inf": None,
        "path": "/x/y",
        "dtype": "uint8",
        "nested": [{"a": [1, None, True]}],
        "4": "key",
    }


def test_people_get_lines_and_the_quiet_get_none(capsys: pytest.CaptureFixture[str]) -> None:
    Console().answer({"a": 1}, ["one", "two"])
    assert capsys.readouterr().out == "one\ntwo\n"
    quiet = Console(quiet=True)
    quiet.answer({"a": 1}, ["one"])
    quiet.say("underway")
    quiet.note("aside")
    Console(as_json=True).say("underway")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_columns_line_up() -> None:
    assert pairs([("a", 1), ("skip", None), ("long", "x")], indent=" ") == [" a     1", " long  x"]
    assert table(["name", "n"], [["x", 1], ["yy", 1000]]) == [
        "name     n",
        "----  ----",
        "x        1",
        "yy    1000",
    ]
    assert pairs([]) == []


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(0.0004, "0.4 ms"), (0.431, "431 ms"), (2.514, "2.51 s"), (119, "119 s"), (200.4, "3 min 20 s")],
)  # fmt: skip
def test_durations_are_readable(duration: float, expected: str) -> None:
    assert seconds(duration) == expected


SMALL = tangle(directed=True, core=24, tail=6, count=70)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return on_disk(SMALL, tmp_path / "small.h5", chunk_edges=16)


def _run(graph: Graph, metrics_file: Path | None = None) -> list[ResultSummary]:
    def work(ranks: ThreadRanks) -> ResultSummary:
        told = metrics_file is not None and ranks.rank == 0
        with (
            Session(graph, ranks=ranks, kernels="reference", threads=1) as session,
            open_metrics(metrics_file) if told else nullcontext() as metrics,
        ):
            if metrics is not None:
                metrics.begin(session, {"program": "pagerank"})
            steps = session.steps(program_of("sweeps", SMALL))
            while True:
                try:
                    record = next(steps)
                    if metrics is not None:
                        metrics.note(record)
                except StopIteration as end:
                    summary = ResultSummary(end.value, peak_memory_bytes=1 << 20)
                    if metrics is not None:
                        metrics.end(summary.facts(), end.value.ranks)
                    return summary

    return on_ranks(2, work)


def test_the_summary_has_a_row_for_each_rank_and_the_sum_of_memory(graph: Graph) -> None:
    summary = _run(graph)[0]
    facts = summary.facts()
    assert [one["rank"] for one in facts["ranks"]] == [0, 1]
    assert facts["peak_memory_bytes"] == sum(one["peak_memory_bytes"] for one in facts["ranks"])
    assert facts["ranks"][0]["peak_memory_bytes"] == 1 << 20
    assert facts["bytes_read"] == sum(one["bytes_disk"] for one in facts["ranks"])
    lines = summary.lines(AnswerOptions())
    heads = next(at for at, line in enumerate(lines) if all(head in line for head in RANK_HEADS))
    assert [line.split()[0] for line in lines[heads + 2 : heads + 4]] == ["0", "1"]


def test_metrics_and_report_have_every_rank_by_iteration(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(graph, tmp_path / "m.jsonl")
    run = read(tmp_path / "m.jsonl")[0]
    assert [len((one.by_iteration or {})["exchange_seconds"]) for one in run.ranks] == [len(run.iterations)] * 2
    disk = [iteration.bytes_disk for iteration in run.iterations]
    assert (run.ranks[0].by_iteration or {})["bytes_disk"] == disk
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
        line_of({"kind": "result", "ranks": copy.deepcopy(ranks)})
