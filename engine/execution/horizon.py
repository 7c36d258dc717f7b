"""How far a run must go whose answer is wanted only so far: to vertices that are asked for, or to a distance.

With priorities, what is beyond the horizon never becomes due, and a run ends when only that is left: no path through a
vertex of a larger distance shortens one (Dijkstra, Numerische Mathematik 1959, ends at a single target likewise).
Without priorities vertices are reached level by level, and the number of the iteration is the distance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import author_function, fields_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.device_state import VertexState

LEAST_FUSED, SHARE_FUSED = 16, 2
"""Iterations in one launch at most, the first time, and later by the part of those that have run: between launches the
horizon is looked at, which takes as long as tens of iterations of a few vertices."""


class Horizon:
    """The horizon of a run, which may come nearer after every iteration.

    ceiling: priorities from here on need not become due. last: iterations that need to run.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ceiling = self.last = math.inf
        self._by_priority = author_function(program, "priority") is not None

    def most_fused(self, iteration: int) -> int:
        """Return how many iterations may run in one launch."""
        return max(LEAST_FUSED, iteration // SHARE_FUSED)

    def look(self, state: VertexState) -> None:
        """Take the horizon from the values that the watched vertices have now."""
        horizon = self.program.horizon(self._watched(state))
        if self._by_priority:
            self.ceiling = math.nextafter(horizon, math.inf)
        else:
            self.last = horizon

    def _watched(self, state: VertexState) -> NDArray[Any]:
        """The first field's values at the vertices that the program watches, from where the state is."""
        field: Any = state.fields[next(iter(fields_of(self.program)))]
        if not self.program.watched:
            return np.empty(0, field.dtype)
        return state.to_host(field[np.asarray(self.program.watched, np.int64)])
