"""Lines for iterations: each its own at first, then together, ever more rarely; on a terminal only."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from penstock.engine.state.records import IterationRecord
from penstock.tools.base.progress import progress
from penstock.tools.run.live_table import AT_ONCE, Pace, Tally, iterations, line
from penstock.transfer.values.task import TaskRecord
from support.clocks import MovedClock
from support.graphs import on_disk, shape
from support.terminal import on_a_terminal


def record(number: int, direction: str = "push", **facts: Any) -> IterationRecord:
    return IterationRecord(number, direction, 10 + number, 100, 0.5, **facts)


def lines_of(count: int, each_seconds: float) -> list[Tally]:
    clock = MovedClock()
    pace = Pace(clock)
    told = []
    for number in range(count):
        clock.now += each_seconds
        told.append(pace.take(record(number)))
    return [tally for tally in (*told, pace.rest()) if tally is not None]


@pytest.mark.parametrize(
    ("count", "each_seconds", "least", "most"),
    [
        (0, 1.0, 0, 0),
        (5, 1e-4, 5, 5),
        (100_000, 1e-4, AT_ONCE + 1, AT_ONCE + 12),
        (100_000, 0.036, 300, 600),
        (100, 10.0, 100, 100),
        (20, 500.0, 20, 20),
    ],
)
def test_a_long_run_does_not_fill_the_screen(count: int, each_seconds: float, least: int, most: int) -> None:
    """Ten seconds of them make a few lines, an hour some hundreds; slow ones have a line each."""
    told = lines_of(count, each_seconds)
    assert least <= len(told) <= most
    numbers = [(tally.first, tally.last) for tally in told]
    assert [first for first, _ in numbers] == [0, *(last + 1 for _, last in numbers[:-1])][: len(numbers)]
    assert sum(tally.edges for tally in told) == 100 * count
    assert count == 0 or numbers[-1][1] == count - 1


def test_a_line_tells_where_the_frontier_is_and_sums_the_rest() -> None:
    tally = Tally(12)
    for number, way in ((12, "push"), (13, "pull")):
        tasks = [TaskRecord("filter", "out", (0,), bytes_disk=1 << 20, bytes_link=1 << 10)]
        tally.add(record(number, way, tasks=tasks))
    assert line(tally, 3 << 20, linked=False).split() == [
        "12–13",
        "both",
        "23",
        "200",
        "200",
        "2.0",
        "MiB",
        "3.0",
        "MiB",
    ]
    assert line(tally, 3 << 30, linked=True).split()[5:] == ["2.0", "KiB", "3.0", "GiB"]
    one = Tally(0)
    one.add(IterationRecord(0, "pull", 1, 2_500_000, 0.0))
    assert line(one, -5, linked=False).split() == ["0", "pull", "1", "2.5", "M", "0", "B", "0", "B"]
    assert len(line(one, 0, linked=False)) <= 80


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, True)])
def test_nothing_is_shown_or_measured_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr("penstock.tools.run.live_table.resident_bytes", lambda: pytest.fail("measured"))
    with progress(quiet=quiet) as show:
        seen = iterations(show)
        seen.begin("BFS", None, 100)  # type: ignore[arg-type]
        seen.note(record(0))
        seen.end()
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_a_terminal_shows_every_iteration(tmp_path: Path) -> None:
    on_disk(shape("skewed"), tmp_path / "g.h5")
    command = [sys.executable, "-m", "penstock.tools.cli", "run", "bfs", "g.h5"]
    command += ["--source", "0", "--host-memory", "1GiB"]
    shown = on_a_terminal(command, columns=100, folder=tmp_path)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "iteration   way   vertices" in text
    assert "memory of 1.0 GiB" in text
    assert re.search(r" 0 +(push|pull) +1 ", text)
