"""`--devices cpu,cpu`: the same answer as one process, one message when a rank dies, and checkpoints in between."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from penstock.storage.base.errors import BudgetError
from penstock.tools.run.execute_job import of_all_ranks
from penstock.tools.run.launch_ranks import Report
from support.commands import refused
from support.graphs import on_disk, shape

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason='ranks need MPI: pip install "penstock[ranks]"'
)
PATIENCE_SECONDS = 120

HYDRA = b"""a line

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 9325 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
====

"""

SLOW = """
import time
from penstock.engine import Field, Program
from numpy import float64

class Patient(Program):
    value = Field(float64, fill=1.0)
    combine, everywhere, max_iter = "sum", True, 60

    def send(value, degree): return value / max(degree, 1)
    def edge(sent): return sent
    def vertex(incoming): return incoming

    def done(self, iteration, totals):
        time.sleep(0.05)
        return False
"""


class _Shown:
    def __init__(self) -> None:
        self.buffer = io.BytesIO()


def test_the_report_of_mpiexec_becomes_one_message() -> None:
    report, shown = Report(2), _Shown()
    report.pass_on(io.BytesIO(b"\x1epenstock-rank 1 9325\n\x1epenstock-rank 0 9324\n"), shown)
    report.pass_on(io.BytesIO(HYDRA), shown)
    assert shown.buffer.getvalue() == b"a line\n====\n\n"
    message = report.message()
    assert message is not None
    assert message.startswith("rank 1 of 2 on ")
    assert "(process 9325) was killed by SIGKILL" in message


def test_without_a_report_there_is_no_message() -> None:
    report = Report(2)
    report.pass_on(io.BytesIO(b"all good\n"), _Shown())
    assert report.message() is None


def test_a_budget_is_that_of_all_ranks() -> None:
    error = of_all_ranks(BudgetError("--host-memory", "too small", 6), 2)
    assert str(error) == "in each of 2 ranks, which divide it, too small: give --host-memory 12MiB or more"
    assert of_all_ranks(BudgetError("--device-memory", "too small", 6), 2).least_mib == 6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--devices", "cuda:0,gpu"], "'gpu' is no device"),
        (["--devices", "all,cpu"], "all stands alone"),
        (["--devices", "cpu,cpu", "--device", "cuda:0"], "give one of them"),
        (["--devices", "cpu,cpu"], "run it as a command of its own"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], words: str) -> None:
    graph = on_disk(shape("ring"), tmp_path / "ring.h5")
    assert words in refused(capsys, "run", "bfs", graph.path, "--source", 1, *options)


def started(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "penstock.tools.main", "run", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


@needs_mpi
@pytest.mark.slow
def test_two_ranks_print_and_write_what_one_does(tmp_path: Path) -> None:
    graph = on_disk(shape("wide"), tmp_path / "wide.h5", chunk_edges=1024).path
    common = ("bfs", graph, "--source", 1, "--json", "--top", 3)
    answers = []
    uneven = ("--devices", "cpu,cpu", "--shares", "1,3", "--no-repartition")
    ways = {"one": ("--device", "cpu"), "two": uneven, "mixed": ("--devices", "cpu,emulated")}
    for name, device in ways.items():
        code, out, err = ended(started(tmp_path, *common, *device, "--run-dir", name, "--output", "levels.csv"))
        assert (code, err) == (0, "")
        answers.append(json.loads(out))
    assert answers[0]["top"] == answers[1]["top"] == answers[2]["top"]
    for other in ("two", "mixed"):
        assert (tmp_path / "one/levels.csv").read_text() == (tmp_path / other / "levels.csv").read_text()
        assert sorted(path.name for path in (tmp_path / "one").iterdir()) == sorted(
            path.name for path in (tmp_path / other).iterdir()
        )


def _ranks_of(process: subprocess.Popen[str]) -> dict[int, int]:
    """The processes of the ranks that a command has started, by rank."""
    below = psutil.Process(process.pid).children(recursive=True)
    ranks = (one for one in below if "penstock.tools.main" in one.cmdline() and "PMI_RANK" in one.environ())
    return {int(one.environ()["PMI_RANK"]): one.pid for one in ranks}


@needs_mpi
@pytest.mark.slow
def test_a_killed_rank_ends_the_job_and_another_number_resumes_it(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    graph = on_disk(shape("wide"), tmp_path / "wide.h5", chunk_edges=1024).path
    common = ("slow.py:Patient", graph, "--output", "values.csv")
    code, _, err = ended(started(tmp_path, *common, "--device", "cpu"))
    assert code == 0, err
    wanted = (tmp_path / "values.csv").read_text()
    (tmp_path / "values.csv").unlink()
    kept = ("--checkpoint", "state", "--checkpoint-every", "5")
    for trial, count in enumerate((2, 3)):
        devices = ",".join(["cpu"] * count)
        resume = ("--resume",) if trial else ()
        process = started(tmp_path, *common, *kept, *resume, "--devices", devices)
        before = set((tmp_path / "state").glob("*.penstock")) if trial else set()
        limit = time.monotonic() + PATIENCE_SECONDS
        while set((tmp_path / "state").glob("*.penstock")) <= before and time.monotonic() < limit:
            time.sleep(0.05)
        victim = random.Random(trial).randrange(count)
        os.kill(_ranks_of(process)[victim], signal.SIGKILL)
        code, out, err = ended(process)
        assert (code, out) == (1, "")
        assert f"rank {victim} of {count} on " in err
        assert "SIGKILL" in err
        assert not (tmp_path / "values.csv").exists()
    process = started(tmp_path, *common, *kept, "--resume", "--device", "cpu")
    code, out, err = ended(process)
    assert code == 0, err
    assert "before it was resumed" in out
    assert (tmp_path / "values.csv").read_text() == wanted


@needs_mpi
@pytest.mark.slow
def test_an_error_in_one_rank_is_said_once(tmp_path: Path) -> None:
    text = SLOW.replace("time.sleep(0.05)", "int('boom') if __import__('os').environ.get('PMI_RANK') == '1' else 0")
    (tmp_path / "slow.py").write_text(text)
    graph = on_disk(shape("ring"), tmp_path / "ring.h5").path
    code, out, err = ended(started(tmp_path, "slow.py:Patient", graph, "--devices", "cpu,cpu"))
    assert (code, out) == (1, "")
    assert err.startswith("penstock: rank 1 of 2 on ")
    assert "ValueError" in err
    assert err.count("\n") == 1
    code, out, err = ended(started(tmp_path, "bfs", "no.h5", "--source", 1, "--devices", "cpu,cpu"))
    assert (code, out) == (2, "")
    assert err.count("no.h5 does not exist") == 1
