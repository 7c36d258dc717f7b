"""Progress on stderr: on a terminal bars with what is done, rate and time left; elsewhere a line now and then.

Without a terminal nothing of rich, which draws, is imported. When asked to be quiet nothing is shown.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from penstock.storage.base.errors import printable
from penstock.storage.base.stage_clock import compile_times, compiled_now
from penstock.storage.base.threads import start
from penstock.storage.companion.process import planned_kernels
from penstock.tools.base import log
from penstock.tools.base.log import lines_above
from penstock.tools.base.output import WITHOUT_RATE, Console, amounts, seconds
from penstock.tools.base.sent_progress import WANTED, SentBars

DEFAULT_SECONDS = 60.0
"""Between two lines, where nobody has said how often."""
CONVERSION_STAGES = {
    "read": "reading",
    "map": "numbering",
    "select": "looking for vertices with edges",
    "out": "writing out-edges",
    "in": "writing in-edges",
    "windows": "writing windows",
}
"""What a stage of a conversion or an extraction is called."""


@dataclass
class _Task:
    """A stage: what it is called, how far it is; when it began, and how far it was at the line before."""

    text: str
    total: float | None
    unit: str
    began: float
    done: float = 0.0
    told_at: float = 0.0
    told: float = 0.0

    def line(self, now: float) -> str:
        """What is said of it: amounts, rate since the line before, and at that rate the time left."""
        since, more = now - self.told_at, self.done - self.told
        rate = more / since if since > 0 and more > 0 else None
        self.told_at, self.told = now, self.done
        told = f"{self.text}: {amounts(self.done, self.total, rate, self.unit)}"
        if rate is None or self.total is None or self.done >= self.total or self.unit in WITHOUT_RATE:
            return told
        return f"{told}, {seconds((self.total - self.done) / rate)} left at this rate"


class LogLines:
    """Writes a line every so many seconds, from a thread of its own, until `end`.

    Parameters
    ----------
    every : float
        Seconds between two lines, above 0.
    write : callable
        Takes a line.
    now : callable
        The time of day that counts.
    """

    def __init__(self, every: float, write: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self._write, self._now, self._every = write, now, every
        self._began = now()
        self._tasks: dict[int, _Task] = {}
        self._numbers = 0
        self._before: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin with the lines."""
        self._thread = threading.Thread(target=self._watch, name="penstock-log-lines", daemon=True)
        start(self._thread)

    def before_line(self, call: Callable[[], None]) -> None:
        """Let `call` be called before each line, to say how far the work is."""
        self._before.append(call)

    def add_task(self, description: str, *, total: float | None, unit: str) -> int:
        """Add a stage; return its number."""
        with self._lock:
            self._numbers += 1
            now = self._now()
            self._tasks[self._numbers] = _Task(description, total, unit, now, told_at=now)
            return self._numbers

    def update(self, number: int, *, completed: float, total: float | None, description: str | None = None) -> None:
        """Note how far a stage is, unless it is over."""
        task = self._tasks.get(number)
        if task is not None:
            task.done, task.total, task.text = completed, total, description or task.text

    def stop_task(self, number: int) -> None:
        """A stage is over, and forgotten."""
        with self._lock:
            self._tasks.pop(number, None)

    remove_task = stop_task

    def end(self) -> None:
        """Write no further lines."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def tell(self) -> None:
        """Write a line now, of the stage that began last; nothing where none has begun."""
        for call in self._before:
            call()
        with self._lock:
            if not self._tasks:
                return
            now = self._now()
            last = next(reversed(self._tasks.values()))
            text = f"{last.line(now)}; {seconds(now - self._began)} so far"
        self._write(printable(text))

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self.tell()


class ProgressBars:
    """Shows how far the work is: a bar for each stage.

    bars: a display that is drawn, None without a terminal. lines: of a log, None without.
    """

    def __init__(self, bars: Any = None, lines: LogLines | None = None) -> None:
        self._bars, self._lines = bars, lines
        self._displays = [display for display in (bars, lines) if display is not None]
        self._tasks: dict[str, list[Any]] = {}
        self._units: dict[str, str] = {}
        self._notes: dict[str, str] = {}

    def __call__(self, stage: str, done: float, total: float | None, unit: str, note: str = "") -> None:
        """Move the stage's bar; a new stage starts a new one, and so does another unit.

        total: None if unknown; unit: bytes, seconds, a noun; note: what is said behind the stage's name.
        """
        if not self._displays:
            return
        told: dict[str, str] = {}
        if self._units.get(stage, unit) != unit:
            self.drop(stage)
        self._units[stage] = unit
        if stage not in self._tasks:
            for display, *tasks in zip(self._displays, *self._tasks.values(), strict=True):
                for task in tasks:
                    display.stop_task(task)
            self._tasks[stage] = [d.add_task(printable(stage), total=total, unit=unit) for d in self._displays]
        if self._notes.get(stage, "") != note:
            self._notes[stage] = note
            told = {"description": printable(f"{stage}: {note}" if note else stage)}
        for display, task in zip(self._displays, self._tasks[stage], strict=True):
            display.update(task, completed=done, total=total, **told)

    def convert(self, stage: str, done: int, total: int | None) -> None:
        """Move the bar of a stage of a conversion or an extraction."""
        self(CONVERSION_STAGES[stage], done, total, "bytes" if stage == "read" else "edges")

    @property
    def visible(self) -> bool:
        """Whether anything is shown, be it a line now and then."""
        return bool(self._displays)

    @property
    def drawn(self) -> bool:
        """Whether bars are drawn, so that lines may be written above them."""
        return self._bars is not None

    def beside(self) -> ProgressBars:
        """Return further bars on the same display, for another thread: they stop none of these."""
        return ProgressBars(self._bars, self._lines)

    def apart(self) -> tuple[ProgressBars, ProgressBars]:
        """Return bars that are only drawn, and bars that are only told to a log."""
        return ProgressBars(self._bars), ProgressBars(None, self._lines)

    def before_line(self, call: Callable[[], None]) -> None:
        """Let `call` be called, from another thread, before a line of a log is written; never where there are none."""
        if self._lines is not None:
            self._lines.before_line(call)

    def drop(self, stage: str) -> None:
        """Remove a stage's bar; without effect where it has none."""
        self._notes.pop(stage, None)
        for display, task in zip(self._displays, self._tasks.pop(stage, ()), strict=False):
            display.remove_task(task)

    def write(self, line: str) -> None:
        """Write a line above the bars, which stays."""
        if self._bars is not None:
            self._bars.console.print(
                printable(line), markup=False, highlight=False, no_wrap=True, overflow="crop", crop=True
            )


COMPILING = "compiling kernels, once on this machine"
"""The bar of what a command waits for where its kernels are not in the user's cache."""


def compiling_bar(show: ProgressBars) -> Callable[[], None]:
    """Return what shows that a command waits for kernels to be compiled, and which, or that it is over."""
    beside, before = show.beside(), compile_times()

    def look() -> None:
        kernel, now = compiled_now(), compile_times()
        if kernel is None:
            beside.drop(COMPILING)
        else:
            show_compiling(beside, kernel, now.compiled - before.compiled, now.compiling - before.compiling)

    return look


def show_compiling(show: ProgressBars, kernel: str, number: int, taken: float) -> None:
    """Show which kernel is compiled, how many have been begun, of how many where that is known, and for how long.

    kernel: "" where its name is not known. number: how many this process has waited for. taken: seconds.
    """
    known = planned_kernels() if kernel else None
    if known is None:
        show(COMPILING, taken, None, "seconds", f"{kernel}, number {number}" if kernel else "")
    else:
        show(COMPILING, *known, "kernels", f"{kernel}, {seconds(taken)}")


@contextmanager
def compiling_shown(show: ProgressBars) -> Iterator[None]:
    """Show within the block that the command waits for kernels to be compiled."""
    with looked_at(show, compiling_bar(show)):
        yield


@contextmanager
def looked_at(show: ProgressBars, look: Callable[[], None]) -> Iterator[None]:
    """Call `look` again and again within the block where bars are drawn, else before each line of a log."""
    if not show.drawn:
        show.before_line(look)
    with looking_again(look) if show.drawn else nullcontext():
        yield


PAUSE = 0.2
"""Seconds between two looks."""


@contextmanager
def looking_again(look: Callable[[], None]) -> Iterator[None]:
    """Call `look` from another thread, again and again until the block ends."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PAUSE):
            look()

    thread = threading.Thread(target=watch, name="penstock-progress", daemon=True)
    start(thread)
    try:
        yield
    finally:
        ended.set()
        thread.join()


def on_terminal(*, quiet: bool) -> bool:
    """Whether progress is shown."""
    return not quiet and sys.stderr.isatty()


@contextmanager
def progress(console: Console) -> Iterator[ProgressBars]:
    """Yield a function that shows how far the work is: bars on a terminal, elsewhere a line every minute.

    Where another process has the terminal and shows it, it is sent there. `console.log_every` is how often a line is
    written, on a terminal too; without it none is with ``--json``. Lines go to the log file of a run in any case.
    """
    quiet, every = console.silent, console.log_every
    sent = not quiet and bool(os.environ.get(WANTED))
    drawn = sent or on_terminal(quiet=quiet)
    said = not console.quiet if every else not (quiet or drawn)
    lines = None
    with ExitStack() as stack:
        if every != 0:
            lines = LogLines(every or DEFAULT_SECONDS, log.teller(said=said))
            lines.start()
            stack.callback(lines.end)
        if sent:
            display: Any = SentBars()
            stack.callback(display.end)
        else:
            display = stack.enter_context(_drawing(bars())) if drawn else None
        yield ProgressBars(display, lines)


@contextmanager
def waiting(title: str, *, quiet: bool) -> Iterator[None]:
    """Show that work of unknown length is going on, for how long it has been, and the kernels that it waits for."""
    if not on_terminal(quiet=quiet):
        yield
        return
    began = time.monotonic()
    with _drawing(bars()) as shown:
        show = ProgressBars(shown)
        show_kernels = compiling_bar(show)

        def look() -> None:
            show(title, time.monotonic() - began, None, "seconds")
            show_kernels()

        look()
        with looking_again(look):
            yield


@contextmanager
def _drawing(display: Any) -> Iterator[Any]:
    """Draw a display of rich; lines that this process writes to stderr come above it."""

    def above(line: str) -> None:
        display.console.print(line, markup=False, highlight=False, soft_wrap=True)

    with display, lines_above(above):
        yield display


def bars() -> Any:
    """Return a rich display, on stderr, of stages, their amounts and the time left; it vanishes at the end."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Amounts(ProgressColumn):
        """How much is done, of how much, how fast."""

        def render(self, task: Task) -> Text:
            return Text(amounts(task.completed, task.total, task.speed, task.fields["unit"]))

    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}", markup=False)),
        *(BarColumn(), Amounts(), TimeRemainingColumn()),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
