"""Owns the ordered parallel maps: results come in input order, and only so many, or so much, are under way."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, wait
from typing import TypeVar

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
