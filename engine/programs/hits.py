"""Hubs and authorities (HITS): a good hub points to good authorities, a good authority is pointed to by good hubs.

Kleinberg, J. ACM 1999, in two phases a round: hubs send along their edges, authorities against them. The rounds are
those of a power iteration, sped up by Chebyshev polynomials: on road networks a tenth of them suffices. Scaled as
networkx scales it: both sum to 1.

A plain power iteration loses 1 - r of its error in a round, r being the second eigenvalue over the first: 0.996 for the
road network of Luxembourg. Chebyshev polynomials that are small on [0, cut] and grow beyond it lose about 2 sqrt(1 -
r), if the cut is just below the second eigenvalue. That is not known: the cut begins as what the first power rounds
make of it, and a cycle that falls behind what its cut promises tells of an eigenvalue above, to which the cut is raised
(adaptive Chebyshev acceleration: Hageman and Young, Applied Iterative Methods, 1981). The polynomials are positive and
increasing beyond the cut: as in a power iteration the share of the dominant vector never shrinks, which locally optimal
methods (LOBPCG) do not promise. No eigenvalue may be negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, NonNegative
from penstock.engine.program.program import Field, Program
from penstock.engine.program.vertex_ranges import absolute_sum
from penstock.engine.programs.weights import Sums, counts_below_zero, counts_by_weight
from penstock.storage.format.graph import Graph

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
    """Which combination of vectors comes next, from numbers alone.

    Its state: the cut, the step in its cycle, the change that the cycle began with.
    """

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


BLOCK = 1 << 15
"""Values taken at a time where vectors are compared."""

Values = NDArray[np.float64]


class HITS(Program):
    """`hub` and `authority` (float64, sum 1 each).

    tol: stop when the L1 change of the hubs in a (plain) round is below; max_iter: rounds. weight: whether edges count
    by their weights where the graph has some (False or None: each counts 1). In a graph whose largest singular value is
    not the only one of its size the answer depends on the start (all alike here), as everywhere.
    """

    hub = Field(np.float64)
    authority = Field(np.float64)
    present = Field(np.float64, output=False)
    former = Field(np.float64, output=False)
    tolerance = 1e-9
    extendable = ("max_iter", "tol")
    by_ranges = True

    def __init__(self, tol: NonNegative = 1e-8, max_iter: Count = 1000, weight: bool | str | None = True) -> None:
        self.tol, self.max_iter, self.needs_weights = tol, max_iter, counts_by_weight(weight)
        self.course = astuple(SemiIteration())

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """The two sweeps of a round."""
        return Authorities(self.needs_weights), Hubs(self.needs_weights)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Authorities from hubs, hubs from authorities, round by round."""
        hub, present = state["hub"], state["present"]
        if first == 0:
            hub[:] = 1 / max(1, graph.vertices)
            self.converged, self.course = False, astuple(SemiIteration())
        choice = SemiIteration(*self.course)
        for number in range(first, 2 * self.max_iter):
            if number % 2 == 0:
                present[:] = hub
                yield Authorities(self.needs_weights)
                continue
            yield Hubs(self.needs_weights)
            growth = absolute_sum(hub)
            change = _change(hub, growth, present)
            if change < self.tol:
                self.converged = True
                break
            _combine(choice.following(change, growth), hub, present, state["former"])
            self.course = astuple(choice)
        negative = counts_below_zero(self, graph)
        for values in (hub, state["authority"]):
            if not negative:
                np.maximum(values, 0.0, out=values)  # what differences of rounding left below
            total = float(values.sum())
            values /= total if total > 0 else 1.0

    def phase_name(self, graph: Graph, number: int) -> str:
        """``round 3, hubs``."""
        return f"round {number // 2 + 1:,}, {('authorities', 'hubs')[number % 2]}"

    def phase_count(self, graph: Graph) -> int:
        """Two a round, at most."""
        return 2 * self.max_iter


class Authorities(Sums):
    """One sweep: the sum of the hubs that point here."""

    authority = Field(np.float64)
    hub = Field(np.float64, constant=True)
    accumulator = "authority"

    def edge(hub, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return hub * weight


class Hubs(Sums):
    """One sweep: the sum of the authorities pointed to."""

    hub = Field(np.float64)
    authority = Field(np.float64, constant=True)
    accumulator = "hub"
    along = "in"

    def edge(authority, weight):  # type: ignore[no-untyped-def]
        """Travels against an edge."""
        return authority * weight


def _change(hub: Values, growth: float, present: Values) -> float:
    """L1 distance of what a round made, scaled, from what it was made of."""
    share = 1 / growth if growth > 0 else 0.0
    parts = (slice(first, first + BLOCK) for first in range(0, len(hub), BLOCK))
    return sum(float(np.abs(hub[part] * share - present[part]).sum()) for part in parts)


def _combine(how: Combination, hub: Values, present: Values, former: Values) -> None:
    """Put the next vector into `hub`, the last into `former`, so that the next one's L1 norm is 1."""
    if how != POWER:
        hub *= how[0]
        former *= how[2]
        hub += former
        former[:] = present
        present *= how[1]
        hub += present
    norm = absolute_sum(hub)
    if norm > 0:
        hub /= norm
        former /= norm
