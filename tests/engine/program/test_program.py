"""What a program may say, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, run
from penstock.engine.program.program import (
    LARGEST,
    VERTEX,
    Field,
    Global,
    Program,
    check,
    fields_of,
    globals_of,
    resolve_dtype,
    value_of,
)
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.pagerank_forms import ResidualPageRank
from penstock.storage.base.errors import InputError


class Widest(Program):
    width = Field(np.float64)
    combine = "max"
    self_combining = True
    bonus = 2.0

    def edge(width, weight, bonus):
        return min(width, weight) * bonus


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
        ("cond", lambda target_width: target_width, "reads 'target_width'"),
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


@pytest.mark.parametrize(
    ("dtype", "values", "message"),
    [
        (np.uint32, {"fill": -1}, "a Field of uint32 cannot hold -1.*LARGEST"),
        (np.uint32, {"fill": 2**32}, "cannot hold 4294967296"),
        (np.uint32, {"fill": 1.5}, "cannot hold 1.5"),
        (np.int64, {"unreached": float("inf")}, "a Field of int64 cannot hold inf"),
        (np.float64, {"fill": "none"}, "a Field of float64 cannot hold 'none'"),
        (VERTEX, {"fill": -1}, "cannot hold -1"),
        (str, {}, r"Field\(str\): a field holds numbers; give a NumPy type such as np.float64"),
        (object, {}, r"Field\(object\)"),
        ("nonsense", {}, r"Field\(nonsense\)"),
        (np.complex128, {}, r"Field\(complex128\)"),
    ],
)
def test_fields_that_cannot_be_are_refused(dtype: Any, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Field(dtype, **values)


class Array(Widest):
    """Returns what is no Start."""

    needs_weights = False

    def start(self, graph: Any, state: Any) -> Any:
        return np.array([0])


def test_a_start_that_returns_no_start_is_refused() -> None:
    with pytest.raises(InputError, match=r"Array.start\(\) returned ndarray; return Start\(active=ids\)"):
        run(Array(), Graph.from_arrays([0, 1, 1], [1]), kernels="reference")
