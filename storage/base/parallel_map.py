"""Owns the ordered parallel maps: results come in input order, and only so many, or so much, are under way."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, wait
from typing import TypeVar

from penstock.storage.base.threads import ThreadPool
from penstock.storage.clocks import stage_clock

Item = TypeVar("Item")
Result = TypeVar("Result")


def ordered_map(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], in_flight: int
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` in the order of ``items``, at most ``in_flight`` ahead.

    ``items`` is drawn in the caller's thread, only as results are asked for. An exception in
    ``function`` or ``items``, or closing the generator, drops what has not started and waits for
    what has.
    """
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= in_flight:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)


def map_ranges(function: Callable[[int, int], Result], count: int, step: int, threads: int) -> list[Result]:
    """Return ``function(first, last)`` of each range of ``step`` numbers below ``count``, in order.

    One range, or one thread, is the caller's own; a pool lives as long as the call. Raises RunError where a thread
    cannot be started.
    """
    ranges = [(first, min(first + step, count)) for first in range(0, count, step)]
    threads = min(threads, len(ranges))
    if threads <= 1:
        return [function(*each) for each in ranges]
    with ThreadPool(threads, "penstock-ranges") as pool, stage_clock.waiting():
        return list(ordered_map(pool, lambda each: function(*each), ranges, len(ranges)))


def weighed_map(
    pool: Executor,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    weight: Callable[[Item], int],
    limit: int,
) -> Generator[Result, None, None]:
    """As `ordered_map`, but bounded by weight: items under way, and the one yielded last, weigh ``limit`` at most.

    An item that weighs more goes alone. So a heavy item waits for room and light ones go on beside it.
    """
    waiting: deque[tuple[Future[Result], int]] = deque()
    held = 0
    try:
        for item in items:
            heavy = weight(item)
            while waiting and held + heavy > limit:
                yield waiting[0][0].result()
                held -= waiting.popleft()[1]
            waiting.append((pool.submit(function, item), heavy))
            held += heavy
        while waiting:
            yield waiting[0][0].result()
            waiting.popleft()
    finally:
        for future, _ in waiting:
            future.cancel()
        wait([future for future, _ in waiting])
