"""Progress bars: done, rate and time left, on stderr and only on a terminal.

Elsewhere, or when asked to be quiet, nothing is imported and nothing costs anything. rich draws.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.storage.base.budget import format_bytes
from penstock.storage.base.printable import printable
from penstock.tools.base.output import seconds
from penstock.tools.base.sent_progress import WANTED, SentBars


class ProgressBars:
    """Shows how far the work is: a bar for each stage. Without `bars` it does nothing."""

    def __init__(self, bars: Any = None) -> None:
        self._bars = bars
        self._tasks: dict[str, Any] = {}

    def __call__(self, stage: str, done: float, total: float | None, unit: str) -> None:
        """Move the stage's bar; a new stage starts a new one. total: None if unknown; unit: bytes, seconds, a noun."""
        if self._bars is None:
            return
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._bars.stop_task(task)
            self._tasks[stage] = self._bars.add_task(printable(stage), total=total, unit=unit)
        self._bars.update(self._tasks[stage], completed=done, total=total)

    @property
    def visible(self) -> bool:
        """Whether anything is shown."""
        return self._bars is not None

    def beside(self) -> "ProgressBars":
        """Return further bars on the same display, for another thread: they stop none of these."""
        return ProgressBars(self._bars)

    def drop(self, stage: str) -> None:
        """Remove a stage's bar; without effect where it has none."""
        task = self._tasks.pop(stage, None)
        if task is not None:
            self._bars.remove_task(task)

    def write(self, line: str) -> None:
        """Write a line above the bars, which stays."""
        if self._bars is not None:
            self._bars.console.print(line, markup=False, highlight=False, no_wrap=True, overflow="crop", crop=True)


def on_terminal(*, quiet: bool) -> bool:
    """Whether progress is shown."""
    return not quiet and sys.stderr.isatty()


@contextmanager
def progress(*, quiet: bool) -> Iterator[ProgressBars]:
    """Yield a function that shows how far the work is; without a terminal it does nothing.

    Where another process has the terminal and shows it, it is sent there.
    """
    if not quiet and os.environ.get(WANTED):
        sent = SentBars()
        try:
            yield ProgressBars(sent)
        finally:
            sent.end()
        return
    if not on_terminal(quiet=quiet):
        yield ProgressBars()
        return
    with bars() as shown:
        yield ProgressBars(shown)


@contextmanager
def waiting(title: str, *, quiet: bool) -> Iterator[None]:
    """Show that work of unknown length is going on, and for how long it has been."""
    if not on_terminal(quiet=quiet):
        yield
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _shown(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as bars:
        bars.add_task(printable(title), total=None)
        yield


def amounts(done: float, total: float | None, rate: float | None, unit: str) -> str:
    """Write ``1.0 GiB of 2.0 GiB, 300 MiB/s`` or ``1.5 of 67.1 M edges, 20.0 M/s``; of seconds only how many."""
    if unit == "seconds":
        return seconds(done)
    whole = "" if total is None else f" of {_amount(total, unit)}"
    speed = "" if rate is None else f", {_amount(rate, unit)}/s"
    noun = "" if unit == "bytes" else f" {unit}"
    return f"{_amount(done, unit)}{whole}{noun}{speed}"


def _amount(number: float, unit: str) -> str:
    return format_bytes(number) if unit == "bytes" else count(number)


def count(number: float) -> str:
    """Write a number of things: ``1.5 M``, ``42,000``."""
    return f"{number / 1e6:,.1f} M" if number >= 1e5 else f"{number:,.0f}"


def bars() -> Any:
    """Return a rich display of stages, their amounts and the time left."""
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Amounts(ProgressColumn):
        """How much is done, of how much, how fast."""

        def render(self, task: Task) -> Text:
            return Text(amounts(task.completed, task.total, task.speed, task.fields["unit"]))

    return _shown(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), Amounts(), TimeRemainingColumn())


def _shown(*columns: Any) -> Any:
    """A rich display on stderr that vanishes at the end."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)
