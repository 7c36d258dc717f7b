"""Progress of a process whose stderr is a pipe, shown by the process at the other end, which has the terminal.

The bars of `progress.py` ask a display of rich for five things. `SentBars` takes its place and writes each of them as a
marked line of JSON; `ReceivedBars` does them on a display of its own. Other lines of the pipe are written between.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MARK = b"\x1epenstock-progress "
"""Begins a line on stderr that is no text."""
WANTED = "PENSTOCK_PROGRESS"
"""Set in processes whose progress another one shows."""
PAUSE = 0.1
"""Seconds between two updates of a bar that are sent: so often is it drawn."""
_STDERR = 2


class SentBars:
    """A display that is somewhere else; it is its own console."""

    def __init__(self, write: Callable[[bytes], Any] | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.console = self
        self._write = write or (lambda line: os.write(_STDERR, line))
        self._now = now
        self._numbers = itertools.count()
        self._sent: dict[int, float] = {}

    def add_task(self, description: str, **how: Any) -> int:
        """Add a bar; return its number."""
        number = next(self._numbers)
        self._send("add_task", number, description, **how)
        return number

    def update(self, number: int, **how: Any) -> None:
        """Move a bar, unless it was moved just now and is called as before."""
        now = self._now()
        if "description" in how or now - self._sent.get(number, -PAUSE) >= PAUSE:
            self._sent[number] = now
            self._send("update", number, **how)

    def stop_task(self, number: int) -> None:
        """Stop the clock of a bar."""
        self._send("stop_task", number)

    def remove_task(self, number: int) -> None:
        """Remove a bar."""
        self._send("remove_task", number)

    def print(self, line: str, **how: Any) -> None:
        """Write a line above the bars."""
        self._send("print", line, **how)

    def end(self) -> None:
        """Remove all bars."""
        self._send("end")

    def _send(self, verb: str, *given: Any, **how: Any) -> None:
        self._write(MARK + json.dumps([verb, given, how]).encode() + b"\n")


class ReceivedBars:
    """Draws what `SentBars` has sent. begin: makes a display of rich, which begins with the first bar."""

    def __init__(self, begin: Callable[[], Any]) -> None:
        self._begin = begin
        self._bars: Any = None
        self._tasks: dict[int, Any] = {}
        self._lock = threading.RLock()

    def take(self, line: bytes) -> bool:
        """Draw what a line says; return whether it was such a line, and whole. Any thread may call it."""
        if not line.startswith(MARK):
            return False
        try:
            verb, given, how = json.loads(line[len(MARK) :])
        except ValueError:
            return False  # another process wrote into it
        with self._lock:
            if verb == "end":
                self.end()
            elif verb == "print":
                self._shown.console.print(*given, **how)
            elif verb == "add_task":
                number, description = given
                self._tasks[number] = self._shown.add_task(description, **how)
            elif given[0] in self._tasks:
                getattr(self._shown, verb)(self._tasks[given[0]], **how)
                if verb == "remove_task":  # the display does not know it any more
                    del self._tasks[given[0]]
        return True

    @property
    def _shown(self) -> Any:
        if self._bars is None:
            self._bars = self._begin()
            self._bars.start()
        return self._bars

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the bars off the terminal while something else is written there."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
            yield
            if self._bars is not None:
                self._bars.start()

    def end(self) -> None:
        """Remove all bars; again: no effect."""
        with self._lock:
            bars, self._bars = self._bars, None
            self._tasks.clear()
            if bars is not None:
                bars.stop()
