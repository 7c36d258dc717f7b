"""Types of arguments that are told in JSON are the same; others are refused."""

import json
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import typeof, types
from penstock.engine.kernels.interface import Ways
from penstock.engine.kernels.walk_arrays import Rule
from penstock.storage.base.kernel_loading import signature_of, told_types


def test_types_are_the_same() -> None:
    fixed = np.zeros((2, 3), np.uint8)
    fixed.flags.writeable = False
    odd = np.zeros(9, np.uint8)[1:].view(np.uint32), np.zeros(8)[::2], fixed, np.asfortranarray(np.zeros((2, 2)))
    values = (1, 2.0, True, np.uint8(3), np.float32(1), None, (), (1, (2, 3.0)), *odd)
    signature = tuple(typeof(value) for value in values)
    assert signature_of(json.loads(json.dumps(told_types(signature)))) == signature


def test_named_tuples_of_ours_are_the_same() -> None:
    values = np.zeros(3)
    rule, ways = Rule(*range(len(Rule._fields))), Ways(values, *[0] * (len(Ways._fields) - 1))
    signature = tuple(typeof(value) for value in (rule, ways, (1, rule)))
    assert signature_of(json.loads(json.dumps(told_types(signature)))) == signature


class Mine(NamedTuple):
    """Of no module of ours: processes that read its name do not import it."""

    values: int


OTHERS = (
    ["named", "penstock.engine.kernels.walk_arrays", "Rule", "int64"],
    ["named", "penstock.engine.kernels.walk_arrays", "Rule", *["no type"] * len(Rule._fields)],
    ["named", "penstock.engine.kernels.walk_arrays", "no class"],
    ["named", "penstock.engine.kernels.walk_arrays", "NamedTuple"],
    ["named", "penstock.no.module", "Rule"],
    ["named", "penstock", "Rule"],
    ["named", "penstock..engine", "Rule"],
    ["named", "antigravity", "Rule"],
    ["named", "penstock.engine"],
)


@pytest.mark.parametrize("told", OTHERS)
def test_what_names_no_class_of_ours_is_nothing(told: Any) -> None:
    assert signature_of([told]) == (None,)
    assert "antigravity" not in sys.modules


UNNAMED = types.List(types.int64), types.literal(3), types.Optional(types.int64)
RECORD = types.Record.make_c_struct([("a", types.int8)])
INSIDE = (
    types.NamedUniTuple(types.int64, 1, Mine),
    types.Tuple([types.int64, types.literal(3)]),
    types.Array(RECORD, 1, "C"),
)


@pytest.mark.parametrize("kind", [*UNNAMED, *INSIDE])
def test_others_are_refused(kind: Any) -> None:
    with pytest.raises(TypeError):
        told_types((kind,))
