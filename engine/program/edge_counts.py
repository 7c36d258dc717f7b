"""Programs that count edges, in int32 for int64 where no vertex can have more of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import Program, fields_of, like
from penstock.engine.program.program_description import class_maker
from penstock.engine.program.widened import Widened

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph

MOST_EDGES = 2**30
"""Edges of a graph, fewer than which int32 counts at any vertex, those that go out and those that come in together."""


def counting(program: Program, graph: Graph) -> Program:
    """The program, or the same in half of the bytes where the graph has so few edges."""
    if graph.edges >= MOST_EDGES:
        return program
    made: Program = like(program, _small(type(program)))
    return made


class SmallCounts:
    """What such a program has otherwise; comes before it among the bases."""

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The answer of the program, in int64."""
        found: dict[str, Any] = super().finish(graph, state)  # type: ignore[misc]
        wide = np.dtype(np.int64)
        return {name: Widened(values, wide) if values.dtype == np.int32 else values for name, values in found.items()}


@class_maker
def _small(kind: Any) -> Any:
    """A program of this kind with int32 for the int64 of fields and messages."""
    fields = {n: replace(one, dtype=np.int32) for n, one in fields_of(kind).items() if one.dtype is np.int64}
    words = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    return type(kind.__name__, (SmallCounts, kind), {**words, **fields, "message": np.int32})
