"""A signal to end becomes an exception in the main thread, at once or when a run has kept its state.

Python notices a signal only between two steps of the main thread, which a kernel may delay by minutes; so a separate
thread counts them, from the bytes that the C part of Python's handler writes (signal.set_wakeup_fd).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

DEFERRED = (signal.SIGINT, signal.SIGTERM)
NOTHING = "nothing was left behind"


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end: its number, and in words what was left."""

    def __init__(self, number: int, left: str = NOTHING) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number
        self.left = left


@contextmanager
def deferring_signals(ask: Callable[[], None]) -> Iterator[list[int]]:
    """Call `ask` at the first signal, end the process at the next; yields the numbers of signals that were noted.

    For the main thread; the listeners from before are back when the block ends.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        ask()

    before = {number: signal.signal(number, note) for number in DEFERRED}
    try:
        with _ending_at_the_second():
            yield came
    finally:
        for number, listener in before.items():
            signal.signal(number, listener)


@contextmanager
def _ending_at_the_second() -> Iterator[None]:
    """Let a thread end the process at the second signal, with the exit code of one that it killed."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)

    def count() -> None:
        came = 0
        while numbers := os.read(reading, 1):
            came += numbers[0] in DEFERRED
            if came == 2:
                os._exit(128 + numbers[0])

    counting = threading.Thread(target=count, name="signals", daemon=True)
    counting.start()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)
        counting.join()
        os.close(reading)
