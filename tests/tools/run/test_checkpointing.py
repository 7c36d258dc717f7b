"""`penstock run --checkpoint`: what is refused, and how a run that is told to end leaves a state to go on from."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph, Session
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.programs.bfs import BFS
from penstock.storage.base.errors import InputError
from penstock.tools import cli
from penstock.tools.base.signals import DEFERRED, Stopped
from penstock.tools.run.checkpointing import Checkpointing, ending_at_signals
from support.graphs import in_memory, shape, write


@pytest.mark.parametrize(
    ("given", "programs", "message"),
    [
        (Checkpointing(every="10"), 1, "--checkpoint-every needs --checkpoint DIR"),
        (Checkpointing(resume=True), 1, "--resume needs --checkpoint DIR"),
        (Checkpointing(Path("x")), 2, "--checkpoint keeps the state of one program, and this job has 2"),
        (Checkpointing(Path("x"), "soon"), 1, "checkpoint_every is 'soon'"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: Checkpointing, programs: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        given.check(programs)


def path_graph() -> Graph:
    return in_memory(shape("path"))


def test_a_signal_ends_a_run_after_its_iteration_with_a_checkpoint(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in DEFERRED]
    notes: list[str] = []
    with Session(path_graph(), kernels="reference") as session:
        checkpoints = Checkpoints(tmp_path, "1h")
        steps = ending_at_signals(session.steps(BFS(source=0), checkpoints), checkpoints, notes.append)
        for _ in range(5):
            assert next(steps).checkpoint is None
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped) as stop:
            next(steps)
    assert (stop.value.number, stop.value.left) == (
        signal.SIGTERM,
        f"the same command with --resume goes on after iteration 6 ({tmp_path})",
    )
    assert (checkpoints.folder.numbers(), notes) == ([6], [])
    assert [signal.getsignal(number) for number in DEFERRED] == before


def test_a_checkpoint_that_cannot_be_made_is_told_at_the_end_and_underway(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes: list[str] = []
    with Session(path_graph(), kernels="reference") as session:
        checkpoints = Checkpoints(tmp_path / "kept", 2, resume=True)
        steps = ending_at_signals(session.steps(BFS(source=0), checkpoints), checkpoints, notes.append)
        next(steps)
        next(steps)
        (tmp_path / "kept").rename(tmp_path / "moved")
        next(steps)
        next(steps)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped) as stop:
            next(steps)
    assert notes == [f"there is no checkpoint in {tmp_path / 'kept'}: the run begins"]
    assert caplog.messages[0].startswith("no checkpoint after iteration 4: ")
    assert caplog.messages[0].endswith("; the run goes on")
    assert stop.value.left.startswith("there is no checkpoint: ")


@pytest.mark.parametrize("second", DEFERRED)
def test_the_second_one_ends_the_process_also_where_python_has_not_heard_of_the_first(
    second: int, tmp_path: Path
) -> None:
    """In the middle of a call that lasts for minutes and looks at no signal."""
    code = (
        "import hashlib, sys\nfrom penstock.tools.base.signals import deferring_signals\n"
        "from penstock.storage.base.atomic import register_debris\n"
        "from pathlib import Path\n"
        "register_debris(Path(sys.argv[1]))\n"
        "Path(sys.argv[1]).write_text('half')\n"
        "with deferring_signals(lambda: print('asked', flush=True), lambda: 'keeping a checkpoint (iteration 3)'):\n"
        "    print('ready', flush=True)\n"
        "    hashlib.pbkdf2_hmac('sha256', b'a', b'b', 1 << 30)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "half")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    said = "penstock: SIGTERM: keeping a checkpoint (iteration 3); a second SIGTERM ends now\n"
    assert process.stderr.readline() == said, "at once"
    process.send_signal(second)
    process.communicate(timeout=60)
    assert process.returncode == 128 + second
    assert list(tmp_path.iterdir()) == [], "nothing half-written stays"


def penstock(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "penstock.tools.cli", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)


def test_sigterm_and_resume_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A path of 400 vertices has 400 iterations, of which each makes a checkpoint: long enough to be stopped."""
    graph, kept = tmp_path / "path.h5", tmp_path / "kept"
    write(shape("path"), graph)
    whole = ["run", "bfs", graph, "--source", "0", "--no-calibrate", "--quiet", "--output", tmp_path / "levels.npy"]
    command = [*whole, "--checkpoint", kept, "--checkpoint-every"]
    process = penstock(*command, "1")
    while process.poll() is None and not (kept.is_dir() and any(kept.glob("checkpoint-*"))):
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    at = max(int(file.stem.partition("-")[2]) for file in kept.iterdir())
    *told, last = said.splitlines()
    assert all(one.startswith("penstock: SIGTERM: keeping a checkpoint (iteration ") for one in told), "unless it ended"
    assert last == f"penstock: stopped by SIGTERM; the same command with --resume goes on after iteration {at} ({kept})"
    assert not (tmp_path / "levels.npy").exists()

    again = [str(word) for word in (*command, "1h")]
    assert cli.run_command(again) == 2
    assert "holds checkpoints of a run that did not end: --resume goes on with it" in capfd.readouterr().err
    again.remove("--quiet")
    assert cli.run_command([*again, "--resume", "--json"]) == 0
    answer = capfd.readouterr()
    facts = json.loads(answer.out)
    assert (facts["iterations_before"], facts["iterations"]) == (at, 400)
    assert f"goes on from {kept}/checkpoint-{at:010}.penstock, after iteration {at}" in answer.err
    np.testing.assert_array_equal(np.load(tmp_path / "levels.npy"), np.arange(400))
    assert list(kept.iterdir()) == []
