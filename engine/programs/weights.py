"""How much weight lies on a vertex's edges: the first phase of programs that send shares of it.

Fields `outgoing` and `arriving` belong to the program whose phase this is. Parallel edges count each; an unweighted
graph's edges count 1.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.program import Field, Program


class OutgoingWeight(Program):
    """Sum of the weights of a vertex's out-edges: every edge tells its source."""

    outgoing = Field(np.float64)
    combine = "sum"
    along = "in"
    everywhere = True
    needs_weights = True
    max_iter = 1

    def edge(weight):  # type: ignore[no-untyped-def]
        """Travels against an edge: its weight."""
        return weight

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The sum."""
        return incoming


class ArrivingWeight(Program):
    """Sum of the weights of a vertex's in-edges."""

    arriving = Field(np.float64)
    combine = "sum"
    everywhere = True
    needs_weights = True
    max_iter = 1

    def edge(weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: its weight."""
        return weight

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The sum."""
        return incoming
