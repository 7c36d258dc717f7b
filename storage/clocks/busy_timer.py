"""The time in which at least one thread was inside a block, each moment counted once.

Seconds summed over threads say what was spent; these are how long it took, so that bytes over them is a rate.
"""

import threading
import time
from collections.abc import Callable


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
