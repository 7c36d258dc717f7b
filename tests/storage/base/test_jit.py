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
from penstock.storage.base import missing_code
from penstock.storage.base.compiler import _IntermediateCode
from penstock.storage.base.jit import CALL, JitFunction, jit, jit_part
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


def test_threads_share_what_is_compiled() -> None:
    function, together = JitFunction(doubled.py_func), Barrier(4)  # type: ignore[attr-defined]

    def compiled(_: int) -> Any:
        together.wait()
        return function.compiled

    with ThreadPoolExecutor(4) as pool:
        assert len(set(map(id, pool.map(compiled, range(4))))) == 1


def test_the_compiler_is_imported_by_the_first_call_for_many_items() -> None:
    code = (
        "import sys, numpy as np; from penstock.storage.format.index import from_degrees\n"
        "for n in (2, 300000): "
        "print(from_degrees(n, lambda: [np.ones(n, np.uint8)]).edges, 'numba' in sys.modules)"
    )
    assert python(code).stdout == "2 False\n300000 True\n"


def test_many_items_are_not_left_to_python_where_the_compiler_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_code, "FEW", 1 << 18)
    monkeypatch.setattr(missing_code, "FEW_BESIDE", 4)
    for values, compiled in ((4, False), (5, True)):
        function = JitFunction(total.py_func, few=missing_code.FEW)  # type: ignore[attr-defined]
        assert function(np.arange(float(values))) == values * (values - 1)
        assert (function._compiled is not None) == compiled


def test_few_items_are_left_to_python_for_some_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_code, "FEW", 4)
    function = JitFunction(total.py_func, few=2 * CALL)  # type: ignore[attr-defined]
    for values, compiled in ((4, False), (5, True)):
        assert function(np.arange(float(values))) == values * (values - 1)
        assert (function._compiled is not None) == compiled
    often = JitFunction(total.py_func, few=2 * CALL)  # type: ignore[attr-defined]
    for compiled in (False, False, True):
        assert often(np.arange(4.0)) == 12.0
        assert (often._compiled is not None) == compiled
    missing_code.when_asked(lambda *_: None)
    try:
        asked = JitFunction(total.py_func, few=2 * CALL)  # type: ignore[attr-defined]
        assert asked(np.arange(4.0)) == 12.0
    finally:
        missing_code.when_asked(None)
    assert asked._compiled is not None


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
