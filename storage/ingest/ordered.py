"""Owns the ordered parallel map: results come in input order, and only so many are under way."""

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
