"""The stages of a job on a terminal: a bar for each that lasts longer than a second, with bytes, rate and time left.

A thread asks the clock of the job; nothing below calls back. For a log it is asked once for each line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.storage.clocks.compile_times import compile_times, compiled_now
from penstock.tools.base.progress import COMPILING, PAUSE, ProgressBars, looking_again, show_compiling
from penstock.tools.run.account import STAGE_NAMES, JobClock

LASTING = 1.0
"""Seconds from which a stage has a bar."""
UNSEEN = ("imports", "other")
"""Stages without a bar."""
READING = "reading edges"
"""The bar of iterations that read from disk, beside their own, which moves at the end of an iteration."""
ONCE = {"compiling": COMPILING}


class StageBars:
    """A bar for the stage that a job is in."""

    def __init__(self, show: ProgressBars, clock: JobClock) -> None:
        self._show, self._clock = show, clock
        self._shown = ""
        self._compiled = compile_times().compiled
        self._read = self._grown = 0

    def look(self) -> None:
        """Show where the job is now; the bar of a stage that has ended goes."""
        present = self._clock.clock.present()
        seen, total = present.meter.seen, present.meter.total_bytes
        name = ONCE.get(present.stage, STAGE_NAMES.get(present.stage, present.stage))
        if present.stage == "iterations":
            name = READING if self._reads_on(seen) else ""
        elif present.stage in UNSEEN or present.seconds < LASTING:
            name = ""
        if self._shown not in ("", name):
            self._show.drop(self._shown)
        self._shown = name
        if not name:
            return
        if present.stage == "compiling":
            number = compile_times().compiled - self._compiled
            show_compiling(self._show, compiled_now() or "", number, present.seconds)
        elif seen or total:
            self._show(name, seen, total, "bytes")
        else:
            self._show(name, present.seconds, None, "seconds")

    def _reads_on(self, read: int) -> bool:
        """Whether iterations have been reading from disk for long."""
        self._grown = self._grown + 1 if read > self._read else 0
        self._read = read
        return self._grown * PAUSE >= LASTING


@contextmanager
def stages_shown(show: ProgressBars, clock: JobClock) -> Iterator[None]:
    """Show the stages of a job until the block ends: as they go on a terminal, in a log when a line is due."""
    if not show.visible:
        yield
        return
    bars = StageBars(show.beside(), clock)
    if show.drawn:
        with looking_again(bars.look):
            yield
        return
    show.before_line(bars.look)
    yield
