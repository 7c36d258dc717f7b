"""Slots: lowest first, none twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.slot_pool import SlotPool, aligned_empty


@given(st.integers(0, 8), st.lists(st.integers(-1, 8), max_size=60))
def test_a_slot_has_one_owner(count, moves):
    slots, mine = SlotPool(count), set()
    for move in moves:
        if move < 0:
            slot = slots.take()
            assert (slot is None) == (len(mine) == count)
            if slot is not None:
                assert slot == min(set(range(count)) - mine)
                mine.add(slot)
        elif move in mine:
            slots.give(move)
            mine.remove(move)
        else:
            with pytest.raises(ValueError, match="not taken"):
                slots.give(move)
        assert slots.free == count - len(mine)


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_aligned(count):
    array = aligned_empty(count, np.float64)
    assert array.shape == (count,)
    assert count == 0 or array.ctypes.data % 4096 == 0
