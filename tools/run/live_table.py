"""What a terminal shows of a run: one line for every iteration, and a bar below them.

    iteration   way   vertices      edges   edges/s  from disk    memory of 1.0 GiB
            0  pull    200,000      2.8 M   161.2 M    4.5 MiB              96.1 MiB

After the first lines short iterations share a line, once a second at first and every ten seconds later. Elsewhere, or
with --quiet, nothing is shown and nothing measured. Memory is what the process has grown by since the lines began, or
what the device holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.storage.base.budget import format_bytes, resident_bytes
from penstock.tools.base.progress import ProgressBars, count

if TYPE_CHECKING:
    from penstock.engine.session import Session
    from penstock.engine.state.records import IterationRecord

AT_ONCE = 12
"""Iterations of a program that have a line of their own whatever they take."""
LEAST_SECONDS, MOST_SECONDS, SHARE = 1.0, 10.0, 1 / 40
"""A line that tells several iterations comes after this share of the time so far, within these bounds."""
UNBOUNDED = 1 << 60
"""Edges that no bounded run walks."""
WIDTHS = (11, 5, 10, 10, 9, 10, 18)


@dataclass
class Tally:
    """Iterations that are told together: their numbers, ways, edges, seconds, bytes; the last one's vertices."""

    first: int
    last: int = 0
    vertices: int = 0
    edges: int = 0
    seconds: float = 0.0
    disk_bytes: int = 0
    link_bytes: int = 0
    ways: set[str] = field(default_factory=set)

    def add(self, record: IterationRecord) -> None:
        """Take one more."""
        self.last, self.vertices = record.number, record.vertices
        self.edges += record.edges
        self.seconds += record.seconds
        self.disk_bytes += record.bytes_disk
        self.link_bytes += record.bytes_link
        self.ways.add(record.direction)


class Pace:
    """Which iterations are told together: a rule over numbers and a clock."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = self._told_at = clock()
        self._lines = 0
        self._tally: Tally | None = None

    def take(self, record: IterationRecord) -> Tally | None:
        """Take an iteration; return what is to be told now, None to wait for more."""
        if self._tally is None:
            self._tally = Tally(record.number)
        self._tally.add(record)
        now = self._clock()
        pause = min(MOST_SECONDS, max(LEAST_SECONDS, SHARE * (now - self._began)))
        if self._lines >= AT_ONCE and now - self._told_at < pause:
            return None
        self._told_at = now
        return self.rest()

    def rest(self) -> Tally | None:
        """Return what was not told yet."""
        tally, self._tally = self._tally, None
        self._lines += tally is not None
        return tally


class LiveTable:
    """Writes lines above a bar; without `show` nothing is shown or measured."""

    def __init__(self, show: ProgressBars | None = None) -> None:
        self._show = show
        self._before = 0 if show is None else resident_bytes()
        self._name, self._most, self._walked = "", 0, 0
        self._session: Session | None = None
        self._pace: Pace | None = None

    def begin(self, name: str, session: Session, most_edges: int) -> None:
        """A program begins that may walk so many edges, for the time left where its iterations are bounded."""
        self._name, self._session, self._most, self._walked = name, session, most_edges, 0
        self._pace = None
        if self._show is not None:
            self._show(name, 0, None, "edges")

    def note(self, record: IterationRecord) -> None:
        """An iteration is over: write its line, or wait for more; move the bar."""
        if self._show is None or self._session is None:
            return
        if self._pace is None:
            self._pace = Pace()
            self._show.write(heading(self._session))
        self._walked += record.edges
        self._show(self._name, self._walked, self._most if self._most < UNBOUNDED else None, "edges")
        self._write(self._pace.take(record))

    def end(self) -> None:
        """Write what is left."""
        if self._pace is not None:
            self._write(self._pace.rest())
        self._session = self._pace = None

    def _write(self, tally: Tally | None) -> None:
        if tally is not None and self._session is not None and self._show is not None:
            device = self._session.device
            held = resident_bytes() - self._before if device is None else device.used_bytes
            self._show.write(line(tally, held, linked=device is not None))


def heading(session: Session) -> str:
    """The names of the columns, and the budget of the last one."""
    device = session.device
    budget = session.config.memory_bytes if device is None else device.memory_bytes
    place, moved = ("memory", "from disk") if device is None else ("device", "over link")
    of = f"{place} of {format_bytes(budget)}"
    return _row("iteration", "way", "vertices", "edges", "edges/s", moved, of)


def line(tally: Tally, held_bytes: int, *, linked: bool) -> str:
    """One line; held_bytes: what the process, or the device, holds."""
    numbers = f"{tally.first:,}" if tally.first == tally.last else f"{tally.first:,}–{tally.last:,}"
    way = tally.ways.copy().pop() if len(tally.ways) == 1 else "both"
    speed = count(tally.edges / tally.seconds) if tally.seconds > 0 else ""
    moved = format_bytes(tally.link_bytes if linked else tally.disk_bytes)
    return _row(numbers, way, count(tally.vertices), count(tally.edges), speed, moved, format_bytes(max(0, held_bytes)))


def _row(*cells: str) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def iterations(show: ProgressBars) -> LiveTable:
    """Return what shows a job's programs as they go: lines and a bar on a terminal, nothing elsewhere."""
    return LiveTable(show if show.visible else None)
