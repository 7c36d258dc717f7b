"""Passes over the rows of a result: ranges of rows on threads, so that copies stay as small as a range."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from penstock.storage.base.budget import cores
from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.base.threads import ThreadPool

Found = TypeVar("Found")
ROWS = 1 << 17
"""Rows of a range: a column's values fit into a core's cache, and NumPy's calls take longer than Python's."""


def ranges(rows: int, size: int = ROWS) -> list[tuple[int, int]]:
    """The ranges [first, last) of so many rows, in order."""
    return [(first, min(first + size, rows)) for first in range(0, rows, size)]


def map_ranges(
    function: Callable[[int, int], Found], rows: int, *, threads: int | None = None, size: int = ROWS
) -> Generator[Found, None, None]:
    """Yield ``function(first, last)`` of every range in order; threads (default: every core) work on the next ones."""
    parts = ranges(rows, size)
    workers = min(threads or cores(), len(parts))
    if workers <= 1:
        yield from (function(first, last) for first, last in parts)
        return
    with ThreadPool(workers, "results") as pool:
        yield from ordered_map(pool, lambda part: function(*part), parts, workers + 1)
