"""How long this process has waited for compiled code: to be made, and to be loaded from the user's cache.

Waiting is counted as wall time: of several threads that wait at once, and of one piece of code compiled within another,
each second counts once. Imports no compiler, so that a job that compiles nothing can ask.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from penstock.storage.clocks.stage_clock import BusyTimer, stage


class CompileTimes(NamedTuple):
    """What this process has spent on compiled code since its start, on the host's kernels and on a GPU's; never falls.

    compiling, loading: seconds of wall time in which a thread waited for code to be compiled, to be loaded. compiled,
    loaded: pieces of code, each for arguments of certain types.
    """

    compiling: float
    loading: float
    compiled: int
    loaded: int


_log = logging.getLogger("penstock.storage.clocks.compile_times")
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
