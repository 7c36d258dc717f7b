"""Progress as lines, for a log: one every so many seconds, of what the command is doing at that moment.

    penstock: PageRank: iteration 12 of at most 100, 100 % of vertices active: 1.2 G of 9.9 G edges, 98.1 M/s; ...

`LogLines` takes the place of a display of rich behind `progress.ProgressBars`, beside one that is drawn or without.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.storage.base.printable import printable
from penstock.storage.base.threads import start
from penstock.tools.base.output import WITHOUT_RATE, amounts, seconds

DEFAULT_SECONDS = 60.0
"""Between two lines, where nobody has said how often."""


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
        self._stopped: set[int] = set()
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
        """Note how far a stage is."""
        task = self._tasks[number]
        task.done, task.total, task.text = completed, total, description or task.text

    def stop_task(self, number: int) -> None:
        """A stage is over."""
        self._stopped.add(number)

    def remove_task(self, number: int) -> None:
        """A stage is over, and forgotten."""
        with self._lock:
            self._tasks.pop(number, None)

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
            present = [task for number, task in self._tasks.items() if number not in self._stopped]
            if not present:
                return
            now = self._now()
            text = f"{present[-1].line(now)}; {seconds(now - self._began)} so far"
        self._write(printable(text))

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self.tell()
