"""Programs of real numbers in single precision (`--precision single`): the same functions on narrower fields.

Fields of float64, and messages, are float32 then; what an author's function computes and what Globals add up is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.narrow_numbers import counting
from penstock.engine.program.program import Field, Kind, Program, fields_of, has_phases, like
from penstock.engine.program.program_description import class_maker
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph

TOLERANCE = 1e-4
"""Largest relative difference between two correct runs in single precision."""


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
