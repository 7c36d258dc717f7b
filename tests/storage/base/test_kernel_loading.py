"""Kernels from the cache are loaded without the compiler; they compute and raise as those just compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.faults import python

TRIAL = """
import sys, numba, numpy as np
from penstock.storage.base.kernel_cache import kept

@kept
@numba.njit
def add(values):
    if len(values) == 0:
        raise ValueError("nothing to add")
    return np.sort(values).sum() + np.zeros(3)

def tried(values):
    try:
        return add(values).tolist()
    except ValueError as error:
        return str(error)
"""


def test_what_is_loaded_needs_none_of_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Numba's registries, with scipy's BLAS behind them, nor the modules of what the kernel was made of."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "trial.py").write_text(TRIAL)
    begin = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from trial import *; "
    assert python(begin + "print(tried(np.ones(4)))").stdout == "[4.0, 4.0, 4.0]\n"
    code = (
        begin + "print(tried(np.ones(4)), tried(np.ones(0)), *add.stats.cache_hits.values()); "
        "print([name for name in ('numba.np.arraymath', 'scipy.linalg') if name in sys.modules]); "
        "print(tried(np.ones(4, np.int32)), *add.stats.cache_misses.values())"  # compiled after another was loaded
    )
    again = python(code)
    assert again.stdout.splitlines() == ["[4.0, 4.0, 4.0] nothing to add 1", "[]", "[4.0, 4.0, 4.0] 1"], again.stderr


CALLER = """
import numba
from trial import add, np

@numba.njit
def twice(values):
    return 2 * add(values)

print(add(np.ones(4)).tolist(), twice(np.ones(4)).tolist(), twice(np.ones(2)).tolist())
try:
    twice(np.ones(0))
except ValueError as error:
    print(error, *add.stats.cache_hits.values())
"""


def test_what_is_loaded_can_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its intermediate code is read when a function that calls it is compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "trial.py").write_text(TRIAL)
    begin = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    assert python(begin + "from trial import *\nprint(tried(np.ones(4)))").stdout == "[4.0, 4.0, 4.0]\n"
    again = python(begin + CALLER)
    assert again.stdout.splitlines() == ["[4.0, 4.0, 4.0] [8.0, 8.0, 8.0] [4.0, 4.0, 4.0]", "nothing to add 1"], (
        again.stderr
    )
