"""Lines for iterations: each its own at first, then together, ever more rarely; on a terminal only; bars of stages."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.state.records import IterationRecord, PhaseRecord
from penstock.storage.base.stage_clock import StageClock, compiling, installed, stage
from penstock.tools.base.output import Console
from penstock.tools.base.progress import COMPILING, PAUSE, LogLines, ProgressBars, progress
from penstock.tools.run.live_table import AT_ONCE, LASTING, LiveTable, Pace, StageBars, Tally, line, stages_shown
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


SESSION: Any = SimpleNamespace(graph=SimpleNamespace(vertices=200, edges=1000))


class Lines(LogLines):
    """Lines of a log that are kept."""

    def __init__(self, clock: MovedClock) -> None:
        self.written: list[str] = []
        super().__init__(60.0, self.written.append, clock)


def test_a_log_tells_iteration_active_vertices_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovedClock()
    monkeypatch.setattr("time.perf_counter", clock)
    log = Lines(clock)
    seen = LiveTable(ProgressBars(None, log))
    seen.begin(PageRank(tol=0.0, max_iter=50), SESSION)
    log.tell()
    clock.now = 2.0
    for number in range(3):
        seen.note(IterationRecord(number, "pull", 50, 1000))
    log.tell()
    seen.end()
    assert log.written == [
        "PageRank: before the first iteration: 0 of 50,000 edges; 0 ms so far",
        "PageRank: iteration 2 of at most 50, 25 % of vertices active: 3,000 of 50,000 edges, 1,500/s, "
        "31.3 s left at this rate; 2 s so far",
    ]


def test_phases_are_named_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovedClock()
    monkeypatch.setattr("time.perf_counter", clock)
    log = Lines(clock)
    seen = LiveTable(ProgressBars(None, log))
    seen.begin(Betweenness(k=4), SESSION)
    for number in range(4):
        clock.now += 10.0
        phase = PhaseRecord(number, f"source {number // 2 + 1} of 4", 8)
        seen.note(IterationRecord(7, "push", 2, 1000, phase=phase))
        if number % 2:
            log.tell()
    assert log.written == [
        "Betweenness: source 1 of 4, iteration 7, 1 % of vertices active, 100 edges/s: 1 of 8 phases; 20 s so far",
        "Betweenness: source 2 of 4, iteration 7, 1 % of vertices active, 100 edges/s: 3 of 8 phases, 0.1/s, "
        "50 s left at this rate; 40 s so far",
    ]
    tally = Pace(clock).take(IterationRecord(0, "push", 2, 1000, 1.0, phase=phase))
    assert tally is not None
    assert line(tally, 0, linked=False).endswith("  source 2 of 4")


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, True)])
def test_nothing_is_shown_or_measured_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr("penstock.tools.run.live_table.resident_bytes", lambda: pytest.fail("measured"))
    with progress(Console(quiet=quiet)) as show:
        seen = LiveTable(show)
        seen.begin(BFS(0), SESSION)
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


class Bars(ProgressBars):
    """Bars that are written down."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[str, tuple[Any, ...]] = {}

    def __call__(self, stage: str, done: float, total: float | None, unit: str, note: str = "") -> None:
        self.shown[stage] = (done, total, unit, note) if note else (done, total, unit)

    def drop(self, stage: str) -> None:
        del self.shown[stage]


def test_a_stage_that_lasts_has_a_bar_until_it_ends() -> None:
    time, show = MovedClock(), Bars()
    clock = StageClock(now=time)
    bars = StageBars(show, clock)
    with installed(clock):
        with stage("index", 1000) as meter:
            time.now += 0.75
            bars.look()
            assert show.shown == {}
            time.now += 0.5
            meter.bytes += 400
            bars.look()
            assert show.shown == {"row index": (400, 1000, "bytes")}
            with compiling("pull"):
                time.now += 2.0
                bars.look()
                assert show.shown == {COMPILING: (2.0, None, "seconds", "pull, number 1")}
        with stage("summary"):
            time.now += 3.0
            bars.look()
            assert show.shown == {"summary": (3.0, None, "seconds")}
        with stage("iterations"):
            time.now += 3.0
            bars.look()
            assert show.shown == {}
        time.now += 3.0
        bars.look()
    assert show.shown == {}


def test_iterations_that_read_for_long_say_how_much() -> None:
    time, show, read = MovedClock(), Bars(), [0]
    clock = StageClock(now=time)
    bars = StageBars(show, clock)
    with installed(clock), stage("iterations", poll=lambda: read[0]):
        for _ in range(round(LASTING / PAUSE)):
            bars.look()
            assert show.shown == {}
            read[0] += 50
        bars.look()
        assert show.shown == {"reading edges": (read[0], None, "bytes")}
        bars.look()
        assert show.shown == {}, "nothing came since"


def test_without_a_terminal_no_thread_is_started() -> None:
    before = threading.active_count()
    with stages_shown(ProgressBars(), StageClock()):
        assert threading.active_count() == before
