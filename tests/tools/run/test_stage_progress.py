"""Bars of stages: for those that last, with their bytes, on a terminal only; they go when the stage has ended."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

from penstock.storage.clocks.compile_times import compiling
from penstock.storage.clocks.stage_clock import StageClock, installed, stage
from penstock.tools.base.progress import COMPILING, PAUSE, ProgressBars
from penstock.tools.run.account import JobClock
from penstock.tools.run.live_table import LASTING, StageBars, stages_shown
from support.clocks import MovedClock
from support.terminal import on_a_terminal


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
    bars = StageBars(show, JobClock(clock))
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
    bars = StageBars(show, JobClock(clock))
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
    with stages_shown(ProgressBars(), JobClock(StageClock())):
        assert threading.active_count() == before


SLOW_STAGE = """
import time
from penstock.storage.clocks.stage_clock import StageClock, installed, stage
from penstock.tools.base.output import Console
from penstock.tools.base.progress import progress
from penstock.tools.run.account import JobClock
from penstock.tools.run.live_table import stages_shown
with installed(StageClock(time.perf_counter() - 2, "loading")) as clock, progress(Console(quiet={quiet})) as show:
    with stages_shown(show, JobClock(clock)), stage("loading", 8 << 20) as meter:
        for _ in range(8):
            meter.bytes += 1 << 20
            time.sleep(0.1)
"""


def test_a_terminal_shows_bytes_rate_and_time_left() -> None:
    shown = on_a_terminal([sys.executable, "-c", SLOW_STAGE.format(quiet=False)], columns=120)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"loading edges .* MiB of 8\.0 MiB, [0-9.]+ MiB/s 0:00:0", text), text
    assert on_a_terminal([sys.executable, "-c", SLOW_STAGE.format(quiet=True)], columns=120) == ""
