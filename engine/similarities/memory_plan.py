"""How the memory of similarities is divided, and vertices cut into runs whose rows fit: numbers in, values out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ranges import limited_ranges
from penstock.storage.base.budget import format_bytes, too_small

OWN_BYTES = 8 << 20
"""Pieces that are read, and small things."""

Integers = NDArray[np.int64]
Runs = list[tuple[int, int]]
"""Ranges [first, last) of rows."""


@dataclass(frozen=True)
class Room:
    """Bytes for what is held at once: of a budget, what is left of it beside what is taken already."""

    budget: int
    taken: int

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return max(0, self.budget - self.taken - OWN_BYTES)

    def check(self, least: int, what: str) -> None:
        """Raise BudgetError, with the least budget that works, where `least` bytes for `what` are not left."""
        if least > self.left:
            taken = self.taken + OWN_BYTES
            why = f"vertices, pairs and the answer take {format_bytes(taken)}, and {what} {format_bytes(least)}"
            otherwise = ", or ask for fewer vertices or pairs"
            raise too_small("--host-memory", self.budget, why, taken + least, otherwise)


def runs(sizes: Integers, most: int) -> Runs:
    """Cut rows into consecutive runs of at most `most` bytes, one row at least; sizes: bytes of each."""
    return limited_ranges(np.concatenate([[0], np.cumsum(sizes)]), most)


def even_cuts(work: Integers, steps: int) -> Integers:
    """First rows of so many steps of about the same work, and the number of rows."""
    sums = np.cumsum(work + 1)
    total = int(sums[-1]) if len(sums) else 0
    inner = np.searchsorted(sums, np.linspace(0, total, steps + 1)[1:-1])
    return np.concatenate([[0], inner, [len(work)]]).astype(np.int64)
