"""Slices of many arrays, copied by address, are what numpy's slices are; buffers are used again and let go."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.convert.sort import spill
from penstock.storage.convert.sort.sort_groups import KeyBuffers


@given(data=st.data())
def test_slices_are_copied_in_order(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 30), max_size=8), "lengths")
    kinds = data.draw(st.lists(st.sampled_from(list(spill.KINDS)), min_size=8, max_size=8), "dtypes")
    absent = data.draw(st.lists(st.booleans(), min_size=8, max_size=8), "absent")
    target = data.draw(st.sampled_from([np.uint32, np.float32, np.float64]), "into")
    cuts = [sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n)), "slice")) for n in lengths]
    starts = np.array([cut[0] for cut in cuts], np.int64)
    ends = np.array([cut[1] for cut in cuts], np.int64)
    keys = [np.arange(n, dtype=np.uint64) + (1 << 63) + 100 * i for i, n in enumerate(lengths)]
    weights: list[Any] = [(np.arange(n) * 3 + i).astype(kinds[i]) for i, n in enumerate(lengths)]
    size = int((ends - starts).sum())
    for arrays, out in ((keys, np.zeros(size, np.uint64)), (weights, np.zeros(size, target))):
        places = np.array([0 if absent[i] else array.ctypes.data for i, array in enumerate(arrays)], np.uint64)
        if out.dtype == np.uint64:
            spill.copy_keys(places, starts, ends, out)
        else:
            codes = np.array([spill.KINDS[array.dtype] for array in arrays], np.int64)
            spill.copy_weights(places, codes, starts, ends, out)
        parts = [
            array[start:end] * (not absent[i]) for i, (array, (start, end)) in enumerate(zip(arrays, cuts, strict=True))
        ]
        assert out.tolist() == (np.concatenate(parts).tolist() if parts else [])


def test_nothing_is_kept_beside_a_large_group() -> None:
    buffers = KeyBuffers(100)
    with buffers.pair(100):
        pass
    with buffers.pair(101) as (one, two):
        assert len(one) == len(two) == 101
        assert buffers._free == []
        with buffers.pair(3):
            pass
        assert buffers._free == []
    with buffers.pair(3):
        pass
    assert len(buffers._free) == 1
    with pytest.raises(ValueError, match="broken"), buffers.pair(101):
        raise ValueError("broken")
    with buffers.pair(3):
        pass
    assert len(buffers._free) == 1
