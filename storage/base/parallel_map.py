"""Owns the ordered parallel maps: results come in input order, and only so many, or so much, are under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, wait
from typing import TypeVar

from penstock.storage.base.budget import cores
from penstock.storage.base.threads import ThreadPool
from penstock.storage.clocks import stage_clock

Item = TypeVar("Item")
Result = TypeVar("Result")
ROWS = 1 << 17
"""Rows of a range: a column's values fit into a core's cache, and NumPy's calls take longer than Python's."""


def ranges(rows: int, size: int = ROWS) -> list[tuple[int, int]]:
    """The ranges [first, last) of so many rows, in order."""
    return [(first, min(first + size, rows)) for first in range(0, rows, size)]


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
        wait([future for future in waiting if not future.cancel()])  # a pool that has ended tells of no cancelled one


def map_ranges(function: Callable[[int, int], Result], count: int, step: int, threads: int) -> list[Result]:
    """Return ``function(first, last)`` of each range of ``step`` numbers below ``count``, in order.

    One range, or one thread, is the caller's own; a pool lives as long as the call. Raises RunError where a thread
    cannot be started.
    """
    parts = ranges(count, step)
    threads = min(threads, len(parts))
    if threads <= 1:
        return [function(*each) for each in parts]
    with ThreadPool(threads, "penstock-ranges") as pool, stage_clock.waiting():
        return list(ordered_map(pool, lambda each: function(*each), parts, len(parts)))


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
        wait([future for future, _ in waiting if not future.cancel()])


def pooled_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None, name: str
) -> Generator[Result, None, None]:
    """As `ordered_map`, by threads of its own (default: as many as cores), which are at work on the next items."""
    workers = threads or cores()
    with ThreadPool(workers, name) as pool:
        yield from ordered_map(pool, function, items, workers + 1)


def map_rows(
    function: Callable[[int, int], Result], rows: int, *, threads: int | None = None, size: int = ROWS
) -> Generator[Result, None, None]:
    """Yield ``function(first, last)`` of every range in order; threads (default: every core) work on the next ones."""
    parts = ranges(rows, size)
    workers = min(threads or cores(), len(parts))
    if workers <= 1:
        yield from (function(first, last) for first, last in parts)
        return
    yield from pooled_map(lambda part: function(*part), parts, workers, "results")
