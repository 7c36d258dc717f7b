"""Rows handed on by shuffles, which the simulator has not, are those that a thread would read itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.cuda import driver
from penstock.engine.kernels.packed import rows
from penstock.storage.encoding.payload import LANES, ROWS
from support.covering import covering

pytestmark = pytest.mark.skipif(not driver.SIMULATED, reason="there is a device: tests/gpu")


@covering("width", range(33), strength=1, rare={*range(33)} - {0, 1, 2, 7, 8, 15, 16, 17, 31, 32})
def test_shuffled_rows_are_the_rows_read(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight words of each of 32 threads, and the next eight where a value crosses the border of a word."""
    words = np.random.default_rng(width).integers(1, 1 << 32, LANES * (ROWS + 2), np.uint32)
    words[LANES * (width + 1) :] = 0  # a thread reads no row that the block has not

    def begun(lane: int) -> Any:
        monkeypatch.setattr(rows, "cuda", SimpleNamespace(threadIdx=SimpleNamespace(x=lane)))
        return rows._own_row(words, np.int64(LANES), np.uint32(width))

    loaded = [begun(lane) for lane in range(ROWS)]
    monkeypatch.setitem(rows.row_of_lane.__globals__, "from_lane", lambda number, lane: loaded[int(lane)][number])
    for lane in range(ROWS):
        bit = np.uint32(lane * width)
        low, high = rows._rows_of_others(words, np.int64(LANES), range(LANES), bit, np.uint32(width))
        one, other = rows._rows_loaded(words, np.int64(LANES), None, bit, np.uint32(width))
        assert width == 0 or low == one
        assert (int(bit) & 31) + width <= 32 or high == other
