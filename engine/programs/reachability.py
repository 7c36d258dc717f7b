"""Reachability: which vertices some path leads to, from one source or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.precision import narrowed
from penstock.engine.program.program import Field, Program, Start
from penstock.engine.program.vertex_ids import internal_ids
from penstock.storage.format.graph import Graph


class Reachability(Program):
    """`reached` (uint32): 1 for the sources and whatever they lead to, else 0. source: original id, or several."""

    reached = Field(np.uint32)
    combine = "or"
    self_combining = True
    early_exit = True
    visits_once = True
    starts_anywhere = True

    def __init__(self, source: int | Sequence[int]) -> None:
        self.source = source

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The sources are reached."""
        first = internal_ids(graph, self.source)
        state["reached"][first] = 1
        return Start(active=first)

    def edge(reached):  # type: ignore[no-untyped-def]
        """Travels along an edge: the news."""
        return reached

    def cond(reached):  # type: ignore[no-untyped-def]
        """Only vertices not reached yet take part."""
        return reached == 0

    def lighter(self, graph: Graph) -> Program | None:
        """The same in a byte a vertex."""
        return narrowed(self, "uint32", "uint8") if type(self) is Reachability else None
