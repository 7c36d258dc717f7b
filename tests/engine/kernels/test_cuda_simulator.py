"""Threads of a simulated block run in turn, and share what they ask for on one line."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numba.cuda.simulator.kernelapi import FakeCUDAModule
from penstock.engine.kernels.cuda import driver
from penstock.engine.kernels.cuda_simulator import Launch

pytestmark = pytest.mark.skipif(not driver.SIMULATED, reason="there is a device")


def launch(blocks: int) -> Launch:
    """A launch of blocks of 4 threads."""
    return Launch(FakeCUDAModule((blocks, 1, 1), (4, 1, 1), 0))


def test_a_line_gets_one_array_a_block() -> None:
    cuda = launch(2)
    found: list[tuple[Any, Any]] = []

    def kernel() -> None:
        one = cuda.shared.array(3, np.int32)
        other = cuda.shared.array((2, 2), numba.types.float64)
        found.append((one, other))

    cuda.run(kernel, ())
    for place, (shape, kind) in enumerate([((3,), "int32"), ((2, 2), "float64")]):
        arrays = [pair[place] for pair in found]
        assert {(array.shape, array.dtype.name) for array in arrays} == {(shape, kind)}
        assert len({id(array) for array in arrays[:4]}) == len({id(array) for array in arrays[4:]}) == 1
        assert arrays[0] is not arrays[4]


def test_no_thread_passes_a_barrier_before_all_have_come() -> None:
    """And the order between two barriers is not always the same."""
    cuda = launch(1)
    seen: list[tuple[int, int]] = []

    def kernel() -> None:
        for step in range(3):
            seen.append((step, cuda.threadIdx.x))
            cuda.syncthreads()

    cuda.run(kernel, ())
    assert seen == [(step, at) for step in range(3) for at in (range(4) if step % 2 == 0 else range(3, -1, -1))]


def test_all_threads_learn_how_many_say_yes() -> None:
    cuda = launch(1)
    counts: list[int] = []

    def kernel(most: int) -> None:
        for step in range(most):
            counts.append(cuda.syncthreads_count(cuda.threadIdx.x < step))

    cuda.run(kernel, (5,))
    assert counts == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4


def test_the_thread_that_failed_first_tells() -> None:
    """Not those that waited for it in vain."""
    cuda = launch(9)

    def kernel() -> None:
        if cuda.threadIdx.x == 2 and cuda.blockIdx.x == 7:
            raise ValueError(f"block {cuda.blockIdx.x}")
        cuda.syncthreads()

    with pytest.raises(ValueError, match="block 7"):
        cuda.run(kernel, ())


def test_a_barrier_that_some_threads_do_not_reach_is_an_error() -> None:
    cuda = launch(1)

    def kernel() -> None:
        if cuda.threadIdx.x != 2:
            cuda.syncthreads()

    with pytest.raises(AssertionError, match="by all threads of a block, or by none"):
        cuda.run(kernel, ())
