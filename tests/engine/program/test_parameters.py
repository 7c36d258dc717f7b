"""Every parameter of every program is checked, by its annotation, wherever a program is made."""

from __future__ import annotations

import inspect
import math
from typing import Annotated, Any

import numpy as np
import pytest
from penstock.engine import Field, Graph, Program, run
from penstock.engine.api import make
from penstock.engine.program.parameters import Kind, Range, kinds_of
from penstock.engine.programs.table import PROGRAMS
from penstock.storage.base.errors import InputError

CHAIN = Graph.from_arrays([0, 1, 2, 3, 3], [1, 2, 3])
ELSEWHERE = {
    "source",
    "target",
    "personalization",
    "dangling",
    "nstart",
    "earlier",
    "weight",
    "initial",
    "fixed",
    "inputs",
    "dtype",
    "function",
    "steps",
}
"""Vertices are looked up in a graph, whether edges count by their weights is no number, and steps are several."""


def parameters() -> list[tuple[str, str]]:
    return [(name, one) for name, kind in PROGRAMS.items() for one in inspect.signature(kind).parameters]


@pytest.mark.parametrize(("name", "parameter"), [pair for pair in parameters() if pair[1] not in ELSEWHERE])
def test_every_parameter_has_a_kind_and_a_range(name: str, parameter: str) -> None:
    program = PROGRAMS[name]
    kind = kinds_of(program.__init__)[parameter]
    assert kind.range is not None or kind.kinds == {bool}
    bad: list[Any] = ["abc", math.nan, -math.inf, [1], 1j]
    if kind.range is not None and kind.range.low > -math.inf:
        bad.append(kind.range.low - 1)
    if kind.kinds == {int}:
        bad += [3.5, 3.0, True, 10**30]
    if kind.kinds == {bool}:
        bad += [0, 2]
    if not kind.optional:
        bad.append(None)
    needed = {one: 0 for one, spec in inspect.signature(program).parameters.items() if spec.default is spec.empty}
    for value in bad:
        with pytest.raises(InputError, match=f"{program.__name__}: {parameter} is .*; it must be "):
            program(**{**needed, parameter: value})


@pytest.mark.parametrize(
    ("program", "given", "message"),
    [
        ("pagerank", {"tol": math.nan}, "PageRank: tol is nan; it must be a number of at least 0"),
        ("pagerank", {"max_iter": 3.5}, "PageRank: max_iter is 3.5; it must be a whole number of at least 0"),
        ("sssp", {"source": 0, "delta": -1}, "SSSP: delta is -1; it must be a number above 0, or None"),
        ("sssp", {"source": 0, "delta": 0}, "delta is 0"),
        ("sssp", {"source": 0, "delta": math.nan}, "delta is nan"),
        ("bfs", {"source": 0, "max_iter": 3.5}, "BFS: max_iter is 3.5; it must be a whole number"),
        ("bfs", {"source": 0, "max_iter": -1}, "BFS: max_iter is -1"),
        ("wcc", {"max_iter": 3}, "WCC: got an unexpected keyword argument 'max_iter'"),
        ("cf", {"momentum": 1.0}, r"momentum is 1.0; it must be a number in \[0, 1\)"),
        ("betweenness", {"normalized": 1}, "normalized is 1; it must be True or False"),
        ("adsorption", {"source": {0: math.nan}}, "the strength of source 0 is nan; it must be a number of at least 0"),
        ("pagerank", {"personalization": {0: math.inf}}, "personalization of vertex 0 is inf; it must be a number"),
    ],
)
def test_bad_values_are_named(program: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(program, CHAIN, kernels="reference", **given)


def test_good_values_of_any_type() -> None:
    for given in ({"tol": np.float32(0.5)}, {"max_iter": np.int64(3)}, {"tol": 1}, {"alpha": None}):
        make(PROGRAMS["pagerank"], given)
    assert run("sssp", CHAIN, source=0, delta=math.inf, kernels="reference").to_dict() == {0: 0, 1: 1, 2: 2, 3: 3}


class Mine(Program):
    """A user's own, with ranges of their own."""

    far = Field(np.int64)

    def __init__(self, depth: int, share: Annotated[float, Range(0, 1)] = 0.5, note: str = "") -> None:
        self.depth, self.share, self.note = depth, share, note


class Inner(Mine):
    def __init__(self, depth: int, flag: bool = False) -> None:
        super().__init__(depth, share=2.0 if flag else 1.0)


def test_a_users_program_is_checked_alike() -> None:
    Mine(3, 1, "a")
    assert (
        str(inspect.signature(Mine))
        == "(depth: 'int', share: 'Annotated[float, Range(0, 1)]' = 0.5, note: 'str' = '') -> 'None'"
    )
    for given in ({"depth": 3.5}, {"depth": "abc"}, {"depth": 1, "share": 1.5}):
        with pytest.raises(InputError, match=r"Mine: .* it must be a "):
            Mine(**given)
    with pytest.raises(InputError, match=r"Inner: share is 2.0; it must be a number in \[0, 1\]"):
        Inner(3, True)
    with pytest.raises(TypeError, match="depth"):
        Mine()  # type: ignore[call-arg]


class Collecting(Mine):
    def __init__(self, *names: str, depth: int = 1) -> None:
        super().__init__(depth)
        self.names = names


def test_arguments_beyond_the_positional_ones_are_no_others() -> None:
    found = Collecting("a", "b")
    assert (found.names, found.depth) == (("a", "b"), 1)
    with pytest.raises(InputError, match=r"Collecting: depth is 2\.5; it must be a whole number"):
        Collecting("a", depth=2.5)  # type: ignore[arg-type]


def test_what_is_not_a_number_is_left_to_others() -> None:
    assert [Kind.of(one) for one in (str, int | str, dict, Any)] == [None] * 4
    assert Kind.of(int | None) == Kind(frozenset({int}), True, None)


def test_sweeps_are_no_asynchronous_run() -> None:
    for name, given in (("pagerank", {}), ("personalized_pagerank", {"source": 0})):
        with pytest.raises(InputError, match='give a tol above 0, or leave mode="async" out'):
            run(name, CHAIN, mode="async", tol=0, max_iter=3, **given)
