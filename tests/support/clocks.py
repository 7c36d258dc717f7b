"""A clock that goes when the test says so."""

from __future__ import annotations


class MovedClock:
    """In the place of `time.perf_counter`: it tells `now`, which the test moves."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def go(self, seconds: float) -> None:
        self.now += seconds
