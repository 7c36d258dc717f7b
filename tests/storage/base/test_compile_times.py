"""Waiting for compiled code is counted: what was compiled and what was loaded, and each second once."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numba
import pytest
from penstock.storage.base import stage_clock as module
from penstock.storage.base.kernel_cache import kept
from penstock.storage.base.stage_clock import BusyTimer, compile_times, compiling, loading
from support.clocks import MovedClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    clock = MovedClock()
    for name in ("_compiling", "_loading"):
        monkeypatch.setattr(module, name, BusyTimer(clock))
    return clock


def test_what_is_compiled_within_and_loaded_within_counts_once(clock: MovedClock) -> None:
    before = compile_times()
    with compiling():
        clock.now += 1
        with compiling(), loading():
            clock.now += 2
        assert compile_times().compiling - before.compiling == 3  # while it lasts
    with loading():
        clock.now += 4
    after = compile_times()
    assert (after.compiling - before.compiling, after.loading - before.loading) == (3, 4)
    assert after.compiled - before.compiled == 1


def test_threads_that_wait_at_once_count_once(clock: MovedClock) -> None:
    before, inside = compile_times().loading, threading.Barrier(3)

    def wait() -> None:
        with loading():
            inside.wait()
            inside.wait()

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait()
    clock.now += 5
    inside.wait()
    for thread in threads:
        thread.join()
    assert compile_times().loading - before == 5


def test_kernels_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @numba.njit
    def inner(x):  # type: ignore[no-untyped-def]
        return x + 1

    def outer(x):  # type: ignore[no-untyped-def]
        return inner(x) * 2

    counts = []
    for _ in range(2):
        before = compile_times()
        assert kept(numba.njit(outer), lambda: "key")(3) == 8
        after = compile_times()
        assert after.compiling + after.loading > before.compiling + before.loading
        counts.append((after.compiled - before.compiled, after.loaded - before.loaded))
    assert counts == [(1, 0), (0, 1)]


def test_what_cannot_be_compiled_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with pytest.raises(numba.core.errors.TypingError):
        kept(numba.njit(lambda x: x.nothing), lambda: "key")(3)
    before = compile_times()
    with compiling():
        pass
    assert compile_times().compiled == before.compiled + 1  # nothing of before is still going on


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_afterwards_as_before(
    collects: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    try:
        (gc.enable if collects else gc.disable)()
        kept(numba.njit(lambda x: x + 1), lambda: "key")(3)
        with pytest.raises(numba.core.errors.TypingError):
            kept(numba.njit(lambda x: x.nothing), lambda: "other")(3)
        assert gc.isenabled() is collects
    finally:
        gc.enable()
