"""What programs on networks of conductances share: their sums at each vertex, and what is refused.

An edge conducts both ways, whatever its direction in the graph, and its weight is its conductance (1 in a graph without
weights). Parallel edges count each; a self-loop carries nothing, and counts nowhere. Whether there is one is found
first, since sweeps whose edges compare their ends cannot group messages by their sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Field
from penstock.engine.program.vertex_ids import vertex_column
from penstock.engine.program.vertex_ranges import over_ranges
from penstock.engine.programs.weights import Sums
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.graph import Graph


class Conductance(Sums):
    """The sum of the conductances of a vertex' edges."""

    conductance = Field(np.float64)
    accumulator = "conductance"
    along = "both"
    non_negative_weights = True

    def edge(source, target, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: its conductance."""
        return weight if source != target else 0


class SelfLoops(Conductance):
    """The sum of the conductances of a vertex' self-loops."""

    def edge(source, target, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: the conductance of a self-loop."""
        return weight if source == target else 0


class Looped:
    """What sweeps have otherwise on a graph with self-loops."""

    def edge(sent, source, target, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way."""
        return sent * weight if source != target else 0 * sent


def any_conducts(conductance: NDArray[Any]) -> bool:
    """Whether a sum of conductances is not 0."""
    return any(over_ranges(lambda first, last: bool(conductance[first:last].any()), len(conductance)))


def largest_conductance(graph: Graph, conductance: NDArray[Any]) -> float:
    """The largest sum of conductances, 0 where there is none. Raises InputError for a sum that is no finite number."""
    found = over_ranges(lambda first, last: float(conductance[first:last].max(initial=0.0)), len(conductance))
    largest = max(found, default=0.0)
    if not np.isfinite(largest):
        worst = np.flatnonzero(~np.isfinite(conductance))[0]
        named = brief(str(vertex_column(graph)[worst]))
        raise InputError(
            f"the conductances at vertex {named} add up to {conductance[worst]}, and must have "
            "finite sums; run with --no-weight, convert with other weights, or leave out --precision single"
        )
    return largest
