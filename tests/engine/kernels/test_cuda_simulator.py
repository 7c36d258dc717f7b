"""Threads of a simulated block share what they ask for on one line, whichever comes first."""

from __future__ import annotations

import threading
import time
from typing import Any

import numba
import numpy as np
import pytest
from penstock.engine.kernels import cuda_simulator as simulator
from penstock.engine.kernels.cuda_simulator import Shared, run_block


def test_a_line_gets_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes to make it, and others on other lines."""
    made: list[Any] = []

    def slowly(shape: Any, dtype: Any) -> Any:
        time.sleep(0.001)
        made.append(np.zeros(shape, dtype))
        return made[-1]

    monkeypatch.setattr(simulator.np, "empty", slowly)
    shared, ready = Shared(), threading.Barrier(4)
    found: list[tuple[int, int]] = []

    def kernel() -> None:
        ready.wait()
        one = shared.array(3, np.int32)
        other = shared.array((2, 2), numba.types.float64)
        found.append((id(one), id(other)))

    run_block(kernel, (), 0, 4)
    assert len(set(found)) == 1
    assert sorted((array.shape, array.dtype.name) for array in made) == [((2, 2), "float64"), ((3,), "int32")]


def test_the_thread_that_failed_first_tells() -> None:
    """Not those that waited for it in vain."""

    def kernel() -> None:
        thread: Any = threading.current_thread()
        if thread.threadIdx.x == 2:
            raise ValueError(f"block {thread.blockIdx.x}")
        thread.syncthreads()

    with pytest.raises(ValueError, match="block 7"):
        run_block(kernel, (), 7, 4)
