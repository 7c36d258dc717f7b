"""Memory and threads that the system refuses: a right answer, or exit code 1 and one message that says what was wanted.

Every NumPy allocation of a whole run fails in turn, as does every start of a thread; whole runs go under limits of
address space. Nothing hangs, no thread stays, and no process dies. The idea is LAGraph's (LG_brutal_malloc.c).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Session
from penstock.engine.programs.bfs import BFS
from penstock.storage.base.errors import RunError
from penstock.storage.base.timeline import Timeline
from penstock.storage.read import reader as reading
from penstock.storage.read.reader import Reader
from penstock.tools import cli
from support.faults import open_files, python
from support.graphs import on_disk, shape

pytestmark = pytest.mark.timeout(120)
EDGES = shape("skewed", weights="uint8")
MAKERS = ("empty", "zeros", "ones", "full", "arange", "concatenate", "repeat", "array", "asarray", "ascontiguousarray")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A graph of a good many chunks in both directions."""
    on_disk(EDGES, tmp_path / "g.h5")
    return tmp_path / "g.h5"


class Refusing:
    """Counts the calls of some functions, and makes one of them fail."""

    def __init__(self, patch: pytest.MonkeyPatch, failing: int, error: Exception) -> None:
        self.count = 0
        self._patch, self._failing, self._error = patch, failing, error

    def watch(self, place: Any, name: str) -> None:
        """Count the calls of this one too."""
        real: Callable[..., Any] = getattr(place, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if self.count - 1 == self._failing:
                raise self._error
            return real(*arguments, **named)

        self._patch.setattr(place, name, counted)


def memory(patch: pytest.MonkeyPatch, failing: int) -> Refusing:
    """Make one NumPy allocation fail, in whichever thread it is."""
    refusing = Refusing(patch, failing, MemoryError("Unable to allocate 4.00 MiB"))
    for name in MAKERS:
        refusing.watch(np, name)
    return refusing


def threads(patch: pytest.MonkeyPatch, failing: int) -> Refusing:
    """Make one start of a thread fail."""
    refusing = Refusing(patch, failing, RuntimeError("can't start new thread"))
    refusing.watch(threading.Thread, "start")
    return refusing


@pytest.mark.parametrize(
    ("refuse", "step", "message"),
    [
        (memory, 7, r"out of memory in penstock\.\S+: Unable to allocate|cannot be allocated; lower"),
        (threads, 1, "cannot be started; raise the limit"),
    ],
)
def test_whatever_is_refused_is_a_right_answer_or_one_message(
    refuse: Callable[[pytest.MonkeyPatch, int], Refusing],
    step: int,
    message: str,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "answer.csv"
    command = ["run", "bfs", str(path), "--source", "0", "--output", str(output), "--no-calibrate", "-q"]

    def attempt(failing: int) -> tuple[int, int]:
        output.unlink(missing_ok=True)
        with monkeypatch.context() as patch:
            refusing = refuse(patch, failing)
            return cli.run_command(command), refusing.count

    before = threading.active_count()
    assert cli.run_command(command) == 0  # compiles the kernels, which know NumPy's own functions only
    right, (_, many) = output.read_text(), attempt(-1)
    assert many > 3
    capsys.readouterr()
    failed = 0
    for failing in range(0, many, step):
        code, _ = attempt(failing)
        shown = capsys.readouterr().err
        assert threading.active_count() <= before, "a thread was left behind"
        if code == 0:
            assert output.read_text() == right
        else:
            assert (code, shown.count("\n"), output.exists()) == (1, 1, False), shown
            assert re.search(message, shown), shown
            failed += 1
    assert failed > 0


def test_a_limit_on_address_space_is_a_right_answer_or_one_message(path: Path) -> None:
    """Also where OpenBLAS would wait for ever, and OpenMP, LLVM and the C library would end the process."""
    code = "import sys; from penstock.tools.cli import main; main(sys.argv[1:])"
    for size in (450 << 20, 560 << 20, 650 << 20):
        done = python(code, "run", "bfs", str(path), "--source", "0", "--no-calibrate", address_bytes=size)
        assert done.returncode == 1, (size, done.stderr)
        assert done.stdout == ""
        assert done.stderr.startswith("penstock: "), (size, done.stderr)
        assert "ulimit -v" in done.stderr


def test_a_reader_whose_buffers_are_refused_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, before = Graph.open(path), threading.active_count()
    handles = len(open_files(path))
    Refusing(monkeypatch, 0, MemoryError()).watch(reading, "aligned_empty")
    with pytest.raises(RunError, match=r"the buffers of \d+ reading threads, 2.0 MiB each, cannot be allocated"):
        Reader(graph, decode_threads=2)
    assert (threading.active_count(), len(open_files(path))) == (before, handles)


@pytest.mark.parametrize("failing", [0, 1, 4])
def test_a_session_whose_threads_are_refused_leaves_nothing(
    failing: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, before = Graph.open(path), threading.active_count()
    with Session(graph) as session:
        handles = len(open_files(path))
        with monkeypatch.context() as patch:
            threads(patch, failing)
            with pytest.raises(RunError, match=r"penstock-read\) cannot be started"):
                session.run(BFS(source=0))
        assert (threading.active_count(), len(open_files(path))) == (before, handles)
        session.run(BFS(source=0))


class Odd(BaseException):
    """What no `except Exception` sees."""


@pytest.mark.parametrize("error", [Odd("odd"), MemoryError("no room"), SystemExit(3)])
@pytest.mark.parametrize("place", ["read", "note"])
def test_no_job_stays_unanswered_whatever_a_thread_raises(
    place: str, error: BaseException, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_: Any, **__: Any) -> None:
        raise error

    graph = Graph.open(path)
    neighbors = np.zeros(graph.edges, graph.vertex_dtype)
    with Reader(graph, decode_threads=1, timeline=Timeline(100)) as reader:
        with monkeypatch.context() as patch:
            patch.setattr(*((reading.DirectFile, "read") if place == "read" else (reading, "_stamp")), raising)
            for _ in range(20):  # more often than there are threads
                with pytest.raises(type(error)):
                    reader.fetch_all(graph.out, neighbors)
        reader.fetch_all(graph.out, neighbors)
