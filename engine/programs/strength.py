"""Strength: the weights of the edges that leave and enter every vertex, added up; its degree, weighted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Field, Program
from penstock.engine.programs.degrees import DegreeColumn
from penstock.engine.programs.weights import ArrivingWeight, OutgoingWeight, counts_by_weight
from penstock.storage.format.graph import Graph


class Strength(Program):
    """`strength`, `in_strength`, `out_strength` (float64). Parallel edges count each.

    weight: whether edges count by their weights where the graph has some (False or None: each counts 1). In a directed
    graph `strength` is the sum of the two others; in an undirected one all three are the same, a self-loop counting
    once, as `degrees` has it.
    """

    strength = Field(np.float64, kept=False)
    in_strength = Field(np.float64, kept=False)
    out_strength = Field(np.float64, kept=False)
    outgoing = Field(np.float64, output=False)
    arriving = Field(np.float64, output=False)
    tolerance = 1e-9
    by_ranges = True

    def __init__(self, weight: bool | str | None = True) -> None:
        self.needs_weights = counts_by_weight(weight)

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """A sweep against the edges, and along them where they have a direction."""
        sums = OutgoingWeight(self.needs_weights), ArrivingWeight(self.needs_weights)
        return sums if graph.directed else sums[:1]

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """The sweeps."""
        yield from list(self.may_run(graph))[first:]

    def phase_name(self, graph: Graph, number: int) -> str:
        """Whose weights are added up."""
        return ("out-edges", "in-edges")[number]

    def phase_count(self, graph: Graph) -> int:
        """Two where edges have a direction."""
        return 1 + graph.directed

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Both sums, and theirs."""
        leaving, arriving = state["outgoing"], state["arriving"] if graph.directed else state["outgoing"]
        both = (leaving, arriving) if graph.directed else (leaving,)
        whole = DegreeColumn(graph.vertices, *both, dtype=leaving.dtype)
        return {"strength": whole, "in_strength": arriving, "out_strength": leaving}
