"""What a program may say, and what is refused before anything runs."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.program import (
    LARGEST,
    VERTEX,
    Field,
    Global,
    Program,
    check,
    fields_of,
    globals_of,
    message_dtype,
    resolve_dtype,
    scalar_names,
    value_of,
)
from penstock.engine.programs.pagerank import PageRank, ResidualPageRank
from penstock.storage.errors import InputError


class Widest(Program):
    width = Field(np.float64)
    combine = "max"
    self_combining = True
    bonus = 2.0

    def edge(width, weight, bonus):
        return min(width, weight) * bonus


def test_a_sound_program_passes() -> None:
    check(Widest())
    assert scalar_names(Widest()) == ("bonus",)
    assert message_dtype(Widest(), np.dtype(np.uint32)) == np.float64


def test_fields_and_globals_keep_their_order_and_can_be_taken_back() -> None:
    assert list(fields_of(ResidualPageRank)) == ["rank", "residual"]
    assert list(globals_of(PageRank)) == ["dangling", "change"]
    assert globals_of(ResidualPageRank) == {}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("combine", "mean", "'mean'; it must be one of min, max, sum, or, union"),
        ("edge", None, "has no edge"),
        ("self_combining", False, r"has no vertex\(\)"),
        ("width", None, "declares no Field"),
        ("edge", lambda distance: distance, r"test_program.py:\d+\) reads 'distance', which is neither"),
        ("wants", lambda target_width: target_width, "reads 'target_width'"),
    ],
)
def test_mistakes_are_named(name: str, value: object, message: str) -> None:
    program = type("Widest", (Widest,), {name: value})()
    with pytest.raises(InputError, match=message):
        check(program)


def test_a_global_combines_by_sum_min_or_max() -> None:
    with pytest.raises(InputError, match="'mean' is not one of"):
        Global(np.float64, combine="mean")


def test_vertex_and_largest_depend_on_the_graph() -> None:
    assert resolve_dtype(VERTEX, np.dtype(np.uint64)) == np.uint64
    assert value_of(LARGEST, np.dtype(np.uint32)) == 2**32 - 1
    assert value_of(LARGEST, np.dtype(np.float32)) == np.inf
    assert value_of(None, np.dtype(np.float32)) is None
    assert repr(VERTEX) == "VERTEX"
    assert repr(LARGEST) == "LARGEST"
