"""Metrics: whole lines as the run goes, whose sums are the records', whatever ends the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine.session import Session
from penstock.engine.state.records import IterationRecord
from penstock.engine.state.result import Result
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.stage_clock import compiling, installed, stage
from penstock.tools import cli
from penstock.tools.base.log import LineFile
from penstock.tools.run.account import JobClock
from penstock.tools.run.metrics import Metrics, open_metrics
from support.clocks import MovedClock
from support.faults import small_disk
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import program_of

EDGES = weighed(EdgeList(300, *skewed(300, 4000, 3), None, False), "uint8")


def followed(metrics: Metrics, session: Session, name: str, edges: EdgeList) -> Any:
    """Run a program, its iterations noted."""
    metrics.begin(session, {"program": name})
    steps = session.steps(program_of(name, edges))
    while True:
        try:
            metrics.note(next(steps))
        except StopIteration as end:
            metrics.end({"seconds": end.value.seconds})
            return end.value


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_say_what_the_records_do(tmp_path: Path) -> None:
    graph, path = on_disk(EDGES, tmp_path / "g.h5", chunk_edges=256), tmp_path / "m.jsonl"
    options = {
        "device": "emulated",
        "partition_bytes": 1024,
        "device_edge_memory": 12_000,
        "tuning": {"link_rate": 1e8},
    }
    with open_metrics(path) as metrics, Session(graph, kernels="reference", **options) as session:
        result = followed(metrics, session, "sssp", EDGES)
    job, *iterations, last = lines(path)
    assert (job["kind"], last["kind"]) == ("job", "result")
    assert job["graph"]["edges"] == graph.edges
    assert job["options"] == {**options, "kernels": "reference"}
    assert job["device"]["kind"] == "emulated"
    assert set(job["budget"]) == {"host", "device", "device_edges"}
    assert [line["iteration"] for line in iterations] == list(range(result.iterations))
    for line, record in zip(iterations, result.records, strict=True):
        assert line["kind"] == "iteration"
        assert (line["frontier_vertices"], line["frontier_edges"]) == (record.vertices, record.edges)
        assert line["bytes_link"] == sum(came["bytes_link"] for came in line["routes"].values()) == record.bytes_link
        assert sum(came["tasks"] for came in line["routes"].values()) == len(record.tasks) == line["tasks"]
        assert line["link_seconds"] == sum(task.link_seconds for task in record.tasks)
        assert line["memory"]["edges"] == graph.edges * 5
        assert 0 < line["memory"]["edges_device"] <= 12_000
    assert sum(line["link_seconds"] for line in iterations) > 0


def test_hits_are_those_of_the_host_cache(tmp_path: Path) -> None:
    graph, path = on_disk(EDGES, tmp_path / "g.h5", chunk_edges=256), tmp_path / "m.jsonl"
    with open_metrics(path) as metrics, Session(graph, kernels="reference", partition_bytes=1024) as session:
        followed(metrics, session, "sweeps", EDGES)
        followed(metrics, session, "sweeps", EDGES)
    rates = [line["cache_hit_rate"] for line in lines(path) if line["kind"] == "iteration"]
    assert rates == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert [line["kind"] for line in lines(path)].count("job") == 2


def test_a_line_is_written_while_the_run_goes_on(tmp_path: Path) -> None:
    edges, path = shape("path"), tmp_path / "m.jsonl"
    with open_metrics(path) as metrics, Session(in_memory(edges), kernels="reference") as session:
        metrics.begin(session, {})
        steps = session.steps(program_of("bfs", edges))
        for number in range(3):
            metrics.note(next(steps))
            assert len(lines(path)) == 1 + number
        steps.close()
        metrics.end({})
    assert len(lines(path)) == 5


def test_a_failure_is_the_last_line(tmp_path: Path) -> None:
    edges, path = shape("path"), tmp_path / "m.jsonl"

    def fail() -> None:
        with open_metrics(path) as metrics, Session(in_memory(edges), kernels="reference") as session:
            metrics.begin(session, {})
            metrics.note(next(session.steps(program_of("bfs", edges))))
            raise RunError("the disk broke")

    with pytest.raises(RunError, match="disk"):
        fail()
    assert [line["kind"] for line in lines(path)] == ["job", "iteration", "failed"]
    assert lines(path)[-1]["error"] == "the disk broke"


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text("mine")
    with pytest.raises(InputError, match="--force"), open_metrics(path):
        pass
    assert path.read_text() == "mine"
    with open_metrics(path, force=True):
        pass
    assert path.read_text() == ""


def test_a_full_disk_ends_the_run_and_leaves_whole_lines(tmp_path: Path) -> None:
    edges = shape("path")
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        path = disk / "m.jsonl"
        with (
            pytest.raises(RunError, match=r"m\.jsonl could not be written"),
            open_metrics(path) as metrics,
            Session(in_memory(edges), kernels="reference") as session,
        ):
            followed(metrics, session, "bfs", edges)
        kinds = [line["kind"] for line in lines(path)]
        assert kinds[0] == "job"
        assert set(kinds[1:]) == {"iteration"}
        assert path.read_bytes().endswith(b"\n")


def test_a_line_that_could_not_be_written_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes no line of an iteration, and others: the failure is the last line, with what failed first."""
    edges, path, write, refused = shape("path"), tmp_path / "m.jsonl", LineFile.write, []

    def full(file: LineFile, line: str) -> None:
        if '"kind": "iteration"' in line:
            refused.append(line)
            raise OSError("no room")
        write(file, line)

    monkeypatch.setattr(LineFile, "write", full)
    with (
        pytest.raises(RunError, match="no room"),
        open_metrics(path) as metrics,
        Session(in_memory(edges), kernels="reference") as session,
    ):
        followed(metrics, session, "bfs", edges)
    assert [line["kind"] for line in lines(path)] == ["job", "failed"]
    assert len(refused) == 1


def test_a_run_that_is_killed_leaves_whole_lines(tmp_path: Path) -> None:
    """SIGKILL as soon as there are some; a long path has iterations to spare."""
    count = 3000
    path = np.stack([np.arange(count - 1), np.arange(1, count)])
    on_disk(EdgeList(count, *path, None, False), tmp_path / "g.h5")
    command = [sys.executable, "-m", "penstock.tools.cli", "run", "bfs", str(tmp_path / "g.h5"), "--source", "0"]
    metrics = tmp_path / "m.jsonl"
    with subprocess.Popen([*command, "--metrics", str(metrics), "--direction", "push", "--quiet"]) as child:
        while child.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") > 5):
            time.sleep(0.001)
        os.kill(child.pid, signal.SIGKILL)
    told = lines(metrics)
    assert told[0]["kind"] == "job"
    assert told[0]["stages"].keys() >= {"imports", "opening"}, "what was known when it was killed"
    iterations = [line["iteration"] for line in told if line["kind"] == "iteration"]
    assert iterations == list(range(len(iterations)))
    assert len(iterations) >= 4
    assert metrics.read_bytes().endswith(b"\n")


def test_a_failure_accounts_for_the_time_until_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the answer cannot be written, its program has failed, and the job has ended."""
    on_disk(EDGES, tmp_path / "g.h5")

    def fail(*_: object, **__: object) -> None:
        raise RunError("the disk is full")

    monkeypatch.setattr(Result, "write", fail)
    arguments = ["run", "bfs", tmp_path / "g.h5", "--source", "0", "--quiet", "--output", tmp_path / "a.csv"]
    assert cli.run_command([*map(str, arguments), "--metrics", str(tmp_path / "m.jsonl")]) == 1
    job, *_, failed, end = lines(tmp_path / "m.jsonl")
    assert [line["kind"] for line in (job, failed, end)] == ["job", "failed", "end"]
    assert failed["stages"].keys() >= {"imports", "iterations", "writing"}
    for line in (job, failed, end):
        assert sum(line["stages"].values()) == pytest.approx(line["wall_seconds"])


def test_iterations_say_what_was_compiled_in_them(tmp_path: Path) -> None:
    """Records of iterations that were one call share its seconds; the first ones hold what was compiled for it."""
    time = MovedClock()
    clock, path = JobClock(now=time), tmp_path / "m.jsonl"
    with open_metrics(path, clock=clock) as metrics, Session(in_memory(EDGES), kernels="reference") as session:
        metrics.begin(session, {})
        with installed(clock), stage("iterations"):
            with compiling():
                time.now += 5.0
            for number in range(3):
                metrics.note(IterationRecord(number, "push", 1, 1, 2.0))
        metrics.end({})
    found = [line.get("compile_seconds") for line in lines(path) if line["kind"] == "iteration"]
    assert found == [2.0, 2.0, 1.0]


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_disk(EDGES, tmp_path / "g.h5")
    arguments = [
        "run",
        "bfs",
        str(tmp_path / "g.h5"),
        "--source",
        "0",
        "--json",
        "--metrics",
        str(tmp_path / "m.jsonl"),
    ]
    assert cli.run_command(arguments) == 0
    facts = json.loads(capsys.readouterr().out)
    job, *iterations, last, end = lines(tmp_path / "m.jsonl")
    assert (last["kind"], end["kind"]) == ("result", "end")
    assert (job["program"], job["parameters"]) == ("bfs", {"source": 0})
    assert len(iterations) == facts["iterations"] == last["iterations"]
    assert sum(line["bytes_disk"] for line in iterations) == facts["bytes_read"]
    known = [line for line in lines(tmp_path / "m.jsonl") if "stages" in line]
    assert [known[0]["kind"], *(line["kind"] for line in known[-2:])] == ["job", "result", "end"]
    for line in (*known, facts):
        assert sum(line["stages"].values()) == pytest.approx(line["wall_seconds"])
        assert line["stages"][line["longest_stage"]] == max(line["stages"].values())
    walls = [line["wall_seconds"] for line in (*known, facts)]
    assert walls == sorted(walls)
    assert {"imports", "opening", "index", "state", "iterations", "summary", "closing"} <= facts["stages"].keys()
    assert end["stage_bytes"]["iterations"] == facts["bytes_read"]
    assert cli.run_command(arguments) == 2
    assert "--force" in capsys.readouterr().err
