"""How often a run's checkpoints come: a pure rule over iterations and seconds.

That what a checkpoint costs should set how often it comes is Young's (CACM 1974); here it sets how often at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.storage.base.errors import InputError
from penstock.storage.base.measurement import parse_seconds

DEFAULT_SECONDS = 300.0
LEAST_TIMES = 60.0
"""Without an interval of the user's, checkpoints come after so many times what the last one took at the earliest."""


@dataclass(frozen=True)
class CheckpointInterval:
    """How often: after so many iterations, or so many seconds; and at least `times` as long as the last one took."""

    iterations: int | None = None
    seconds: float | None = DEFAULT_SECONDS
    times: float = 0.0

    @classmethod
    def of(cls, every: str | int | None) -> CheckpointInterval:
        """Of 10 or "10" (iterations), "30s", "5min", "2h" or None. Raises InputError."""
        if every is None:
            return cls(times=LEAST_TIMES)
        text = str(every).strip()
        if seconds := parse_seconds(text):
            return cls(seconds=seconds)
        if text.isascii() and text.isdecimal() and int(text) > 0:
            return cls(iterations=int(text), seconds=None)
        raise InputError(f"checkpoint_every is {every!r}; give a number of iterations (10) or a time (30s, 5min, 2h)")

    def due(self, iterations: int, seconds: float, last_seconds: float) -> bool:
        """Whether a checkpoint is due so many iterations and seconds after the last one, which took `last_seconds`."""
        if self.iterations is not None:
            return iterations >= self.iterations
        return seconds >= max(self.seconds or 0.0, self.times * last_seconds)
