"""Threads share a loop's steps: each step runs once, in parts of the size that is asked for, and errors come back."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest
from penstock.engine.kernels.host.jit import SHARES, LoopKernel, compile_author, loop_kernel, use_workers
from penstock.storage.base.thread_atomics import atomic_add
from support.covering import covering

THREADS = int(numba.config.NUMBA_NUM_THREADS)
ZERO = np.uint64(0)


@compile_author
def checked(step):  # type: ignore[no-untyped-def]
    if step == 5:
        raise ValueError("the fifth")
    return step


def make_count(grain: int | None) -> LoopKernel:
    @loop_kernel(f"trial {grain}", grain=grain)
    def count(first_step, end_step, arrays, add):  # type: ignore[no-untyped-def]
        times, parts = arrays
        atomic_add(parts, ZERO, np.int64(1))
        for step in range(first_step, end_step):
            times[step] += add

    return count


def test_more_threads_than_numba_may_have_are_as_many_as_it_may() -> None:
    use_workers(THREADS + 1)
    assert numba.get_num_threads() == THREADS


@covering("steps, threads, grain", [0, 1, 2, 3, 1000], [1, THREADS], [None, 1, 7])
def test_every_step_runs_once(grain: int | None, threads: int, steps: int) -> None:
    times, parts = np.zeros(steps, np.int32), np.zeros(1, np.int64)
    make_count(grain)(threads, steps, (times, parts), np.int32(2))
    assert (times == 2).all()
    assert parts[0] == -(-steps // grain) if grain else parts[0] <= threads * SHARES


def test_one_version_serves_any_number_of_threads_and_no_arguments() -> None:
    @loop_kernel("trial")
    def nothing(first_step, end_step):  # type: ignore[no-untyped-def]
        pass

    for threads in (1, THREADS):
        nothing(threads, 3)
    assert len(nothing._compiled.overloads) == 1


@pytest.mark.parametrize("threads", [1, THREADS])
def test_an_error_in_a_part_is_raised_when_all_have_ended(threads: int) -> None:
    @loop_kernel("trial", grain=1)
    def check(first_step, end_step, seen):  # type: ignore[no-untyped-def]
        for step in range(first_step, end_step):
            seen[step] = 1 + checked(step)

    seen = np.zeros(10, np.int64)
    with pytest.raises(ValueError, match="the fifth"):
        check(threads, len(seen), seen)
    assert seen.tolist() == [1, 2, 3, 4, 5, 0, 7, 8, 9, 10]


def test_what_is_inlined_has_no_machine_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @loop_kernel("trial")
    def call(first_step, end_step, out):  # type: ignore[no-untyped-def]
        out[0] = checked(out[0])

    out = np.full(1, 3)
    call(1, 1, out)
    compiled = checked.overloads[numba.int64,]  # type: ignore[attr-defined]
    assert out[0] == 3
    assert not compiled.library.codegen._engine.is_symbol_defined(compiled.fndesc.llvm_func_name)
