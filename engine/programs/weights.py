"""When edges count by their weights; and the sums of them, which programs that send shares need first.

The rule: a program to which weights mean something uses those of the graph where it has some; it counts each edge as 1
where the graph has none, and where its parameter `weight` is false. The sums: fields `outgoing` and `arriving` belong
to the program whose phase this is. Parallel edges count each; an unweighted graph's edges count 1.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.program.program import Field, Program
from penstock.storage.base.errors import InputError


def counts_by_weight(weight: bool | str | None) -> bool:
    """Whether edges count by their weights; weight: a program's parameter, True or any name (as networkx has it).

    Raises InputError for what is none of True, False, None and a name.
    """
    if isinstance(weight, str) and weight.lower() in ("", "false", "no", "none", "off"):
        raise InputError(f"weight is the text {weight!r}; write weight=False for edges that count 1 each")
    if not isinstance(weight, bool | np.bool_ | str | None):
        raise InputError(f"weight is {weight!r}; it must be True (edges count by their weights) or False (1 each)")
    return bool(weight)


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
