"""Slips of the pen in a program are told with a line, and what is none is not taken for one."""

# ruff: noqa: F821 - names that nothing defines are what is tested

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from penstock.engine import Field, Graph, Program, run
from penstock.engine.program.program_lint import lint_program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.table import PROGRAMS
from penstock.storage.base.errors import InputError

CHAIN = Graph.from_arrays([0, 1, 2, 3, 3], [1, 2, 3])
LIMIT = 3


class Misspelled(BFS):
    combiner = "max"


class Undefined(BFS):
    def cond(level):  # type: ignore[no-untyped-def]
        return level < factor  # type: ignore[name-defined]


class Silent(BFS):
    def vertex(level):  # type: ignore[no-untyped-def]
        level + 1


class Empty(BFS):
    def edge(level):  # type: ignore[no-untyped-def]
        if level > 3:
            return


class Idle(BFS):
    def start(self, graph: Graph, state: dict[str, Any]) -> Any:
        super().start(graph, state)


class Renamed(BFS):
    def wants(level):  # type: ignore[no-untyped-def]
        return level == 0


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Renamed, r"Renamed.wants is called cond now; rename it"),
        (Misspelled, r"Misspelled.combiner is read by nothing \(did you mean combine\?\); correct it, or rename it"),
        (Undefined, r"Undefined.cond \(.*test_program_lint.py:29\) uses 'factor', .* def cond\(level, factor\)"),
        (Silent, r"Silent.vertex \(.*test_program_lint.py:33\) returns nothing; end it with return and a value"),
        (Idle, r"Idle.start \(.*test_program_lint.py:44\) returns nothing"),
        (Empty, r"Empty.edge \(.*test_program_lint.py:38\) returns nothing"),
    ],
)
def test_a_mistake_is_named(kind: Callable[[int], Program], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(kind(0), CHAIN, kernels="reference")


class Foreign(BFS):
    def cond(level):  # type: ignore[no-untyped-def]
        return np.linalg.norms(level) < 1  # type: ignore[attr-defined]


def test_what_a_module_does_not_have_is_told() -> None:
    place = r"Foreign.cond \(.*test_program_lint.py:\d+\)"
    message = place + " uses 'norms', which numpy.linalg does not have; did you mean norm\\?"
    with pytest.raises(InputError, match=message):
        run(Foreign(0), CHAIN, kernels="reference")


class Kept(BFS):
    """Nearly `bucket`, and read; a module's name; a value that is a name of Python's."""

    buckets = LIMIT

    def start(self, graph: Graph, state: dict[str, Any]) -> Any:
        assert self.buckets == LIMIT
        return super().start(graph, state)

    def cond(level):  # type: ignore[no-untyped-def]
        return level == np.uint32(abs(-(2**32 - 1))) and LIMIT > 1


def halved(value: float) -> float:
    return value / 2


class Mixed:
    """No program, and reads what one holds."""

    def half(self) -> float:
        return halved(self.bucked)  # type: ignore[attr-defined, no-any-return]


class Roundabout(Mixed, BFS):
    """Values under names that are nearly words, each read in a way of its own; branches that are not taken."""

    bucked = 2.0
    tolerances = 3.0
    messages = "x"
    allong = 4
    edge_ = 5

    @property
    def wide(self) -> float:
        return self.tolerances

    @classmethod
    def telling(cls) -> Any:
        return [cls.messages for _ in range(2)]

    def form(self, graph: Graph, mode: str) -> Program:
        return (lambda: (self, self.allong)[0])()

    def cond(level):  # type: ignore[no-untyped-def]
        if LIMIT < 0:
            return np.float_of_old(level) < missing  # type: ignore[attr-defined, name-defined]
        return level == np.uint32(2**32 - 1)


class Fields(Program):
    edges = Field(np.float64)

    def start(self, graph: Graph, state: dict[str, Any]) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("made", [Kept(0), Roundabout(0), Fields(), CollaborativeFiltering()])
def test_what_is_no_slip(made: Program) -> None:
    lint_program(made)


@pytest.mark.parametrize("name", PROGRAMS)
def test_our_own_have_none(name: str) -> None:
    made = object.__new__(PROGRAMS[name])
    lint_program(made)
