"""Ranges: lowest first, none twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.slot_pool import ALIGNMENT, HUGE_PAGE, RangePool, ReservedArray, aligned_empty


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_aligned(count):
    array = aligned_empty(count, np.float64)
    assert array.shape == (count,)
    assert count == 0 or array.ctypes.data % 4096 == 0


def first_gap(owners: list[int], length: int) -> int | None:
    """The first place of `length` free items, by looking at every item."""
    for first in range(len(owners) - length + 1):
        if not any(owners[first : first + length]):
            return first
    return None


@given(st.integers(0, 12), st.lists(st.integers(-12, 6), max_size=60))
def test_an_item_has_one_owner(count: int, moves: list[int]) -> None:
    """moves: give back the range that begins there, or take one of -length items."""
    pool, owners, taken = RangePool(count), [0] * count, dict[int, int]()
    for number, move in enumerate(moves, start=1):
        if move < 0:
            found = pool.take(-move)
            assert found == first_gap(owners, -move)
            if found is not None:
                owners[found : found - move] = [number] * -move
                taken[found] = -move
        elif move in taken:
            pool.give(move)
            length = taken.pop(move)
            owners[move : move + length] = [0] * length
        else:
            with pytest.raises(ValueError, match="not taken"):
                pool.give(move)
        assert pool.free == owners.count(0)


def test_what_was_given_back_is_one_range_again() -> None:
    pool = RangePool(10)
    found = [pool.take(length) for length in (2, 3, 5)]
    assert found == [0, 2, 5]
    assert pool.take(1) is None
    for first in (0, 5, 2):
        pool.give(first)
    assert pool.take(10) == 0


@pytest.mark.parametrize("huge", [True, False])
def test_what_is_forgotten_of_a_reserved_array_is_zero_and_the_rest_stays(huge: bool) -> None:
    array = ReservedArray(5000, np.uint32, huge=huge)
    assert not array.values.any()
    array.values[:] = 7
    array.forget(1024, 2048)
    assert set(array.values[1024:2048]) == {0}
    assert set(np.concatenate([array.values[:1024], array.values[2048:]])) == {7}
    assert len(array.memory(4096, 9999)) == ALIGNMENT  # the last page, as far as there are items
    array.forget(4096, 9999)
    assert set(array.values[4096:]) == {0}
    assert array.values.ctypes.data % HUGE_PAGE == 0
