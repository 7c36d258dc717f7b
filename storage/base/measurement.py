"""Rates that are measured, times as people write them, and a limit on how long measuring takes, shared by its probes.

A probe asks before it begins whether there is time for its longest case, and then repeats its work until its own share
is over. Nothing is interrupted, so every step of a probe has to be short.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")


def parse_seconds(text: str) -> float | None:
    """Return the seconds that ``30s``, ``5min``, ``1.5h`` stand for; None for a text that names no time."""
    match = _DURATION.fullmatch(text.lower())
    return float(match[1]) * UNITS[match[2]] if match and match[2] in UNITS else None


class TimeBudget:
    """`seconds` from now on (None: as many as it takes); `now` is the time of day that counts."""

    def __init__(self, seconds: float | None = None, now: Callable[[], float] = time.perf_counter) -> None:
        self.now = now
        self._began = now()
        self._end = float("inf") if seconds is None else self._began + seconds

    @property
    def spent(self) -> float:
        """Seconds since it was made."""
        return self.now() - self._began

    @property
    def left(self) -> float:
        """Seconds that may still be spent, at least 0; infinite without a limit."""
        return max(0.0, self._end - self.now())

    def allows(self, seconds: float) -> bool:
        """Whether so many seconds are left."""
        return self.left >= seconds

    def until(self, seconds: float) -> float:
        """Return the moment at which a share of `seconds`, begun now, is over."""
        return min(self.now() + seconds, self._end)


LEAST_SECONDS = 1e-9
"""No clock here tells less; a measurement of nothing at all is not an infinite rate."""


@dataclass(frozen=True, slots=True)
class RateSample:
    """`amount` bytes, lines or edges in `seconds`; `at`: bytes of a copy or a run, threads, or reads in flight."""

    at: int
    amount: float
    seconds: float

    @property
    def rate(self) -> float:
        """Amount per second."""
        return self.amount / max(self.seconds, LEAST_SECONDS)


def doublings(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4 ... below `most`, and `most`: the numbers of threads worth measuring."""
    return (*(1 << i for i in range(max(1, most).bit_length()) if 1 << i < most), max(1, most))
