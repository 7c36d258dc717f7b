"""Types of arguments that are told in JSON are the same; others are refused."""

import json
from typing import Any

import numpy as np
import pytest
from numba import typeof, types
from penstock.storage.base.kernel_loading import signature_of, told_types


def test_types_are_the_same() -> None:
    fixed = np.zeros((2, 3), np.uint8)
    fixed.flags.writeable = False
    odd = np.zeros(9, np.uint8)[1:].view(np.uint32), np.zeros(8)[::2], fixed, np.asfortranarray(np.zeros((2, 2)))
    values = (1, 2.0, True, np.uint8(3), np.float32(1), None, (), (1, (2, 3.0)), *odd)
    signature = tuple(typeof(value) for value in values)
    assert signature_of(json.loads(json.dumps(told_types(signature)))) == signature


UNNAMED = types.List(types.int64), types.literal(3), types.Optional(types.int64)
RECORD = types.Record.make_c_struct([("a", types.int8)])
INSIDE = (
    types.Tuple([types.int64, types.literal(3)]),
    types.Array(RECORD, 1, "C"),
)


@pytest.mark.parametrize("kind", [*UNNAMED, *INSIDE])
def test_others_are_refused(kind: Any) -> None:
    with pytest.raises(TypeError):
        told_types((kind,))
