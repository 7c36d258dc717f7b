"""One measurement of a rate: an amount in a number of seconds, at some size or with some number of threads."""

from __future__ import annotations

from dataclasses import dataclass

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
