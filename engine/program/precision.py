"""Programs in numbers of fewer bytes: `--precision single`, and what has the same answer, counts and marks.

In single precision (`--precision single`) fields of float64, and messages, are float32, by the same functions; what an
author's function computes and what Globals add up is not. Whole numbers are narrower where a graph has few edges, and
marks where memory is short; the answer has the types of the program (`Widened`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from penstock.engine.program.program import Field, Kind, Program, fields_of, has_phases, like
from penstock.engine.program.program_description import class_maker
from penstock.engine.program.vertex_ranges import each_range
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph

TOLERANCE = 1e-4
"""Largest relative difference between two correct runs in single precision."""
MOST_EDGES = 2**30
"""Edges of a graph, fewer than which int32 counts at any vertex, those that go out and those that come in together."""


def formed(program: Program, graph: Graph, mode: str, precision: str) -> Program:
    """The form of a program for a graph and the options of these names.

    Raises InputError for single precision of a program that has none.
    """
    made = program.form(graph, mode)
    if vars(type(made)).get("counts_edges"):  # not of a class that derives from it, which may count something else
        made = counting(made, graph)
    if precision == "double":
        return made
    if not made.single:
        raise InputError(
            f"precision is {precision!r}, and {type(made).__name__} has no such form: its numbers are whole, or need "
            "all of float64; leave --precision out"
        )
    return like(made, single_form(type(made)))


@class_maker
def single_form(kind: type[Kind]) -> type[Kind]:
    """The program with float32 for float64, in its phases too; messages are of the type of the first field."""
    narrow: dict[str, Field] = {
        name: replace(field, dtype=np.dtype(np.float32))
        for name, field in fields_of(kind).items()
        if field.dtype is np.float64
    }
    if not narrow:
        return kind

    def phases(self: Any, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        yield from map(_narrowed, kind.phases(self, graph, state, first))

    def may_run(self: Any, graph: Graph) -> Iterable[Program] | None:
        return map(_narrowed, kind.may_run(self, graph) or ())

    body = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    body |= {"phases": phases, "may_run": may_run} if has_phases(kind) else {}
    return type(kind.__name__, (kind,), {**body, **narrow, "tolerance": TOLERANCE})


def _narrowed(phase: Program) -> Program:
    """A phase in single precision: the object that its program knows, whose end it will look at."""
    phase.__class__ = single_form(type(phase))
    return phase


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


@dataclass(frozen=True)
class Widened:
    """Whole numbers, widened where they are read.

    numbers: integers, (vertices,); dtype: the answer's. The largest number of either stands for no value.
    """

    numbers: NDArray[Any]
    dtype: np.dtype[Any]
    ndim = 1

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """The values in some rows."""
        found: NDArray[Any] = self.numbers[rows].astype(self.dtype)
        found[found == np.iinfo(self.numbers.dtype).max] = np.iinfo(self.dtype).max
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The values in all rows."""
        found = np.empty(len(self), self.dtype)

        def fill(first: int, last: int) -> None:
            found[first:last] = self[first:last]

        each_range(fill, len(self))
        return found
