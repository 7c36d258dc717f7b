"""A signal to end becomes an exception in the main thread, at once or when a run has kept its state.

Python notices a signal only between two steps of the main thread, which a kernel may delay by minutes; so a separate
thread hears of them, from the bytes that the C part of Python's handler writes (signal.set_wakeup_fd). It says at once
what becomes of the first one, and ends the process at the second, with what was half-written removed.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from penstock.storage.base.atomic import sweep_debris
from penstock.storage.base.errors import RunError
from penstock.storage.base.threads import start
from penstock.tools.base.log import leave_terminal, write_line

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DEFERRED = (signal.SIGINT, signal.SIGTERM)
NOTHING = "nothing was left behind"
GRACE = 0.1
"""Seconds after which a process that has not ended says that it is about to."""
STOPPING = "stopping"
DELICATE = ("__enter__", "__exit__", "__del__")
"""Functions in which none is raised: a lock that one has taken would stay taken."""
SOON = 0.002
"""Seconds until it is tried again."""


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end: its number, and in words what was left, and what would have left more."""

    def __init__(self, number: int, left: str = NOTHING) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number
        self.left = left
        self.hint = ""


class _Present:
    """What is said at the first signal, if something particular is; whether there is a thread that listens.

    at_once: whether it is said without waiting for the end. passing: whether another process ends this one's work.
    """

    words: Callable[[], str] | None = None
    at_once = False
    listening = False
    passing = False
    raised = 0


def hear() -> None:
    """Turn signals to end into `Stopped`, also where the shell ignores them; not SIGHUP under nohup."""
    _Present.raised = 0
    sys.unraisablehook = _raise_what_was_lost
    for number in HEARD:
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            continue
        signal.signal(number, _stop)


def deafen() -> None:
    """Ignore further signals."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in HEARD:
        signal.signal(number, signal.SIG_IGN)


def raised() -> int:
    """The signal of which `Stopped` was raised since a command began, if any: another exception may have come of it."""
    return _Present.raised


def forget_raised() -> None:
    """Forget the signals so far: a command begins, and another one in this process has ended."""
    _Present.raised = 0


def _stop(number: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_code.co_name in DELICATE:
        _stop_soon(number)
        return
    _Present.raised = number
    raise Stopped(number)


def _stop_soon(number: int) -> None:
    signal.signal(signal.SIGALRM, lambda _, frame: _stop(number, frame))
    signal.setitimer(signal.ITIMER_REAL, SOON)


def _raise_what_was_lost(lost: sys.UnraisableHookArgs) -> None:
    """Raise once more what Python ignores, as it does all that a finalizer raises.

    After a signal nothing is said of finalizers of objects that it left unfinished.
    """
    if isinstance(lost.exc_value, Stopped):
        _stop_soon(lost.exc_value.number)
    elif not _Present.raised:
        sys.__unraisablehook__(lost)


def pass_signals() -> None:
    """Let the first and any further signal have no effect here but what the handlers do, which pass them on."""
    _Present.passing = True


@contextmanager
def saying(words: Callable[[], str], *, at_once: bool = False) -> Iterator[None]:
    """Let `words` say what becomes of a first signal within the block, in a few words.

    at_once: whether that is said however soon the process ends; else only where it takes longer than `GRACE`.
    """
    before = _Present.words, _Present.at_once
    _Present.words, _Present.at_once = words, at_once
    try:
        yield
    finally:
        _Present.words, _Present.at_once = before


@contextmanager
def deferring_signals(ask: Callable[[], None], words: Callable[[], str]) -> Iterator[list[int]]:
    """Call `ask` at the first signal, end the process at the next; yields the numbers of signals that were noted.

    For the main thread; the listeners from before are back when the block ends. words: say what becomes of the first.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        ask()

    before = {number: signal.signal(number, note) for number in DEFERRED}
    try:
        with listening(), saying(words, at_once=True):
            yield came
    finally:
        for number, listener in before.items():
            signal.signal(number, listener)


@contextmanager
def listening() -> Iterator[None]:
    """Let a thread say what becomes of the first signal, and end the process at the second one.

    For the main thread; within another such block, and where the system refuses the thread, it has no effect.
    """
    begun = None if _Present.listening else _begin()
    if begun is None:
        yield
        return
    reading, writing, thread = begun
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    _Present.listening = True
    try:
        yield
    finally:
        _Present.listening = False
        signal.set_wakeup_fd(before)
        os.close(writing)
        thread.join()
        os.close(reading)


def _begin() -> tuple[int, int, threading.Thread] | None:
    """Start the thread: the ends of its pipe, and itself; None where there are no descriptors or threads left."""
    try:
        reading, writing = os.pipe2(os.O_CLOEXEC)
    except OSError:
        return None
    os.set_blocking(writing, False)
    thread = threading.Thread(target=_listen, args=(reading,), name="signals", daemon=True)
    try:
        start(thread)
    except RunError:
        os.close(reading)
        os.close(writing)
        return None
    return reading, writing, thread


def _listen(reading: int) -> None:
    """Take signals from a pipe until it is closed."""
    came = 0
    while numbers := os.read(reading, 1):
        number = numbers[0]
        if number not in DEFERRED or _Present.passing:
            continue
        came += 1
        if came == 1 and (_Present.at_once or not select.select([reading], [], [], GRACE)[0]):
            words = STOPPING if _Present.words is None else _Present.words()
            write_line(f"penstock: {name_of(number)}: {words}; a second {name_of(number)} ends now")
        if came == 2:
            leave_terminal()
            sweep_debris()
            os._exit(128 + number)


def name_of(number: int) -> str:
    """What people call a signal."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
