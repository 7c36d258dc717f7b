"""The gathering that is timed is the one that compaction does."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.calibration.probes import PART_ROWS, gathering
from penstock.engine.kernels.probes.host_probes import ROW_EDGES


@pytest.mark.parametrize("rows", [1, 3, PART_ROWS])
def test_gathering_takes_every_other_row(rows: int) -> None:
    source = np.random.default_rng(1).integers(0, 1 << 32, 2 * rows * ROW_EDGES, np.uint32)
    work = gathering(source)
    for part in reversed(work.parts):
        part()
    offsets, numbers, found = np.split(work.target, [rows + 1, 2 * rows + 1])
    assert np.array_equal(found.reshape(rows, ROW_EDGES), source.reshape(rows, 2, ROW_EDGES)[:, 0])
    assert np.array_equal(numbers, 2 * np.arange(rows))
    assert np.array_equal(offsets, ROW_EDGES * np.arange(rows + 1))
    assert work.size == 4 * (ROW_EDGES + 2) * rows + 4
