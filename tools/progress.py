"""Owns progress bars: done, rate and time left, on stderr and only where a person watches.

Refuses to draw on anything but a terminal, or when asked to be quiet; then nothing is imported and
nothing costs anything. Drawing is rich's.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.storage.budget import format_bytes

Update = Callable[[str, float, float | None, str], None]
"""update(stage, done, total or None, unit): a new stage starts a new bar; unit: bytes or a noun."""


@contextmanager
def progress(*, quiet: bool) -> Iterator[Update]:
    """Yield a function that shows how far the work is; without a terminal it does nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda stage, done, total, unit: None
        return
    with _bars() as bars:
        tasks: dict[str, Any] = {}

        def update(stage: str, done: float, total: float | None, unit: str) -> None:
            if stage not in tasks:
                for task in tasks.values():
                    bars.stop_task(task)
                tasks[stage] = bars.add_task(stage, total=total, unit=unit)
            bars.update(tasks[stage], completed=done, total=total)

        yield update


@contextmanager
def waiting(title: str, *, quiet: bool) -> Iterator[None]:
    """Show that work of unknown length is going on, and for how long it has been."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bars.add_task(title, total=None)
        yield


def amounts(done: float, total: float | None, rate: float | None, unit: str) -> str:
    """Write ``1.0 GiB of 2.0 GiB, 300 MiB/s`` or ``1.5 of 67.1 M edges, 20.0 M/s``."""
    whole = "" if total is None else f" of {_amount(total, unit)}"
    speed = "" if rate is None else f", {_amount(rate, unit)}/s"
    noun = "" if unit == "bytes" else f" {unit}"
    return f"{_amount(done, unit)}{whole}{noun}{speed}"


def _amount(count: float, unit: str) -> str:
    if unit == "bytes":
        return format_bytes(count)
    return f"{count / 1e6:,.1f} M" if count >= 1e5 else f"{count:,.0f}"


def _bars() -> Any:
    """A rich display whose bars vanish at the end."""
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

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        Amounts(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
