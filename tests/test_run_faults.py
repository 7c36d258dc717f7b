"""Faults of everything but the disk, injected into whole runs: one error, nothing hangs, nothing is left behind.

Out of device memory at every allocation in turn (LAGraph's brutal malloc), an exception in a reading thread, a user's
program that raises or makes NaN, outputs that cannot be written. storage/faults.md lists all faults and their tests.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Field, Graph, Program, Session, run
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.format import frames
from penstock.tools import cli
from penstock.transfer.devices.emulated import EmulatedDevice
from support.faults import break_disk
from support.graphs import on_disk, shape
from support.program_cases import check, program_of

EDGES = shape("skewed", weights="uint8")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A graph of a good many chunks in both directions."""
    on_disk(EDGES, tmp_path / "faulty.h5")
    return tmp_path / "faulty.h5"


class FailingDevice:
    """Counts what an emulated device allocates, and fails one allocation as a full device does."""

    def __init__(self, patch: pytest.MonkeyPatch, failing: int) -> None:
        self.count = 0
        real = EmulatedDevice.array

        def array(device: EmulatedDevice, count: int, dtype: Any) -> Any:
            self.count += 1
            if self.count - 1 == failing:
                raise RunError(f"device {device.name} was asked for {count} items: raise --device-memory")
            return real(device, count, dtype)

        patch.setattr(EmulatedDevice, "array", array)


@pytest.mark.parametrize("route", ["auto", "filter"])
def test_out_of_device_memory_at_any_allocation_is_one_error(
    route: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"device": "emulated", "route": route, "direction": "push"}
    before = threading.active_count()

    def attempt(failing: int) -> int:
        with monkeypatch.context() as patch:
            device = FailingDevice(patch, failing)
            with Session(Graph.open(path), **options) as session:
                check("sssp", EDGES, session.run(program_of("sssp", EDGES)).fields)
        return device.count

    many = attempt(-1)
    assert many > 0
    for failing in range(many):
        with pytest.raises(RunError, match="raise --device-memory"):
            attempt(failing)
        assert threading.active_count() <= before, "a thread was left behind"
    attempt(-1)


@pytest.mark.parametrize("name", ["bfs", "pagerank"])
@pytest.mark.parametrize("route", ["auto", "zero-copy", "filter"])
def test_the_least_device_memory_is_taken_at_its_word(name: str, route: str, path: Path) -> None:
    """Below it one error before the start that shows the sum; with it, and with more, the right answer."""
    graph = Graph.open(path)

    def attempt(size: int) -> int:
        with Session(graph, device="emulated", device_memory=size, route=route) as session:
            check(name, EDGES, session.run(program_of(name, EDGES)).fields)
            assert session._device is not None
            held: int = session._device.used_bytes
        return held

    with pytest.raises(InputError, match="--device-memory 1 B is too small: vertex state and index take") as caught:
        attempt(1)
    least = int(re.findall(r"give --device-memory (\d+)MiB or more", str(caught.value))[0]) << 20
    with pytest.raises(InputError, match="is too small"):
        attempt(least - (1 << 20))
    for size in (least, least + (1 << 20), 4 * least):
        assert attempt(size) <= size


@pytest.mark.parametrize("error", [ValueError("a bug"), MemoryError("no room"), KeyboardInterrupt()])
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_an_exception_in_a_reading_thread_ends_the_run(
    error: BaseException, device: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = threading.active_count()
    graph = Graph.open(path)
    graph.out.index()
    real = frames.Frames.flaw
    calls = [0]

    def flaw(self: Any, *arguments: Any) -> str | None:
        calls[0] += 1
        if calls[0] == 4:
            raise error
        return real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(frames.Frames, "flaw", flaw)
        with pytest.raises(type(error)):
            run(program_of("wcc", EDGES), graph, device=device)
    assert threading.active_count() <= before, "a thread was left behind"
    check("wcc", EDGES, run(program_of("wcc", EDGES), graph, device=device).fields)


def test_degrees_and_ids_survive_one_error_and_name_a_lasting_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        disk = break_disk(patch, "eio", lambda number: number % 2 == 0)
        assert Graph.open(path).out.index().edges == Graph.open(path).edges
    assert disk.broken > 0
    break_disk(monkeypatch, "eio")
    with pytest.raises(RunError, match=r"faulty\.h5 cannot be read at offset \d+"):
        Graph.open(path).out.index()


class Spoiled(Program):
    x = Field(np.float64, fill=1.0)
    combine = "sum"

    def edge(x):
        return x

    def vertex(x, incoming):
        return incoming * np.nan


class Filled(Spoiled):
    x = Field(np.float64, fill=np.nan)
    max_iter = 2

    def vertex(x, incoming):
        return x


RING = Graph.from_arrays([0, 1, 2, 3], [1, 2, 0])


def test_nan_is_an_error_and_not_an_endless_run() -> None:
    with pytest.raises(RunError, match=r"Spoiled: 3 of 3 values of 'x' are no numbers \(NaN\) after 64 iterations"):
        run(Spoiled(), RING, kernels="reference")


def test_nan_is_an_error_at_the_end_too() -> None:
    program = Spoiled()
    program.max_iter = 1
    with pytest.raises(RunError, match="after 1 iterations"):
        run(program, RING, kernels="reference")


def test_a_program_may_use_nan_itself() -> None:
    assert np.isnan(run(Filled(), RING, kernels="reference").fields["x"]).all()


RAISING = """
import numpy as np
from penstock.engine import Field, Program

class Base(Program):
    x = Field(np.float64)
    combine = "sum"
    max_iter = 1
    def edge(x):
        return x
    def vertex(x, incoming):
        return incoming

class Made(Base):
    def __init__(self):
        raise KeyError("a name")

class Started(Base):
    def start(self, graph, state):
        raise ValueError("first line\\nsecond line")

class Starved(Base):
    def start(self, graph, state):
        return self.more()
    def more(self):
        assert False
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Made", r"own\.py:16: Made\.__init__\(\) raised KeyError: 'a name'"),
        ("Started", r"own\.py:20: Started\.start\(\) raised ValueError: first line$"),
        ("Starved", r"own\.py:26: Starved\.more\(\) raised AssertionError$"),
    ],
)
def test_a_users_program_that_raises_is_one_message_with_its_line(
    name: str, message: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(RAISING)
    output = tmp_path / "answer.csv"
    code = cli.run_command(["run", f"{tmp_path / 'own.py'}:{name}", str(path), "--output", str(output)])
    shown = capsys.readouterr()
    assert (code, shown.out, output.exists()) == (1, "", False)
    assert shown.err.count("\n") == 1
    assert re.search(message, shown.err.strip()), shown.err


Commands = Callable[[Path, Path], list[str]]


@pytest.mark.parametrize(
    "command",
    [
        lambda graph, output: ["run", "bfs", str(graph), "--source", "0", "--output", f"{output}/answer.csv"],
        lambda graph, output: ["convert", str(graph.with_name("edges.txt")), f"{output}/new.h5"],
        lambda graph, output: ["generate", "rmat", "--scale", "4", "--output", f"{output}/new.h5"],
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(
    command: Commands,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "edges.txt").write_text("0 1\n")
    output = tmp_path / "read-only"
    output.mkdir()
    real = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != output and real(place, mode))
    disk = break_disk(monkeypatch, "eio", lambda number: False)
    Graph.open(path)
    opening = disk.reads
    assert cli.run_command(command(path, output)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "is not writable; name another output" in shown.err
    assert disk.reads <= 2 * opening  # the header at most
    assert list(output.iterdir()) == []


def test_a_full_disk_during_results_is_exit_code_1_and_leaves_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(place: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("penstock.storage.base.atomic.flush", full)
    for ending in ("csv", "parquet", "h5", "npy"):
        output = tmp_path / f"answer.{ending}"
        assert cli.run_command(["run", "bfs", str(path), "--source", "0", "--output", str(output), "-q"]) == 1
        shown = capsys.readouterr()
        assert re.search(rf"answer\.{ending} could not be written: No space left on device; free space", shown.err)
        assert shown.err.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["faulty.h5"]
