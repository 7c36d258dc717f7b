"""`--devices cpu,cpu`: the same answer as one process, one message when a rank dies, and checkpoints in between."""

from __future__ import annotations

import io
import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from penstock.storage.base.errors import BudgetError, InputError
from penstock.tools.base.sent_progress import MARK
from penstock.tools.run.execute_job import of_all_ranks
from penstock.tools.run.launch_ranks import Report, check_shared_memory
from support.commands import answered, refused
from support.faults import flip_chunk, small_disk
from support.graphs import on_disk, shape
from support.launched_ranks import SLOW, ended, needs_mpi, started
from support.terminal import on_a_terminal

HYDRA = b"""a line

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 99999325 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
====

"""


class _Shown:
    def __init__(self) -> None:
        self.buffer = io.BytesIO()


def test_the_report_of_mpiexec_becomes_one_message() -> None:
    report, shown = Report(2), _Shown()
    with subprocess.Popen(["sleep", "60"]) as other:
        report.pass_on(io.BytesIO(f"\x1epenstock-rank 1 99999325\n\x1epenstock-rank 0 {other.pid}\n".encode()), shown)
        other.kill()
    report.pass_on(io.BytesIO(HYDRA), shown)
    assert shown.buffer.getvalue() == b"a line\n====\n\n"
    message = report.message()
    assert message is not None
    assert message.startswith("rank 1 of 2 on ")
    assert "(process 99999325) was killed by SIGKILL" in message


def test_where_mpiexec_names_another_rank_both_are_named() -> None:
    report = Report(2)
    with subprocess.Popen(["true"]) as first, subprocess.Popen(["sleep", "60"]) as other:
        first.wait()
        names = f"\x1epenstock-rank 1 {first.pid}\n\x1epenstock-rank 0 {other.pid}\n"
        report.pass_on(io.BytesIO(names.encode()), _Shown())
        other.kill()
    report.pass_on(io.BytesIO(HYDRA.replace(b"99999325", str(other.pid).encode())), _Shown())
    message = report.message()
    assert message is not None
    assert message.startswith("rank 1 of 2 on ")
    assert f"(process {first.pid}), or rank 0 (process {other.pid}), was killed, or crashed" in message


@pytest.mark.parametrize("told", [99999324, 99999325], ids=["the dead one is reported", "one that mpiexec ended is"])
def test_a_rank_that_was_killed_before_it_said_its_number_is_one_of_them(told: int) -> None:
    report = Report(2)
    report.pass_on(io.BytesIO(f"\x1epenstock-rank 0 {told}\n".encode()), _Shown())  # which mpiexec ends then
    report.pass_on(io.BytesIO(HYDRA), _Shown())
    message = report.message()
    assert message is not None
    assert message.startswith("one of 2 ranks on ")
    assert "was killed by SIGKILL" in message


def test_without_a_report_there_is_no_message() -> None:
    report = Report(2)
    report.pass_on(io.BytesIO(b"all good\n"), _Shown())
    assert report.message() is None


def test_a_budget_is_that_of_all_ranks() -> None:
    error = of_all_ranks(BudgetError("--host-memory", "too small", 6), 2)
    assert str(error) == (
        "in each of 2 ranks, which divide it, too small: give --host-memory 12MiB or more; expect a peak of 312MiB, "
        "since interpreter and libraries take up to 300MiB beside it"
    )
    assert of_all_ranks(BudgetError("--device-memory", "too small", 6), 2).least_mib == 6


def test_too_little_shared_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"2 ranks need 28\.0 MiB of memory in .*: No such file"):
        check_shared_memory(2, tmp_path / "none")
    with small_disk(tmp_path / "shm", 36 << 20) as shm:
        check_shared_memory(3, shm)
        assert list(shm.iterdir()) == []
        with pytest.raises(InputError, match="No space left on device; enlarge it"):
            check_shared_memory(4, shm)


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


@needs_mpi
@pytest.mark.slow
def test_two_ranks_print_and_write_what_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = on_disk(shape("wide"), tmp_path / "wide.h5", chunk_edges=1024).path
    common = ("bfs", graph, "--source", 1, "--top", 3)
    written = ("--output", "levels.csv", "--run-dir")
    answers = [answered(capsys, "run", *common, "--device", "cpu", *written, "one", silent=True)]
    uneven = ("--devices", "cpu,cpu", "--shares", "1,3", "--no-repartition")
    ways = {"two": uneven, "mixed": ("--devices", "cpu,emulated")}
    for name, device in ways.items():
        code, out, err = ended(started(tmp_path, *common, "--json", *device, *written, name))
        assert (code, err) == (0, "")
        answers.append(json.loads(out))
    assert answers[0]["top"] == answers[1]["top"] == answers[2]["top"]
    for other in ("two", "mixed"):
        assert (tmp_path / "one/levels.csv").read_text() == (tmp_path / other / "levels.csv").read_text()
        assert sorted(path.name for path in (tmp_path / "one").iterdir()) == sorted(
            path.name for path in (tmp_path / other).iterdir()
        )


@needs_mpi
@pytest.mark.slow
def test_progress_is_shown_by_the_process_on_the_terminal(tmp_path: Path) -> None:
    graph = on_disk(shape("ring"), tmp_path / "ring.h5").path
    command = [sys.executable, "-m", "penstock.tools.main", "run", "bfs", str(graph), "--source", "1"]
    command += ["--devices", "cpu,cpu"]
    shown = on_a_terminal(command, columns=120, folder=tmp_path)
    assert shown.count("iteration   way") == 1
    assert MARK.decode() not in shown
    assert on_a_terminal([*command, "--quiet"], columns=120, folder=tmp_path) == ""


def failed(folder: Path, *arguments: object) -> str:
    """What a job of two ranks that must fail prints: one line that begins with the rank and its host."""
    code, out, err = ended(started(folder, *arguments, "--devices", "cpu,cpu", "--quiet"))
    assert (code, out, err.count("\n")) == (1, "", 1), err
    found = re.fullmatch(rf"penstock: (rank \d of 2) on {re.escape(socket.gethostname())}: (.*)\n", err)
    assert found is not None, err
    return f"{found[1]}: {found[2]}"


@needs_mpi
@pytest.mark.slow
def test_every_way_of_one_rank_to_fail_is_one_message(tmp_path: Path) -> None:
    on_first = "__import__('os').environ.get('PMI_RANK') == '1' and iteration == 1"
    for error, words in (("int('boom')", "ValueError"), ("bytearray(1 << 60)", "out of memory")):
        (tmp_path / "slow.py").write_text(SLOW.replace("time.sleep(0.05)", f"{error} if {on_first} else 0"))
        ring = on_disk(shape("ring"), tmp_path / f"{words[:3]}.h5").path
        message = failed(tmp_path, "slow.py:Patient", ring)
        assert message.startswith("rank 1 of 2: ")
        assert words in message
    graph = on_disk(shape("wide"), tmp_path / "wide.h5", chunk_edges=1024)
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        message = failed(tmp_path, "pagerank", graph.path, "--max-iter", 3, "--output", disk / "ranks.csv")
        assert message.startswith("rank 0 of 2: ")
        assert "ranks.csv could not be written: No space left" in message
        assert not list(disk.iterdir())
    flip_chunk(graph, len(graph.out.neighbors.offsets) - 1)
    message = failed(tmp_path, "pagerank", graph.path, "--direction", "push")
    assert "wide.h5" in message
    assert "is damaged" in message


@needs_mpi
@pytest.mark.slow
def test_what_all_ranks_find_is_said_once(tmp_path: Path) -> None:
    code, out, err = ended(started(tmp_path, "bfs", "no.h5", "--source", 1, "--devices", "cpu,cpu"))
    assert (code, out) == (2, "")
    assert err.count("no.h5 does not exist") == 1
