"""Storage's kernels are compiled when first called, once for all threads, and may call each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from numba import types
from numba.core.codegen import CPUCodeLibrary
from penstock.storage.base.compiler import _IntermediateCode
from penstock.storage.base.jit import JitFunction, jit, jit_part
from support.faults import python


@jit
def doubled(value: Any) -> Any:
    """Twice the value."""
    return value * 2


@jit
def total(values: Any) -> Any:
    """The sum of twice the values."""
    found = 0.0
    for value in values:
        found += doubled(value)
    return found


def test_a_kernel_calls_another_before_python_does() -> None:
    assert total(np.arange(4.0)) == 12.0
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Twice the value.")


def test_threads_share_what_is_compiled() -> None:
    function, together = JitFunction(doubled.py_func), Barrier(4)  # type: ignore[attr-defined]

    def compiled(_: int) -> Any:
        together.wait()
        return function.compiled

    with ThreadPoolExecutor(4) as pool:
        assert len(set(map(id, pool.map(compiled, range(4))))) == 1


def test_the_compiler_is_imported_by_the_first_call() -> None:
    code = (
        "import sys, numpy as np; from penstock.storage.format.index import from_degrees; "
        "print('numba' in sys.modules); "
        "print(from_degrees(2, lambda: iter([np.array([1, 2], np.uint8)])).edges, 'numba' in sys.modules)"
    )
    assert python(code).stdout == "False\n3 True\n"


def test_a_small_function_is_optimized_as_a_whole_in_the_kernel_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @jit_part
    def part(value: Any) -> Any:
        return value + 1

    @jit
    def kernel(value: Any) -> Any:
        return part(value)

    names = set()
    for code in (CPUCodeLibrary, _IntermediateCode):

        def optimize(library: Any, optimized: Any = code._optimize_final_module) -> None:
            names.add(library.name.rpartition(".")[2])
            optimized(library)

        monkeypatch.setattr(code, "_optimize_final_module", optimize)
    kernel.compiled.compile((types.int64,))  # type: ignore[attr-defined]
    assert "kernel" in names
    assert "part" not in names
