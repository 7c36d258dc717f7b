"""Run directories hold what repeats the run, say how it ended, and are never written over unasked."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import h5py
import numba
import numpy as np
import pytest
from commands import refused
from penstock.engine.session import Session
from penstock.storage.errors import RunError
from penstock.tools import cli
from penstock.tools.stop import Stopped
from samples import on_disk, shape

FILES = {"job.toml", "run.json", "metrics.jsonl", "log.txt"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    on_disk(shape("skewed"), tmp_path / "g.h5")
    return tmp_path


def run(*arguments: object) -> None:
    assert cli.run_command(["run", *map(str, arguments), "-q"]) == 0


def told(place: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(Path(place, "run.json").read_text())
    return facts


def names(place: str) -> set[str]:
    return {path.name for path in Path(place).iterdir()}


def test_a_run_can_be_repeated_from_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(
        "bfs",
        "g.h5",
        "--source",
        3,
        "--run-dir",
        "one",
        "--host-memory",
        "300MiB",
        "--direction",
        "push",
        "--threads",
        1,
    )
    assert names("one") - {"rates.json"} == FILES | {"bfs.parquet"}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run(tmp_path / "one" / "job.toml", "--run-dir", "two")
    one, two = tmp_path / "one", Path("two")
    assert (one / "job.toml").read_text() == (two / "job.toml").read_text()
    assert (one / "bfs.parquet").read_bytes() == (two / "bfs.parquet").read_bytes()
    assert 'direction = "push"' in (two / "job.toml").read_text()
    assert f"host-memory = {300 << 20}" in (two / "job.toml").read_text()


def test_the_record_says_what_was_run_on_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", "run", "..."])
    run("wcc", "g.h5", "--run-dir", "here", "--trace", "trace.json")
    facts = told("here")
    assert facts["status"] == "done"
    assert facts["command_line"] == ["penstock", "run", "..."]
    for name, version in (("numpy", np.__version__), ("numba", numba.__version__), ("h5py", h5py.__version__)):
        assert facts["versions"][name] == version
    assert facts["graph"]["edges"] == 1500
    assert len(facts["graph"]["content"]) == 16
    assert facts["machine"]["cores"] >= 1
    assert facts["rates"]["source"] in ("built-in", "measured")
    assert facts["options"]["host_memory"] is None
    assert facts["programs"][0]["output"] == "here/wcc.parquet"
    assert facts["started"] <= facts["ended"]
    assert "traceEvents" in json.loads(Path("here/trace.json").read_text())
    lines = [json.loads(line) for line in Path("here/metrics.jsonl").read_text().splitlines()]
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("job", "result")
    assert "WCC: " in Path("here/log.txt").read_text()


def test_outputs_of_several_programs_have_names_of_their_own() -> None:
    job = 'graph = "g.h5"\nrun-dir = "out"\n'
    for source in (1, 2):
        job += f'[[programs]]\nname = "bfs"\nsource = {source}\n'
    Path("job.toml").write_text(job + '[[programs]]\nname = "wcc"\noutput = "parts.csv"\n')
    run("job.toml")
    assert names("out") - {"rates.json"} == FILES | {"bfs.parquet", "bfs-2.parquet", "parts.csv"}
    assert [one["program"] for one in told("out")["programs"]] == ["bfs", "bfs", "wcc"]


def test_a_directory_that_holds_something_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    run("wcc", "g.h5", "--run-dir", "out", "--trace", "trace.json")
    first = Path("out/run.json").read_text()
    message = refused(capsys, "run", "bfs", "g.h5", "--source", 1, "--run-dir", "out")
    assert "out holds a run already; --force replaces it, or name another --run-dir" in message
    assert "out holds a run already" in refused(capsys, "run", "out/job.toml")
    assert Path("out/run.json").read_text() == first
    run("wcc", "g.h5", "--run-dir", "out", "--force")
    assert "trace.json" not in names("out"), "a trace of another run is not left"
    Path("mine").mkdir()
    Path("mine/log.txt").write_text("precious")
    for force in ([], ["--force"]):
        assert "mine is not empty, and no run directory" in refused(
            capsys, "run", "wcc", "g.h5", "--run-dir", "mine", *force
        )
    assert Path("mine/log.txt").read_text() == "precious"
    Path("file").touch()
    assert "Directory 'file' is a file" in refused(capsys, "run", "wcc", "g.h5", "--run-dir", "file")


@pytest.mark.parametrize("arguments", [["bfs", "g.h5", "--source", 7777], ["wcc", "g.h5", "--host-memory", "1MiB"]])
def test_bad_input_leaves_no_directory(capsys: pytest.CaptureFixture[str], arguments: list[Any]) -> None:
    refused(capsys, "run", *arguments, "--run-dir", "a/b")
    assert not Path("a/b").exists()
    Path("kept").mkdir()
    refused(capsys, "run", *arguments, "--run-dir", "kept")
    assert names("kept") == set()


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (RunError("the disk is gone"), "failed", "the disk is gone"),
        (Stopped(15), "stopped", "signal 15"),
        (ZeroDivisionError("oh"), "failed", "oh"),
    ],
)
def test_a_run_that_did_not_end_says_so(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, status: str, words: str
) -> None:
    def steps(self: Any, program: Any, *more: Any) -> Any:
        assert told("out")["status"] == "running"
        raise error
        yield

    monkeypatch.setattr(Session, "steps", steps)
    ended = nullcontext() if isinstance(error, RunError) else pytest.raises(type(error))
    with ended:
        assert cli.run_command(["run", "wcc", "g.h5", "--run-dir", "out"]) == 1
    facts = told("out")
    assert facts["status"] == status
    assert words in facts["error"]
    assert "ended" in facts
    assert names("out") - {"rates.json"} == FILES
    assert not any(isinstance(keeper, logging.FileHandler) for keeper in logging.getLogger("penstock").handlers)


def test_input_that_proves_bad_after_iterations_leaves_its_directory(capsys: pytest.CaptureFixture[str]) -> None:
    run("wcc", "g.h5", "--run-dir", "out")
    message = refused(capsys, "run", "katz", "g.h5", "--alpha", 50, "--run-dir", "out", "--force", "-q")
    assert "alpha 50.0 is too large for this graph" in message
    facts = told("out")
    assert facts["status"] == "failed"
    assert "alpha 50.0 is too large" in facts["error"]
    assert names("out") - {"rates.json"} == FILES | {"wcc.parquet"}
    lines = [json.loads(line) for line in Path("out/metrics.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines[1:-1]} == {"iteration"}
    assert lines[-1]["kind"] == "failed"


def test_a_run_that_is_resumed_puts_the_earlier_record_aside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a batch system does: the same command again, after a signal that came in the middle."""
    command = ["pagerank", "g.h5", "--tol", "0", "--max-iter", "6", "--run-dir", "out"]
    command += ["--checkpoint", "checkpoints", "--checkpoint-every", "2", "--resume"]
    whole = Session.steps

    def steps(self: Any, program: Any, *more: Any) -> Any:
        for record in whole(self, program, *more):
            yield record
            if record.number == 4:
                raise RunError("the machine is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Session, "steps", steps)
        assert cli.run_command(["run", *command]) == 1
    assert "checkpoints" in names("out")
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    assert "its damping was 0.85" in refused(capsys, "run", *command, "--damping", "0.5")
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    run(*command)
    facts = told("out")
    assert facts["status"] == "done"
    assert facts["programs"][0]["iterations_before"] == 4
    assert json.loads(Path("out/earlier-1/run.json").read_text())["status"] == "failed"
    assert "earlier-1" in names("out")
    assert "a run that is done, there is nothing to resume" in refused(capsys, "run", *command)
    assert told("out") == facts
    run("pagerank", "g.h5", "--tol", 0, "--max-iter", 6, "-o", "whole.parquet")
    assert Path("whole.parquet").read_bytes() == Path("out/pagerank.parquet").read_bytes()
