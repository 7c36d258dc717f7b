"""What a terminal shows of a run: one line for every iteration, and a bar below them; and what a log says of it.

    iteration   way   vertices      edges   edges/s  from disk    memory of 1.0 GiB
            0  pull    200,000      2.8 M   161.2 M    4.5 MiB              96.1 MiB

After the first lines short iterations share a line, once a second at first and every ten seconds later. In a log a line
of progress says which iteration runs, and how many vertices are active. With --quiet nothing is shown or measured.
Memory is what the process has grown by since the lines began, or what the device holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.storage.base.budget import format_bytes, resident_bytes
from penstock.storage.base.stage_clock import StageClock, compile_times, compiled_now
from penstock.tools.base.output import count
from penstock.tools.base.progress import COMPILING, PAUSE, ProgressBars, looked_at, show_compiling
from penstock.tools.run.account import STAGE_NAMES

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
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
    """Iterations that are told together: their numbers, ways, edges, seconds, bytes; the last one's vertices, phase."""

    first: int
    last: int = 0
    vertices: int = 0
    edges: int = 0
    seconds: float = 0.0
    disk_bytes: int = 0
    link_bytes: int = 0
    ways: set[str] = field(default_factory=set)
    phase: str = ""

    def add(self, record: IterationRecord, number: int | None = None) -> None:
        """Take one more; number: which one it is of the run, where that is not its own."""
        self.last, self.vertices = record.number if number is None else number, record.vertices
        self.phase = "" if record.phase is None else record.phase.name
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
        self._lines = self._taken = 0
        self._tally: Tally | None = None

    def take(self, record: IterationRecord) -> Tally | None:
        """Take an iteration; return what is to be told now, None to wait for more.

        Iterations of phases, each of which counts its own from 0, are counted on.
        """
        number = record.number if record.phase is None else self._taken
        self._taken += 1
        if self._tally is None:
            self._tally = Tally(number)
        self._tally.add(record, number)
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
    """Writes lines above a bar, and tells a log which iteration runs; if nobody looks nothing is shown or measured."""

    def __init__(self, show: ProgressBars) -> None:
        self._show = show if show.visible else None
        self._drawn, self._log = show.apart()
        self._lines = show.drawn
        self._before = resident_bytes() if self._lines else 0
        self._name, self._most, self._iterations, self._walked = "", 0, 0, 0
        self._session: Session | None = None
        self._pace: Pace | None = None
        self._last: IterationRecord | None = None
        self._edges_before, self._told_at = 0, 0.0
        show.before_line(self.tell)

    def begin(self, program: Program, session: Session) -> None:
        """A program begins; where its iterations are bounded, so is the time left."""
        if self._show is None:
            return
        self._name, self._session, self._iterations = type(program).__name__, session, program.max_iter
        self._most, self._walked = session.graph.edges * program.max_iter, 0
        self._pace = self._last = None
        self._edges_before, self._told_at = 0, time.perf_counter()
        for bars in (self._drawn, self._log):
            self._move(bars)

    def note(self, record: IterationRecord) -> None:
        """An iteration is over: write its line, or wait for more; move the bar."""
        if self._show is None or self._session is None:
            return
        self._walked += record.edges
        self._last = record
        if not self._lines:
            return
        if self._pace is None:
            self._pace = Pace()
            self._show.write(heading(self._session))
        self._move(self._drawn, "" if record.phase is None else record.phase.name)
        self._write(self._pace.take(record))

    def tell(self) -> None:
        """Say how far the run is, for a line of a log; called from another thread."""
        session, last = self._session, self._last
        if session is None:
            return
        if last is None:
            self._move(self._log, "before the first iteration")
            return
        phase, now, walked = last.phase, time.perf_counter(), self._walked
        most = f" of at most {self._iterations:,}" if self._most < UNBOUNDED and phase is None else ""
        active = f"{100 * last.vertices / session.graph.vertices:.3g} % of vertices active"
        told = [f"iteration {last.number:,}{most}", active]
        if phase is not None and phase.name:
            told.insert(0, phase.name)
        if phase is not None and phase.count and now > self._told_at:
            told.append(f"{count((walked - self._edges_before) / (now - self._told_at))} edges/s")
        self._edges_before, self._told_at = walked, now
        self._move(self._log, ", ".join(told))

    def _move(self, bars: ProgressBars, note: str = "") -> None:
        """Move the bar: by phases, if it is known how many there will be, else by edges."""
        phase = None if self._last is None else self._last.phase
        if phase is not None and phase.count:
            bars(self._name, phase.number, phase.count, "phases", note)
        else:
            bars(self._name, self._walked, self._most if self._most < UNBOUNDED else None, "edges", note)

    def end(self) -> None:
        """Write what is left."""
        if self._pace is not None:
            self._write(self._pace.rest())
        self._session = self._pace = self._last = None

    def _write(self, tally: Tally | None) -> None:
        if tally is not None and self._session is not None and self._show is not None:
            device, linked = self._session.device, not self._session.device.reads_host
            held = device.used_bytes if linked else resident_bytes() - self._before
            self._show.write(line(tally, held, linked=linked))


def heading(session: Session) -> str:
    """The names of the columns, and the budget of the last one."""
    device = session.device
    place, moved = ("memory", "from disk") if device.reads_host else ("device", "over link")
    of = f"{place} of {format_bytes(device.own_bytes or session.config.memory_bytes)}"
    return _row("iteration", "way", "vertices", "edges", "edges/s", moved, of)


def line(tally: Tally, held_bytes: int, *, linked: bool) -> str:
    """One line; held_bytes: what the process, or the device, holds."""
    numbers = f"{tally.first:,}" if tally.first == tally.last else f"{tally.first:,}–{tally.last:,}"
    way = tally.ways.copy().pop() if len(tally.ways) == 1 else "both"
    speed = count(tally.edges / tally.seconds) if tally.seconds > 0 else ""
    moved = format_bytes(tally.link_bytes if linked else tally.disk_bytes)
    held = format_bytes(max(0, held_bytes))
    row = _row(numbers, way, count(tally.vertices), count(tally.edges), speed, moved, held)
    return f"{row}  {tally.phase}" if tally.phase else row


def _row(*cells: str) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


LASTING = 1.0
"""Seconds from which a stage has a bar."""
UNSEEN = ("imports", "other")
"""Stages without a bar."""
READING = "reading edges"
"""The bar of iterations that read from disk, beside their own, which moves at the end of an iteration."""
ONCE = {"compiling": COMPILING}


class StageBars:
    """A bar for the stage that a job is in."""

    def __init__(self, show: ProgressBars, clock: StageClock) -> None:
        self._show, self._clock = show, clock
        self._shown = ""
        self._compiled = compile_times().compiled
        self._read = self._grown = 0

    def look(self) -> None:
        """Show where the job is now; the bar of a stage that has ended goes."""
        stage, lasted, meter = self._clock.present()
        seen, total = meter.seen, meter.total_bytes
        name = ONCE.get(stage, STAGE_NAMES.get(stage, stage))
        if stage == "iterations":
            self._grown = self._grown + 1 if seen > self._read else 0  # looks at which more was read
            self._read = seen
            name = READING if self._grown * PAUSE >= LASTING else ""
        elif stage in UNSEEN or lasted < LASTING:
            name = ""
        if self._shown not in ("", name):
            self._show.drop(self._shown)
        self._shown = name
        if not name:
            return
        if stage == "compiling":
            number = compile_times().compiled - self._compiled
            show_compiling(self._show, compiled_now() or "", number, lasted)
        elif seen or total:
            self._show(name, seen, total, "bytes")
        else:
            self._show(name, lasted, None, "seconds")


@contextmanager
def stages_shown(show: ProgressBars, clock: StageClock) -> Iterator[None]:
    """Show the stages of a job until the block ends: as they go on a terminal, in a log when a line is due."""
    if not show.visible:
        yield
        return
    with looked_at(show, StageBars(show.beside(), clock).look):
        yield
