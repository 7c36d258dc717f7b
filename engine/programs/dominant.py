"""Chebyshev's semi-iteration for a dominant eigenvector: which combination of vectors comes next, from numbers alone.

A plain power iteration loses 1 - r of its error in a round, r being the second eigenvalue over the first: 0.996 for
the road network of Luxembourg. Chebyshev polynomials that are small on [0, cut] and grow beyond it lose about
2 sqrt(1 - r), if the cut is just below the second eigenvalue. That is not known: the cut begins as what the first
power rounds make of it, and a cycle that falls behind what its cut promises tells of an eigenvalue above, to which the
cut is raised (adaptive Chebyshev acceleration: Hageman and Young, Applied Iterative Methods, 1981). The polynomials
are positive and increasing beyond the cut: as in a power iteration the share of the dominant vector never shrinks,
which locally optimal methods (LOBPCG) do not promise. Refuses to touch a vector; no eigenvalue may be negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

POWER_ROUNDS = 3
"""Before the cut is set, and of every cycle before it is judged."""
BEHIND = math.log(4.0)
"""A cycle has fallen behind if this much (logarithm) more is left than its cut promises."""
HIGHEST_CUT = 1 - 1e-6
"""Of the first eigenvalue."""

Combination = tuple[float, float, float]
"""(a, b, c): the next vector is a * (matrix * present) + b * present + c * former, both then scaled alike."""
POWER: Combination = (1.0, 0.0, 0.0)


@dataclass
class SemiIteration:
    """The state of the decision: the cut, the step in its cycle, the change that the cycle began with."""

    cut: float = 0.0
    step: int = 0
    began: float = math.inf
    rounds: int = 0

    def following(self, change: float, first: float) -> Combination:
        """What comes after a round in which the vector would have changed by `change` (a norm, relative).

        first: the estimate of the first eigenvalue, from above or below.
        """
        if not (change > 0 and first > 0):
            return POWER
        if self.cut == 0:
            return self._power(change, first)
        if self.step == 0:
            self.began = change
        else:
            left = math.log(change / self.began) + _log_chebyshev(self.step, 2 * first / self.cut - 1)
            if self.step > POWER_ROUNDS and left > BEHIND:
                self._raise_cut(left, first)
                return POWER
        self.step += 1
        return (2 / self.cut, -1.0, 0.0) if self.step == 1 else (4 / self.cut, -2.0, -1.0)

    def _power(self, change: float, first: float) -> Combination:
        """A power round; the cut is set once the change shrinks."""
        self.rounds += 1
        if self.rounds >= POWER_ROUNDS and change < self.began:
            self.cut = first * min(change / self.began, HIGHEST_CUT)
        self.began = change
        return POWER

    def _raise_cut(self, left: float, first: float) -> None:
        """To the eigenvalue that explains what is left: Chebyshev's polynomial has that value there."""
        beyond = math.cosh((left + math.log1p(math.sqrt(max(0.0, 1 - math.exp(-2 * left))))) / self.step)
        self.cut = min(self.cut * (beyond + 1) / 2, first * HIGHEST_CUT)
        self.step = 0


def _log_chebyshev(degree: int, at: float) -> float:
    """Logarithm of Chebyshev's polynomial of the first kind at a place that is not below 1 (else of its bound)."""
    reach = degree * math.acosh(max(1.0, at))
    return reach + math.log1p(math.exp(-2 * reach)) - math.log(2)
