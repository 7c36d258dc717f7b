"""Run directories hold what repeats the run, say how it ended, and are never written over unasked."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import h5py
import numba
import numpy as np
import pytest
from penstock.engine.session import Session
from penstock.storage.base.errors import RunError
from penstock.tools import cli
from penstock.tools.base import log
from penstock.tools.base.signals import Stopped
from support.commands import refused
from support.covering import covering
from support.graphs import on_disk, shape

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
    assert [lines[0]["kind"], *(line["kind"] for line in lines[-2:])] == ["job", "result", "end"]
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
    assert {line["kind"] for line in lines[1:-2]} == {"iteration"}
    assert [line["kind"] for line in lines[-2:]] == ["failed", "end"]


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
    assert "pagerank.parquet exists already; --force replaces it" in refused(capsys, "run", *command)
    assert told("out") == facts
    run("pagerank", "g.h5", "--tol", 0, "--max-iter", 6, "-o", "whole.parquet")
    assert Path("whole.parquet").read_bytes() == Path("out/pagerank.parquet").read_bytes()


def test_a_run_that_was_killed_behind_its_answer_goes_on_in_its_directory(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bfs", "g.h5", "--source", "0", "--run-dir", "out", "--checkpoint", "state", "--resume"]
    run(*command)
    answer = Path("out/bfs.parquet").read_bytes()
    Path("out/run.json").write_text(json.dumps(told("out") | {"status": "running"}))
    Path("mine.parquet").write_text("mine")
    assert "mine.parquet exists already" in refused(capsys, "run", *command, "-o", str(Path("mine.parquet").absolute()))
    Path("out/bfs.parquet").write_text("of the run that was killed")
    run(*command)
    assert (told("out")["status"], Path("out/bfs.parquet").read_bytes()) == ("done", answer)
    assert "there is nothing to resume" in refused(capsys, "run", *command)


def contents(place: str | Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(place).rglob("*") if path.is_file()}


BAD = [["bfs", "g.h5", "--source", 7777], ["wcc", "g.h5", "--host-memory", "1MiB"]]


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_leaves_the_run_that_it_would_replace(
    capsys: pytest.CaptureFixture[str], arguments: list[Any]
) -> None:
    run("wcc", "g.h5", "--run-dir", "out", "--trace", "trace.json", "--metrics", "m.jsonl")
    before = contents("out")
    for more in ([], ["--trace", "trace.json"], ["--metrics", "m.jsonl"], ["--trace", "other.json"]):
        refused(capsys, "run", *arguments, "--run-dir", "out", "--force", *more)
        assert contents("out") == before
    run("wcc", "g.h5", "--run-dir", "out", "--force")
    assert told("out")["status"] == "done"
    assert "trace.json" not in names("out")


@pytest.mark.parametrize(
    "more", [[], ["--trace", "t.json"], ["--metrics", "m"], ["--checkpoint", "c"], ["-o", "a/b/x.csv"]]
)
def test_bad_input_is_told_and_leaves_no_directory_whatever_lies_in_it(
    capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    Path("kept").mkdir()
    for arguments, words in zip(BAD, ("vertex 7777 is not in the graph", "is too small"), strict=True):
        for place in ("a/b", "kept"):
            assert words in refused(capsys, "run", *arguments, "--run-dir", place, *more)
            assert (Path("a").exists(), names("kept")) == (False, set())


@pytest.mark.parametrize("error", [RunError("the disk is gone"), Stopped(15)])
def test_a_failure_before_the_first_iteration_leaves_the_earlier_run(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    run("wcc", "g.h5", "--run-dir", "out")
    before = contents("out")

    def steps(self: Any, program: Any, *more: Any) -> Any:
        raise error
        yield

    with monkeypatch.context() as patch, nullcontext() if isinstance(error, RunError) else pytest.raises(Stopped):
        patch.setattr(Session, "steps", steps)
        assert cli.run_command(["run", "wcc", "g.h5", "--run-dir", "out", "--force"]) == 1
    assert contents("out") == before
    if isinstance(error, Stopped):
        assert error.left == "the earlier run in out is as it was"


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 1), (errno.EIO, 1), (errno.EACCES, 2)])
def test_a_directory_that_cannot_be_made_is_one_message(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full or failing disk is a failed run, a directory that may not be made is bad input."""

    def refuse(folder: Path, *more: Any, **named: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        assert cli.run_command(["run", "wcc", "g.h5", "--run-dir", "out"]) == code
    assert f"out cannot be made: {os.strerror(number)}" in capsys.readouterr().err
    assert not Path("out").exists()


@covering(
    "place, output",
    ["one", "absolute"],
    ["w.csv", "{here}/one/w.csv", "{here}/outside/w.csv", "outside/../w.csv", "sub/w.csv", "../w.csv"],
    strength=1,
)
def test_a_repeated_run_writes_into_its_own_directory(tmp_path: Path, place: str, output: str) -> None:
    (tmp_path / "outside").mkdir()
    job = tmp_path / "one" / "job.toml" if place == "absolute" else "one/job.toml"
    more = ["--metrics", output.format(here=tmp_path).replace("w.csv", "m.jsonl"), "--threads", 1]
    run("wcc", "g.h5", "--run-dir", "one", "-o", output.format(here=tmp_path), *more)
    before = {name: text for name, text in contents(tmp_path).items() if "__pycache__" not in name}
    (tmp_path / "else").mkdir()
    run(job, "--run-dir", tmp_path / "else" / "two", "--force")
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before
    made = [Path(name) for name in after.keys() - before.keys()]
    assert all(path.is_relative_to(tmp_path / "else" / "two") for path in made)
    assert {path.name for path in made} >= {"w.csv", "m.jsonl", "job.toml", "run.json", "log.txt"}


def test_a_copied_run_directory_is_one_of_its_own_and_may_be_moved(tmp_path: Path) -> None:
    run("wcc", "g.h5", "--run-dir", "one")
    shutil.copy("g.h5", "one/g.h5")
    Path("one/own.py").write_text("from penstock.engine.programs.bfs import BFS\n\n\nclass Mine(BFS):\n    pass\n")
    state = ["--checkpoint", "kept", "--checkpoint-every", 1, "--metrics", "m.jsonl", "--trace", "t.json"]
    run("one/own.py:Mine", "one/g.h5", "--set", "source=3", "--run-dir", "one", "--force", *state)
    job = Path("one/job.toml").read_text()
    assert str(tmp_path) not in job, "all that it reads and writes is in it"
    shutil.copytree("one", "two")
    before = contents("one")
    run("two/job.toml", "--force")
    assert contents("one") == before
    shutil.rmtree("one")
    Path("two").rename("three")
    run("three/job.toml", "--force")
    assert Path("three/job.toml").read_text() == job


@pytest.mark.parametrize("name", ["g.h5", "job.toml", "link.h5"])
def test_no_output_replaces_what_is_read(capsys: pytest.CaptureFixture[str], name: str) -> None:
    Path("link.h5").symlink_to("g.h5")
    Path("job.toml").write_text('graph = "g.h5"\n[[programs]]\nname = "wcc"\n')
    before = contents(".")
    for option in ("--metrics", "--trace"):
        assert f"{name} is an input too" in refused(capsys, "run", "job.toml", option, name, "--force")
    if name != "job.toml":
        assert f"{name} is an input too" in refused(capsys, "run", "wcc", "g.h5", "-o", name, "--force")
    assert contents(".") == before


def test_no_output_has_the_name_of_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "run", "wcc", "g.h5", "--run-dir", "out", "--metrics", "run.json")
    assert "out/run.json is written 2 times by this job" in message


@pytest.mark.parametrize("more", [[], ["--force"], ["--force", "--checkpoint", "c", "--resume"]])
def test_a_directory_in_use_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    """The second run begins while the first one's first iteration is over; it changes nothing."""
    whole = Session.steps
    messages = []

    def steps(self: Any, program: Any, *given: Any) -> Any:
        going = whole(self, program, *given)
        yield next(going)
        before = contents("out")
        messages.append(refused(capsys, "run", "wcc", "g.h5", "--run-dir", "out", *more))
        assert contents("out") == before
        return (yield from going)

    monkeypatch.setattr(Session, "steps", steps)
    run("wcc", "g.h5", "--run-dir", "out")
    assert f"out is in use by another run, process {os.getpid()} on host" in messages[0]
    assert "wait until it ends, or name another --run-dir" in messages[0]
    assert ".penstock-run.lock" not in names("out")


def test_a_checkpoint_folder_in_use_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Session.steps
    messages = []

    def steps(self: Any, program: Any, *given: Any) -> Any:
        going = whole(self, program, *given)
        yield next(going)
        before = contents("kept")
        for more in ([], ["--resume"]):
            messages.append(refused(capsys, "run", "wcc", "g.h5", "--checkpoint", "kept", *more))
        assert contents("kept") == before
        return (yield from going)

    monkeypatch.setattr(Session, "steps", steps)
    run("wcc", "g.h5", "--checkpoint", "kept", "--checkpoint-every", 1)
    assert len(messages) == 2
    assert all("kept is in use by another run, process" in message for message in messages)
    assert names("kept") == set()


def test_a_log_that_cannot_be_written_is_told_once_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    emit = log.LogFile.emit

    def full(self: Any, record: Any) -> None:
        whole = self._file._file
        with open("/dev/full", "wb", buffering=0) as self._file._file:
            emit(self, record)
        self._file._file = whole

    monkeypatch.setattr(log.LogFile, "emit", full)
    assert cli.run_command(["run", "wcc", "g.h5", "--run-dir", "out"]) == 0
    shown = capsys.readouterr().err
    assert shown.count("log.txt could not be written: No space left on device; the run goes on without it") == 1
    assert "Traceback" not in shown
    assert told("out")["status"] == "done"
    assert told("out")["log_error"] == "No space left on device"


def test_a_log_that_cannot_be_made_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Path.open

    def open_(self: Path, *given: Any, **more: Any) -> Any:
        if self.name == "log.txt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return whole(self, *given, **more)

    monkeypatch.setattr(Path, "open", open_)
    assert cli.run_command(["run", "wcc", "g.h5", "--run-dir", "out"]) == 1
    assert "out/log.txt could not be made: No space left on device" in capsys.readouterr().err
    assert told("out")["status"] == "failed"
