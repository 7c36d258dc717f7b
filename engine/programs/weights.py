"""What programs that spread scores share: when edges count by their weights, sums of weights, the damping, the end.

The rule: a program to which weights mean something uses those of the graph where it has some; it counts each edge as 1
where the graph has none, and where its parameter `weight` is false. The sums: fields `outgoing` and `arriving` belong
to the program whose phase this is. Parallel edges count each; an unweighted graph's edges count 1. The damping: the
share that follows edges, which some call alpha.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.program.program import Field, Program
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph


def counts_by_weight(weight: bool | str | None) -> bool:
    """Whether edges count by their weights; weight: a program's parameter, True or any name (as networkx has it).

    Raises InputError for what is none of True, False, None and a name.
    """
    if isinstance(weight, str) and weight.lower() in ("", "false", "no", "none", "off"):
        raise InputError(f"weight is the text {weight!r}; write weight=False for edges that count 1 each")
    if not isinstance(weight, bool | np.bool_ | str | None):
        raise InputError(f"weight is {weight!r}; it must be True (edges count by their weights) or False (1 each)")
    return bool(weight)


def counts_below_zero(program: Program, graph: Graph) -> bool:
    """Whether edges may count less than 0: the sum of a vertex' weights may be 0 then although it has edges."""
    return program.needs_weights and graph.weight_range is not None and bool(graph.weight_range[0] < 0)


def damping_of(damping: float, alpha: float | None, usual: float) -> float:
    """The damping that is meant; alpha: its other name, where that was used; usual: the default.

    Raises InputError for two that differ: it is not known which one was meant.
    """
    if alpha is not None and damping not in (usual, alpha):
        raise InputError(f"damping {damping} and alpha {alpha} are two names of one number; give one of them")
    return damping if alpha is None else alpha


class Sums(Program):
    """A phase of one sweep: its first field becomes the sum of what comes along the edges (`edge`)."""

    combine = "sum"
    everywhere = True
    max_iter = 1

    def __init__(self, weight: bool = True) -> None:
        self.needs_weights = weight

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The sum."""
        return incoming


class OutgoingWeight(Sums):
    """Sum of the weights of a vertex's out-edges: every edge tells its source."""

    outgoing = Field(np.float64)
    accumulator = "outgoing"
    along = "in"

    def edge(weight):  # type: ignore[no-untyped-def]
        """Travels against an edge: its weight."""
        return weight


class ArrivingWeight(Sums):
    """Sum of the weights of a vertex's in-edges; without `weight` the number of them."""

    arriving = Field(np.float64)
    accumulator = "arriving"

    def edge(weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: its weight."""
        return weight


class Spreading(Program):
    """The phase of a program that spreads scores, sweep by sweep until their L1 change is below its `tol`."""

    combine = "sum"
    everywhere = True
    extendable = ("max_iter", "tol")

    def __init__(self, whole: Any) -> None:
        self.damping, self.max_iter, self.needs_weights = whole.damping, whole.max_iter, whole.needs_weights
        self.tol: float = whole.tol

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the last sweep changed little enough."""
        return bool(totals["change"] < self.tol)
