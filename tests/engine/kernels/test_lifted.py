"""Authors' functions of numbers that are called with arrays: the same results as item by item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.reference.lifted import lifted

COUNT = 50
ONE, OTHER = np.arange(COUNT, dtype=np.uint32), np.arange(COUNT, dtype=np.uint32)[::-1].copy()
BITS = np.full(COUNT, 2**64 - 1, np.uint64)
EVERY = np.arange(10) * 3


def branching(a: Any, b: Any) -> Any:
    if a > b and b > 3:
        return a * b, 1
    return max(a, b) - 60, 0.5


def below_zero(a: Any, b: Any) -> Any:
    return a - b if a != 7 else 0


def looking(a: Any, every_place: Any) -> Any:
    return every_place[a] if a < 10 else -1


def changing(a: Any, b: Any) -> Any:
    a += b
    return a


def looping(a: Any, b: Any) -> Any:
    total = 0
    for number in range(a):
        total += number * b
    return total


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    ("function", "given"),
    [
        (branching, (ONE, OTHER)),
        (branching, (ONE, np.int64(7))),
        (below_zero, (ONE, OTHER)),
        (looking, (ONE, EVERY)),
        (changing, (ONE, OTHER)),
        (looping, (ONE, OTHER)),
        (lambda bits, a: bits >> a, (BITS, ONE)),
        (lambda bits: bits & 255, (BITS,)),
    ],
)
def test_arrays_give_what_numbers_give(function: Callable[..., Any], given: tuple[Any, ...], times: int) -> None:
    before = [np.copy(one) for one in given]
    wide = lifted(function)
    for _ in range(times):
        found = wide(*given)
    rows = [one.tolist() if isinstance(one, np.ndarray) and one is not EVERY else [one] * COUNT for one in given]
    wanted = [function(*row) for row in zip(*rows, strict=True)]
    if isinstance(found, tuple):
        np.testing.assert_array_equal(np.stack(found, axis=1), np.array(wanted))
    else:
        np.testing.assert_array_equal(np.asarray(found), np.array(wanted, dtype=np.asarray(found).dtype))
    for one, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(one, old)


def test_no_array_is_no_array() -> None:
    assert lifted(lambda iteration: iteration + 1)(np.int64(3)) == 4
