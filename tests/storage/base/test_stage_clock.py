"""The clock of stages: each moment of the walk counts once, so that they add up; other threads are told beside."""

from __future__ import annotations

import threading

import pytest
from penstock.storage.base.stage_clock import (
    BusyTimer,
    StageClock,
    compiling,
    installed,
    loading,
    stage,
    waiting,
)
from support.clocks import MovedClock


def test_stages_add_up_to_the_wall_time() -> None:
    time = MovedClock(100.0)
    clock = StageClock(90.0, "imports", now=time)
    with installed(clock):
        time.go(1)
        clock.turn_to("other")
        time.go(2)
        with stage("state"):
            time.go(4)
            with stage("index"):
                time.go(8)
            time.go(16)
        time.go(32)
    times = clock.times()
    assert times.seconds == {"imports": 11.0, "other": 34.0, "state": 20.0, "index": 8.0}
    assert times.wall == sum(times.seconds.values()) == 73.0


def test_bytes_are_what_the_block_adds_or_what_is_asked_for() -> None:
    clock, counter = StageClock(now=MovedClock()), [7]
    with installed(clock):
        for _ in range(2):
            with stage("index") as meter:
                meter.bytes += 5
        with stage("writing", poll=lambda: counter[0]):
            counter[0] = 9
        with stage("iterations", poll=lambda: 100) as meter:
            meter.bytes += 3
            assert clock.present()[2].seen == 100
    assert clock.times().bytes == {"index": 10, "writing": 9, "iterations": 3}


def test_compiling_interrupts_the_stage_that_needs_it() -> None:
    time = MovedClock(100.0)
    clock = StageClock(now=time)
    with installed(clock), stage("iterations"):
        time.go(1)
        with compiling():
            time.go(2)
            with compiling(), loading():
                time.go(4)
        with loading():
            time.go(8)
        time.go(16)
    times = clock.times()
    assert (times.seconds["iterations"], times.seconds["compiling"], times.seconds["kernels"]) == (17, 6, 8)
    assert times.compiled_within == {"iterations": 14.0}


def test_a_stage_ends_with_its_block_whatever_happens() -> None:
    time = MovedClock(100.0)
    clock = StageClock(now=time)

    def fail() -> None:
        with stage("loading"):
            time.go(1)
            raise RuntimeError

    with installed(clock):
        with pytest.raises(RuntimeError):
            fail()
        time.go(2)
    assert clock.times().seconds == {"other": 2.0, "loading": 1.0}


def test_a_stage_ends_those_that_began_within_it() -> None:
    """A generator that is dropped in a stage of its own ends later than the stage around it."""
    time = MovedClock(100.0)
    clock = StageClock(now=time)
    with installed(clock):
        with stage("iterations"):
            inner = stage("loading")
            inner.__enter__()
            time.go(1)
        time.go(2)
        inner.__exit__(None, None, None)
        time.go(4)
    assert clock.times().seconds == {"other": 6.0, "iterations": 0.0, "loading": 1.0}


def test_other_threads_are_told_beside() -> None:
    time = MovedClock(100.0)
    clock = StageClock(now=time)
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        with stage("loading") as meter:
            meter.bytes += 3
            begun.set()
            ended.wait()

    with installed(clock):
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        with stage("index"):
            time.go(5)
        assert clock.times().beside == {"loading": 5.0}
        ended.set()
        thread.join()
        time.go(1)
    times = clock.times()
    assert (times.beside, times.bytes) == ({"loading": 5.0}, {"loading": 3})
    assert times.wall == sum(times.seconds.values()) == 6.0


def test_a_job_that_waits_for_a_thread_that_compiles_is_compiling() -> None:
    time = MovedClock(100.0)
    clock = StageClock(now=time)
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        with compiling():
            begun.set()
            ended.wait()

    with installed(clock), stage("iterations"):
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        time.go(1)
        with waiting():
            time.go(2)
            ended.set()
            thread.join()
            time.go(4)
        time.go(8)
    times = clock.times()
    assert times.seconds == {"other": 0.0, "iterations": 13.0, "compiling": 2.0}
    assert times.beside == {"compiling": 3.0}
    assert times.compiled_within == {"iterations": 2.0}


class Hands:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_what_overlaps_counts_once() -> None:
    hands = Hands()
    busy = BusyTimer(hands)
    hands.time = 1.0
    with busy:
        hands.time = 2.0
        with busy:
            hands.time = 4.0
            assert busy.seconds == 3.0
        hands.time = 5.0
    hands.time = 9.0
    assert busy.seconds == 4.0
    with busy:
        hands.time = 10.0
    assert busy.seconds == 5.0


def test_an_error_inside_ends_it() -> None:
    hands = Hands()
    busy = BusyTimer(hands)

    def fail() -> None:
        with busy:
            hands.time = 1.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    hands.time = 7.0
    assert busy.seconds == 1.0
