"""Workers of a session compile a kernel once: the second one waits, and finds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.jit import jit
from penstock.storage.base.kernel_cache import _KernelCache
from penstock.storage.base.stage_clock import compile_times
from support.shared_kernels import compiled_once

WORKER = """
import sys
from pathlib import Path
from support.shared_kernels import compiled_once
from test_shared_kernels import doubled
with compiled_once(Path(sys.argv[1])):
    print(*doubled())
"""


@jit
def double(values):  # type: ignore[no-untyped-def]
    """A kernel of this test."""
    for i in range(len(values)):
        values[i] *= 2


def doubled() -> tuple[int, int]:
    """What has been compiled, and what was loaded, until an array has been doubled."""
    before, values = compile_times(), np.arange(3)
    double(values)
    assert values.tolist() == [0, 2, 4]
    after = compile_times()
    return after.compiled - before.compiled, after.loaded - before.loaded


def test_of_several_processes_one_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-c", WORKER, str(tmp_path / "lock")]
    tests = Path(__file__).parent
    workers = [subprocess.Popen(command, cwd=tests, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    found = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert sorted(found) == [["0", "1"], ["0", "1"], ["1", "0"]]


def test_nothing_stays_in_its_place(tmp_path: Path) -> None:
    load = _KernelCache.load_overload
    with compiled_once(tmp_path / "lock"):
        assert _KernelCache.load_overload is not load
    assert _KernelCache.load_overload is load
