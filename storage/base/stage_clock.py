"""Where the wall time of a job goes: the clock of its stages, on which each moment of the job counts once.

A job is the walk of one thread, the one that makes the clock. It is in one stage at a time; a stage that begins within
another interrupts it. So the seconds of all stages add up to the wall time. What other threads do for a stage meanwhile
is counted beside. The floors below `tools` say what they do (`stage`) and print nothing; `tools` installs a clock and
reads it, also from a thread of its own. Where no clock is installed, nothing is counted.

Compiling is counted where the job waits for it: in its own thread, or in one whose work it waits for (`waiting`).

How long the process has waited for compiled code is counted as wall time, too (`compile_times`): of several threads
that wait at once, and of one piece of code compiled within another, each second counts once. No compiler is imported,
so that a job that compiles nothing can ask.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

STAGES = (
    "imports", "opening", "calibrating", "compiling", "kernels", "index", "page_locking", "loading", "state",
    "iterations", "summary", "writing", "closing", "other",
)  # fmt: skip
"""Every stage, in the order in which a job comes to them first.

imports: from the start of the process, with options read, and modules that are loaded later. kernels: compiled ones are
loaded. page_locking: memory for a device is touched and registered. state: memory is planned, every vertex gets its
first values. summary: last values are fetched, checked and summed up. closing: threads end, memory is given back.
"""


class Meter:
    """Bytes that a stage has moved so far: whoever is in the stage adds to `bytes`.

    total_bytes: how many there will be, None where that is not known. poll: asked for the bytes so far by who looks,
    from any thread; at the end too, if none were added.
    """

    __slots__ = ("bytes", "poll", "total_bytes")

    def __init__(self, total_bytes: int | None = None, poll: Callable[[], int] | None = None) -> None:
        self.bytes = 0
        self.total_bytes = total_bytes
        self.poll = poll

    @property
    def seen(self) -> int:
        """Bytes so far, for who looks."""
        return self.bytes if self.poll is None else self.poll()

    @property
    def moved(self) -> int:
        """Bytes that count."""
        return self.bytes or self.seen


@dataclass(frozen=True)
class StageTimes:
    """Where time went.

    wall: seconds. seconds: of it, by stage; they add up to it. beside: seconds by stage in which other threads worked
    at it; bytes: moved by stage. compiled_within: seconds of compiling, and of loading kernels, by the stage that they
    interrupted; they are not part of that stage's seconds.
    """

    wall: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    beside: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    compiled_within: dict[str, float] = field(default_factory=dict)


class _Open:
    """A stage that has begun and not ended."""

    __slots__ = ("meter", "stage", "within")

    def __init__(self, stage: str, meter: Meter, within: str) -> None:
        self.stage, self.meter, self.within = stage, meter, within


class StageClock:
    """The clock of one job, whose walk is the calling thread's.

    Parameters
    ----------
    began : float, optional
        When the job began, by `now`; by default at this moment.
    first : str
        The stage that it is in, of STAGES.
    now : callable
        The time of day that counts.
    """

    def __init__(
        self, began: float | None = None, first: str = "other", now: Callable[[], float] = time.perf_counter
    ) -> None:
        self._now = now
        self._began = self._since = now() if began is None else began
        self._walker = threading.get_ident()
        self._lock = threading.Lock()
        self._open = [_Open(first, Meter(), first)]
        self._seconds: dict[str, float] = {}
        self._beside: dict[str, BusyTimer] = {}
        self._bytes: dict[str, int] = {}
        self._compiled_within: dict[str, float] = {}
        self._waiting = 0
        self._code_beside = dict.fromkeys(_CODE, 0)

    def turn_to(self, stage: str) -> None:
        """Be in `stage` wherever no other has begun."""
        with self._lock:
            self._settle()
            self._open[0] = _Open(stage, Meter(), stage)

    def begin(self, stage: str, meter: Meter) -> _Open:
        """Begin a stage; `end` takes what is returned."""
        if threading.get_ident() != self._walker:
            self._beside_code(stage, 1)
            with self._lock:
                timer = self._beside.setdefault(stage, BusyTimer(self._now))
            timer.__enter__()
            return _Open(stage, meter, stage)
        with self._lock:
            self._settle()
            before = self._open[-1]
            within = before.within if before.stage in _CODE else before.stage
            self._open.append(_Open(stage, meter, within))
            return self._open[-1]

    def end(self, opened: _Open) -> None:
        """End a stage, and what has begun within it and not ended."""
        moved = opened.meter.moved
        if threading.get_ident() != self._walker:
            self._beside_code(opened.stage, -1)
            self._beside[opened.stage].__exit__()
        with self._lock:
            if moved:
                self._bytes[opened.stage] = self._bytes.get(opened.stage, 0) + moved
            if opened in self._open:
                self._settle()
                del self._open[self._open.index(opened) :]

    def wait(self, *, begins: bool) -> None:
        """Note that the job begins to wait for other threads, or ends; what other threads note has no effect."""
        if threading.get_ident() == self._walker:
            with self._lock:
                self._settle()
                self._waiting += 1 if begins else -1

    def _beside_code(self, stage: str, more: int) -> None:
        """Another thread has begun to compile or load kernels, or has ended."""
        if stage in _CODE:
            with self._lock:
                self._settle()
                self._code_beside[stage] += more

    def times(self) -> StageTimes:
        """Return where the time has gone so far; any thread may ask."""
        with self._lock:
            self._settle()
            beside = {stage: timer.seconds for stage, timer in self._beside.items()}
            known = dict(self._seconds), beside, dict(self._bytes), dict(self._compiled_within)
            return StageTimes(self._since - self._began, *known)

    def present(self) -> tuple[str, float, Meter]:
        """Return the stage that the job is in, its seconds so far in all, and its meter; any thread may ask."""
        with self._lock:
            self._settle()
            last = self._open[-1]
            return last.stage, self._seconds.get(last.stage, 0.0), last.meter

    def _settle(self) -> None:
        """Count the time since the last call for the stage that the job is in."""
        now = self._now()
        last, passed = self._open[-1], now - self._since
        stage, within = last.stage, last.within
        if self._waiting and stage not in _CODE:
            stage, within = next((code for code in _CODE if self._code_beside[code]), stage), stage
        self._seconds[stage] = self._seconds.get(stage, 0.0) + passed
        if stage in _CODE:
            self._compiled_within[within] = self._compiled_within.get(within, 0.0) + passed
        self._since = now


_CODE = ("compiling", "kernels")


_installed: StageClock | None = None
"""The clock that stages count on, if any."""


@contextmanager
def installed(clock: StageClock) -> Iterator[StageClock]:
    """Let the stages of this process count on `clock` within the block."""
    global _installed
    before, _installed = _installed, clock
    try:
        yield clock
    finally:
        _installed = before


_UNCOUNTED: AbstractContextManager[Meter] = nullcontext(Meter())


def stage(
    name: str, total_bytes: int | None = None, poll: Callable[[], int] | None = None
) -> AbstractContextManager[Meter]:
    """Be in a stage of the job within the block.

    Parameters
    ----------
    name : str
        One of STAGES.
    total_bytes : int, optional
        Bytes that it will move.
    poll : callable, optional
        Returns the bytes moved so far, from any thread; without it, the block adds to the meter that it gets.
    """
    clock = _installed
    return _UNCOUNTED if clock is None else _within(clock, name, Meter(total_bytes, poll))


@contextmanager
def _within(clock: StageClock, name: str, meter: Meter) -> Iterator[Meter]:
    opened = clock.begin(name, meter)
    try:
        yield meter
    finally:
        clock.end(opened)


@contextmanager
def waiting() -> Iterator[None]:
    """Wait for other threads within the block: what they compile meanwhile counts as compiling of the job."""
    clock = _installed
    if clock is None:
        yield
        return
    clock.wait(begins=True)
    try:
        yield
    finally:
        clock.wait(begins=False)


class BusyTimer:
    """A context manager that threads enter; `now`: the time of day that counts."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._inside = 0
        self._since = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Seconds so far in which at least one thread was inside."""
        with self._lock:
            return self._seconds + (self._now() - self._since if self._inside else 0.0)

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._since = self._now()
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._seconds += self._now() - self._since


class CompileTimes(NamedTuple):
    """What this process has spent on compiled code since its start, on the host's kernels and on a GPU's; never falls.

    compiling, loading: seconds of wall time in which a thread waited for code to be compiled, to be loaded. compiled,
    loaded: pieces of code, each for arguments of certain types.
    """

    compiling: float
    loading: float
    compiled: int
    loaded: int


_log = logging.getLogger("penstock.storage.base.stage_clock")
_lock = threading.Lock()
_compiling, _loading = BusyTimer(), BusyTimer()
_pieces = {"compiled": 0, "loaded": 0}
_names: list[str] = []
"""What is compiled now, by the threads that wait for it; "" where its name is not known."""
_depth = threading.local()
"""How many pieces of code this thread is compiling, one for the other."""


def compile_times() -> CompileTimes:
    """Return what this process has spent so far on compiling and loading kernels."""
    with _lock:
        return CompileTimes(_compiling.seconds, _loading.seconds, **_pieces)


def compiled_now() -> str | None:
    """Return the name of a piece of code that a thread waits for, "" where it is not known; None where none waits."""
    with _lock:
        return next((name for name in reversed(_names) if name), "") if _names else None


def begin_compiling(name: str = "") -> None:
    """Count the calling thread's time as compiling from now on, until as many `end_compiling`; name: of the code."""
    _depth.here = getattr(_depth, "here", 0) + 1
    if _depth.here == 1:
        _depth.name = name
        _depth.stage = stage("compiling")
        _depth.stage.__enter__()
        with _lock:
            _compiling.__enter__()
            _pieces["compiled"] += 1
            _names.append(name)
            number = _pieces["compiled"]
        _log.info("compiling kernel %s", f"{number}, {name}" if name else number)


def end_compiling() -> None:
    """End what the last `begin_compiling` of this thread has begun."""
    _depth.here -= 1
    if _depth.here == 0:
        with _lock:
            _compiling.__exit__()
            _names.remove(_depth.name)
        _depth.stage.__exit__(None, None, None)


@contextmanager
def compiling(name: str = "") -> Iterator[None]:
    """Count the time within as compiling; name: of what is compiled."""
    begin_compiling(name)
    try:
        yield
    finally:
        end_compiling()


@contextmanager
def loading() -> Iterator[None]:
    """Count the time within as loading, unless this thread is compiling: what a kernel is made of is part of that."""
    if getattr(_depth, "here", 0):
        yield
        return
    with _loading, stage("kernels"):
        yield


def count_loaded() -> None:
    """One piece of code more has been loaded."""
    with _lock:
        _pieces["loaded"] += 1
