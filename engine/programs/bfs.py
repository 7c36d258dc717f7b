"""Breadth-first search: levels and parents from one source or several.

Level-synchronous, push or early-exit pull (Beamer, Asanović, Patterson, SC 2012). A vertex's parent is the
smallest internal id among its in-neighbors of the previous level, so that runs agree to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.vertices import internal_ids, original_values
from penstock.storage.graph import Graph

UNREACHED = np.uint32(2**32 - 1)


class BFS(Program):
    """Levels (uint32, a source has 0) and parents (a source is its own) from `source`.

    source: original id of the first vertex, or several: then the level is the distance to the nearest of them. Vertices
    that are not reached have neither.
    """

    level = Field(np.uint32, fill=UNREACHED, unreached=UNREACHED)
    parent = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    combine = "min"
    message = VERTEX
    early_exit = True
    starts_anywhere = True

    def __init__(self, source: int | Sequence[int]) -> None:
        self.source = source

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Put the sources on level 0."""
        first = internal_ids(graph, self.source)
        state["level"][first] = 0
        state["parent"][first] = first
        return Start(active=first)

    def edge(source):  # type: ignore[no-untyped-def]
        """Travels along an edge: who sends it."""
        return source

    def wants(level):  # type: ignore[no-untyped-def]
        """Only vertices not reached yet take part."""
        return level == UNREACHED

    def vertex(incoming, iteration):  # type: ignore[no-untyped-def]
        """A reached vertex: its level, its parent."""
        return iteration + 1, incoming

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Parents as original ids."""
        return {"level": state["level"], "parent": original_values(graph, state["parent"])}
