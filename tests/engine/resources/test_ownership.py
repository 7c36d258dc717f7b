"""Shares of partitions are contiguous, complete and fair."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine.resources.ownership import owners


@given(st.lists(st.integers(1, 1000), max_size=60), st.integers(1, 5))
def test_contiguous_complete_and_within_one_partition_of_even(lengths: list[int], devices: int) -> None:
    array = np.array(lengths, dtype=np.int64)
    owner = owners(array, [1.0] * devices)
    assert len(owner) == len(lengths)
    assert np.all(np.diff(owner) >= 0)
    if lengths:
        shares = [int(array[owner == device].sum()) for device in range(devices)]
        assert sum(shares) == sum(lengths)
        assert max(shares) <= sum(lengths) / devices + max(lengths)


def test_a_faster_device_gets_more() -> None:
    assert owners(np.full(10, 5), [4.0, 1.0]).tolist() == [0] * 8 + [1] * 2
