"""Programs with numbers of fewer bytes and the same answer: counts where a graph has few edges, and marks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

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
    return program if graph.edges >= MOST_EDGES else narrowed(program, "int64", "int32")


def narrowed(program: Program, wide: str, narrow: str) -> Program:
    """The same with one type of whole numbers for another, in its fields and messages."""
    made: Program = like(program, _narrow(type(program), wide, narrow))
    return made


class NarrowNumbers:
    """What such a program has otherwise; comes before it among the bases."""

    by_ranges = True
    wide: ClassVar[np.dtype[Any]]
    narrow: ClassVar[np.dtype[Any]]

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The answer of the program, in its types."""
        found: dict[str, Any] = super().finish(graph, state)  # type: ignore[misc]
        return {name: Widened(one, self.wide) if one.dtype == self.narrow else one for name, one in found.items()}


@class_maker
def _narrow(kind: Any, wide: str, narrow: str) -> Any:
    """A program of this kind with one type for the other."""
    types = {"wide": np.dtype(wide), "narrow": np.dtype(narrow)}
    given, taken = (one.type for one in types.values())
    fields = {name: replace(one, dtype=taken) for name, one in fields_of(kind).items() if one.dtype is given}
    words = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    on_cores = types["narrow"].itemsize < 4  # see `Program.on_cores`
    own = {**words, **types, **fields, "message": taken, "on_cores": on_cores}
    return type(kind.__name__, (NarrowNumbers, kind), own)
