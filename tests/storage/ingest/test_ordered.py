"""The ordered map: order, bound, errors, and nothing left running."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from penstock.storage.ingest.ordered import ordered_map


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
