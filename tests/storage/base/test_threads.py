"""The ordered maps: order, bound, errors, and nothing left running."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.threads import map_ranges, ordered_map, weighed_map


def test_results_come_in_order_and_bounded() -> None:
    running = []
    most = [0]

    def work(item: int) -> int:
        running.append(item)
        most[0] = max(most[0], len(running))
        time.sleep(0.002 * (item % 3))
        running.remove(item)
        return item * item

    drawn = []
    with ThreadPoolExecutor(8) as pool:
        for number, result in enumerate(ordered_map(pool, work, (drawn.append(i) or i for i in range(50)), 4)):  # type: ignore[func-returns-value]
            assert result == number * number
            assert len(drawn) <= number + 5
    assert most[0] <= 4


def test_an_error_comes_in_its_place() -> None:
    def work(item: int) -> int:
        if item == 5:
            raise ValueError("five")
        return item

    seen = []
    with ThreadPoolExecutor(4) as pool, pytest.raises(ValueError, match="five"):
        seen.extend(ordered_map(pool, work, range(20), 6))
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("threads", [1, 3])
def test_ranges_are_mapped_in_order(threads: int) -> None:
    assert map_ranges(lambda first, last: (first, last), 10, 4, threads) == [(0, 4), (4, 8), (8, 10)]
    assert map_ranges(lambda first, last: (first, last), 0, 4, threads) == []


def test_one_range_stays_on_the_caller_s_thread() -> None:
    caller = threading.get_ident()
    assert map_ranges(lambda *_: threading.get_ident(), 4, 4, 8) == [caller]
    assert caller not in map_ranges(lambda *_: threading.get_ident(), 5, 4, 8)


def test_closing_waits_for_what_runs() -> None:
    started, finished = threading.Event(), threading.Event()

    def work(item: int) -> int:
        if item == 1:
            started.set()
            time.sleep(0.05)
            finished.set()
        return item

    with ThreadPoolExecutor(2) as pool:
        results = ordered_map(pool, work, range(100), 3)
        assert next(results) == 0
        started.wait()
        results.close()
        assert finished.is_set()


@settings(deadline=None)
@given(weights=st.lists(st.integers(0, 12), max_size=40), limit=st.integers(1, 10))
def test_weighed_results_come_in_order_and_within_the_limit(weights: list[int], limit: int) -> None:
    lock = threading.Lock()
    running: list[int] = []
    crowded = []

    def work(item: tuple[int, int]) -> int:
        with lock:
            running.append(item[1])
            if len(running) > 1 and sum(running) > limit:
                crowded.append(list(running))
        with lock:
            running.remove(item[1])
        return item[0]

    with ThreadPoolExecutor(4) as pool:
        found = list(weighed_map(pool, work, enumerate(weights), lambda item: item[1], limit))
    assert found == list(range(len(weights)))
    assert not crowded


def test_light_items_start_beside_a_heavy_one() -> None:
    begun = [threading.Event() for _ in range(4)]
    go = threading.Event()

    def work(item: int) -> int:
        begun[item].set()
        if item == 0:
            assert go.wait(10)
        return item

    with ThreadPoolExecutor(4) as pool:
        results = weighed_map(pool, work, range(4), lambda item: 7 if item == 0 else 1, 10)
        opener = threading.Thread(target=lambda: [begun[item].wait(10) for item in range(4)] and go.set())
        opener.start()
        assert next(results) == 0
        opener.join()
        assert list(results) == [1, 2, 3]


def test_an_error_among_weighed_items_ends_the_rest() -> None:
    ran = []

    def work(item: int) -> int:
        ran.append(item)
        if item == 2:
            raise ValueError("two")
        return item

    seen = []
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="two"):
        seen.extend(weighed_map(pool, work, range(100), lambda _: 1, 2))
    assert seen == [0, 1]
    assert len(ran) <= 5


@pytest.mark.parametrize("weighed", [False, True])
def test_a_map_whose_pool_has_ended_closes(weighed: bool) -> None:
    """Such a pool never says that a future is cancelled."""
    pool = ThreadPoolExecutor(1)
    begun, release = threading.Event(), threading.Event()
    slow: list[Callable[[], Any]] = [lambda: 1, lambda: begun.set() or release.wait(), *[lambda: 2] * 3]
    results = (
        weighed_map(pool, lambda one: one(), slow, lambda _: 1, 5)
        if weighed
        else ordered_map(pool, lambda one: one(), slow, 5)
    )
    assert next(results) == 1
    assert begun.wait(10)
    pool.shutdown(wait=False, cancel_futures=True)
    release.set()
    closing = threading.Thread(target=results.close, daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
