"""The table of combiners: identity, ufunc, scalar functions and atomics of a row agree."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.kernels.cuda import device_functions, driver
from penstock.engine.kernels.host import atomics
from penstock.engine.kernels.host.jit import JitKernel
from penstock.engine.program.combiners import COMBINERS, identity_of

VALUES = {"f": [-2.5, -1.0, 0.0, 0.0, 3.0, 7.25], "i": [-4, -1, 0, 0, 3, 6], "u": [0, 1, 1, 6, 9, 12]}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint32, np.uint64])
@pytest.mark.parametrize("name", COMBINERS)
def test_a_row_agrees_with_itself(name: str, dtype: type) -> None:
    row, kind = COMBINERS[name], np.dtype(dtype)
    if kind.kind == "f" and name == "or":
        pytest.skip("floats have no bits to combine")
    values = np.array(VALUES[kind.kind], dtype=dtype)
    assert row.ufunc.reduce(values, initial=identity_of(name, kind)) == row.ufunc.reduce(values)
    for a in values:
        assert row.merge(identity_of(name, kind), a) == a
        for b in values:
            merged = row.merge(a, b)
            assert merged == row.ufunc(a, b) == eval(row.text.format("a", "b"), {"a": a, "b": b})
            assert row.changes(a, b) == (name == "sum" or merged != a)


@pytest.mark.parametrize("combine", [atomics.COMBINE, atomics.COMBINE_ALONE], ids=["atomic", "alone"])
@pytest.mark.parametrize("name", COMBINERS)
def test_the_host_combines_as_the_table_says(name: str, combine: dict[str, object]) -> None:
    function = combine[name]

    def run(target, values, changed):  # type: ignore[no-untyped-def]
        for at in range(len(values)):
            changed[at] = function(target, np.uint64(0), values[at])

    values = np.array([5, 3, 9, 9, 12, 1], dtype=np.uint32)
    target, changed = np.array([6], dtype=np.uint32), np.zeros(len(values), dtype=np.bool_)
    JitKernel(run, f"{name} {combine is atomics.COMBINE}")(target, values, changed)
    check(name, target, values, changed)


@pytest.mark.skipif(not driver.SIMULATED, reason="runs under the simulator; tests/gpu has the device")
@pytest.mark.parametrize("name", COMBINERS)
def test_a_gpu_combines_as_the_table_says(name: str) -> None:
    function = device_functions.COMBINE[name]

    @driver.kernel
    def run(target, values, changed):  # type: ignore[no-untyped-def]
        if device_functions.global_thread() == 0:
            for at in range(len(values)):
                changed[at] = function(target, 0, values[at])

    values = np.array([5, 3, 9, 9, 12, 1], dtype=np.uint32)
    target, changed = np.array([6], dtype=np.uint32), np.zeros(len(values), dtype=np.bool_)
    run(1, target, values, changed)
    check(name, target, values, changed)


def check(name: str, target: np.ndarray, values: np.ndarray, changed: np.ndarray) -> None:
    row, expected = COMBINERS[name], np.uint32(6)
    for value, seen in zip(values, changed, strict=True):
        assert seen == row.changes(expected, value)
        expected = row.merge(expected, value)
    assert target[0] == expected
