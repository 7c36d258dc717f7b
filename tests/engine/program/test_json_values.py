"""Python values as JSON: they come back the same, or are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine.program.program_description import from_json_value, to_json_value

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    HASHABLE | st.sets(HASHABLE, max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(HASHABLE, inner, max_size=3),
    max_leaves=12,
)


def through_json(value: Any) -> Any:
    return from_json_value(json.loads(json.dumps(to_json_value(value))))


@given(VALUES)
def test_values_come_back_with_their_types(value: Any) -> None:
    found = through_json(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.uint16).reshape(2, 3),
        np.zeros((0, 2)),
        np.array(["a", "bc"]),
        np.float32(0.1),
        np.uint64(2**63),
    ],
)
def test_numpys_values_come_back_to_the_bit(value: Any) -> None:
    found = through_json(value)
    assert type(found) is type(value)
    assert (found.dtype, found.shape, found.tobytes()) == (value.dtype, value.shape, value.tobytes())


def test_an_array_that_comes_back_may_be_written() -> None:
    through_json(np.zeros(3))[0] = 1.0


def test_no_number_and_infinity_come_back() -> None:
    assert math.isnan(through_json(math.nan))
    assert through_json([math.inf, -0.0]) == [math.inf, -0.0]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (print, "builtin_function_or_method"),
        (Path("x"), "Path"),
        ([1, {2: object()}], "object"),
        (np.array([None]), "ndarray"),
    ],
)
def test_what_is_not_known_is_refused_by_its_type(value: Any, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        to_json_value(value)


@pytest.mark.parametrize(
    "text",
    ['{"object": 1}', '{"array": ["O", [1], "AAAAAAAAAAA="]}', '{"array": ["u1", [9], "AA=="]}', '{"bytes": "!"}'],
)
def test_json_that_was_never_made_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_json_value(json.loads(text))
