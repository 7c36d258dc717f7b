"""Kernels that `penstock compile` has built serve a process that compiles nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.commands import refused
from support.json_page import check_documented

COMMAND = """
import sys
from penstock.tools import main
from penstock.tools.commands import compile
compile.MAKING = "convert /1.txt /plain.h5 --no-weights"
compile.GRAPHS, compile.ON_DISK, compile.WAYS = ("/plain.h5",), "/plain.h5 --host-memory", ()
compile.NARROW = {}
main.main()
"""
RUN = """
import json, sys
from penstock.storage.base.stage_clock import compile_times
from penstock.tools.cli import run_command
for line in sys.argv[1:]:
    assert run_command(line.split()) == 0
print(json.dumps(compile_times().compiled))
"""
LEVEL = "x86-64-v3"


def environment(tmp_path: Path) -> dict[str, str]:
    """That of a user whose cache is empty, and who has the folder's kernels."""
    return os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PENSTOCK_KERNELS": str(tmp_path / "kernels")}


def begun(tmp_path: Path) -> subprocess.Popen[str]:
    """The command, for one program on one graph."""
    words = ["compile", "reachability", "--level", LEVEL, "--output", str(tmp_path / "kernels"), "--json"]
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def entries(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "kernels").glob("*.kernel")}


@pytest.mark.slow
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="levels are of x86-64")
def test_what_it_builds_in_two_turns_is_all_that_a_run_needs(tmp_path: Path) -> None:
    stopped = begun(tmp_path)
    while len(entries(tmp_path)) < 2 and stopped.poll() is None:
        time.sleep(0.01)
    stopped.send_signal(signal.SIGINT)
    stopped.communicate()
    assert stopped.returncode == 130
    before = entries(tmp_path)

    out, err = (again := begun(tmp_path)).communicate()
    assert (again.returncode, err) == (0, "")
    facts: dict[str, Any] = json.loads(out)
    check_documented(facts)
    assert facts["kernels"] == len(entries(tmp_path)) == facts["new_kernels"] + len(before)
    assert (facts["failed"], facts["compiled_by_each_process"], facts["refused"]) == ([], [], [])
    assert {path.suffix for path in (tmp_path / "kernels").iterdir()} == {".kernel"}

    (tmp_path / "edges.txt").write_text("1 2 3\n2 3 1\n5 1 2\n")
    graph = tmp_path / "graph.h5"
    lines = f"convert {tmp_path}/edges.txt {graph} --no-weights -q", f"run reachability {graph} --source 1 -q"
    words = [sys.executable, "-c", RUN, *lines]
    child = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, check=True)
    assert json.loads(child.stdout) == 0


def test_without_numba_cuda_a_sentence_tells_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    told = refused(capsys, "compile", "bfs", "--device", "sm_80, sm_90", "--output", tmp_path / "kernels")
    assert "--device sm_80,sm_90: kernels of GPUs are compiled by numba-cuda" in told
    assert not (tmp_path / "kernels").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("bfss", "--output", "k"), "there is no program 'bfss' (did you mean bfs?)"),
        (("--output", "k"), "name programs, as in 'penstock compile bfs pagerank', or give --all, not both"),
        (("bfs", "--all", "--output", "k"), "not both"),
        (("bfs", "--level", "x86-64-v9", "--output", "k"), "--level 'x86-64-v9' is no kind of processor; give native,"),
        (("bfs", "--device", "gpu", "--output", "k"), "'gpu' names no kinds of GPUs; write sm_90, or sm_80,sm_90"),
        (("bfs", "--output", "file"), "--output"),
        (("bfs", "--output", "file/k"), "--output file/k cannot be made: Not a directory; name another folder"),
        (("bfs", "--output", "open"), "`chmod go-w"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert told in refused(capsys, "compile", *words)
    assert not list((tmp_path / "open").iterdir())
