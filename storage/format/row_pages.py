"""Which pages of a row index are in memory, where it has no room for all: the others are read when rows are wanted.

Offsets of all rows have their place in reserved address space, which takes memory only where it is written, so that
kernels find a row as they do in an index that is whole. A page is a huge one of the system, which costs one fault, and
its memory is given back when others are wanted. The first row of a page begins a block of the index, whose offset is 0,
as is all that is not in memory: so a range of rows that ends with a page needs nothing of the next one.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base import stage_clock
from penstock.storage.base.slot_pool import HUGE_PAGE, ReservedArray
from penstock.storage.base.threads import ThreadPool, ordered_map

OFFSET_BYTES = 4
PAGE_ROWS = HUGE_PAGE // OFFSET_BYTES
ALONE = 1
"""Pages beside those that are read side by side, each of which is wanted for a moment."""


def page_rows(chunk_rows: int) -> int:
    """Rows of a page: of whole chunks of degrees."""
    return chunk_rows * max(1, PAGE_ROWS // chunk_rows)


def held_pages(threads: int) -> int:
    """How many pages are in memory at once, if nothing more is wanted."""
    return threads + ALONE


def places_by_page(pages: NDArray[Any]) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    """The pages that occur, ascending, and where each does."""
    order = np.argsort(pages, kind="stable")
    found, firsts = np.unique(pages[order], return_index=True)
    return found, np.split(order, firsts)[1:]


class RowPages:
    """The pages of the offsets of an index that are in memory; safe to use from several threads.

    vertices, chunk_rows: rows of the index, and of each chunk of degrees but the last. threads: how many read pages
    side by side: a page's chunks, and of a pass over the rows as many pages as they are. load: what writes the offsets
    of a chunk's rows, and of the row behind the last one; packed: what returns the payload of a chunk's degrees, for
    rows that are decoded elsewhere; several threads may call both. bytes_read: from disk, for rows that were wanted.
    Raises MemoryError where so much address space cannot be had.
    """

    def __init__(self, vertices: int, chunk_rows: int, threads: int) -> None:
        self.rows, self._vertices, self.chunk_rows, self.threads = (
            page_rows(chunk_rows),
            vertices,
            chunk_rows,
            threads,
        )
        self._space = ReservedArray(vertices + 1, np.uint32, huge=True)
        self.offsets = self._space.values
        self.load: Callable[[int], None] = lambda _: None
        self.packed: Callable[[int], NDArray[np.uint32]]
        self.bytes_read = 0
        self._held: dict[int, None] = {}
        self._wanted: Counter[int] = Counter()
        self._readers: ThreadPool | None = None
        self._process = 0
        self._behind = 0  # the page behind those that came last
        self._lock = threading.Lock()

    @property
    def together(self) -> int:
        """Rows of the pages that are read side by side."""
        return self.rows * self.threads

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the pages take which are in it."""
        return len(self._held) * self.rows * OFFSET_BYTES

    def forget(self, first: int, rows: int) -> None:
        """Give the memory of so many rows' offsets back, whole chunks but at the end; they are 0 then."""
        self._space.forget(first, first + rows)

    def parts(self, v0: int, v1: int) -> Iterator[tuple[int, int]]:
        """Yield rows v0..v1-1 page by page, in memory until the next is asked for, with the start of the row behind."""
        for first, last in self.ranges(v0, v1, self.rows):
            with self.held(self.of_rows(first, last)):
                yield first, last

    def ranges(self, v0: int, v1: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield rows v0..v1-1 in ranges that end where one of so many rows does, whether they are in memory or not."""
        while v0 < v1:
            end = min((v0 // size + 1) * size, v1)
            yield v0, end
            v0 = end

    def clear(self) -> None:
        """Give the memory of all pages back that are not wanted."""
        with self._lock:
            for page in [page for page in self._held if self._wanted[page] <= 0]:
                del self._held[page]
                self.forget(page * self.rows, self.rows)

    def keep(self) -> None:
        """Read all pages, none of which is forgotten from then on. Raises what reading them raises."""
        with self._lock:
            self._want(self.of_rows(0, self._vertices))

    def of_rows(self, v0: int, v1: int) -> range:
        """The pages of rows v0..v1-1."""
        return range(v0 // self.rows, -(-min(v1, self._vertices) // self.rows))

    def grouped(self, pages: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """Yield of each page that occurs the first and past the last row, and where it does; it is in memory meanwhile.

        Several are read side by side.
        """
        found, places = places_by_page(pages)
        for begin in range(0, len(found), self.threads):
            some = found[begin : begin + self.threads].tolist()
            with self.held(some):
                for page, here in zip(some, places[begin:], strict=False):
                    yield page * self.rows, min((page + 1) * self.rows, self._vertices), here

    @contextmanager
    def held(self, pages: Sequence[int]) -> Iterator[None]:
        """Have these pages in memory within. Raises what reading them raises."""
        with self._lock:
            self._want(pages)
        try:
            yield
        finally:
            with self._lock:
                self._wanted.subtract(pages)

    def _want(self, pages: Sequence[int]) -> None:
        self._wanted.update(pages)
        try:
            self._bring(pages)
        except BaseException:
            self._wanted.subtract(pages)
            raise

    def _bring(self, pages: Sequence[int]) -> None:
        lacking = [page for page in pages if page not in self._held and page * self.rows < self._vertices]
        if lacking and lacking[0] == self._behind:  # a pass over the rows: those behind will be wanted
            room = held_pages(self.threads) - sum(1 for page in self._held if self._wanted[page] > 0)
            end = min(lacking[0] + min(self.threads, room), self.of_rows(0, self._vertices).stop)
            lacking += [page for page in range(lacking[-1] + 1, end) if page not in self._held]
        self._behind = lacking[-1] + 1 if lacking else self._behind
        for page in pages:
            if page in self._held:  # those that were wanted last are forgotten last
                self._held[page] = self._held.pop(page)
        surplus = len(self._held) + len(lacking) - held_pages(self.threads)
        for page in [page for page in self._held if self._wanted[page] <= 0][: max(0, surplus)]:
            del self._held[page]
            self.forget(page * self.rows, self.rows)
        try:
            chunks = [chunk for page in lacking for chunk in self.chunks_of(page * self.rows, (page + 1) * self.rows)]
            self._read(chunks)
        except BaseException:
            for page in lacking:
                self.forget(page * self.rows, self.rows)
            raise
        self._held.update(dict.fromkeys(lacking))

    def _read(self, chunks: Sequence[int]) -> None:
        """Load chunks, by threads that stay where there are several: to start them takes as long as to load a chunk."""
        if min(self.threads, len(chunks)) <= 1:
            for chunk in chunks:
                self.load(chunk)
            return
        if self._readers is None or self._process != os.getpid():  # a process that was forked has none of them
            self._readers, self._process = ThreadPool(self.threads, "penstock-rows"), os.getpid()
        with stage_clock.waiting():
            for _ in ordered_map(self._readers, self.load, chunks, len(chunks)):
                pass

    def chunks_of(self, v0: int, v1: int) -> range:
        """The chunks of degrees of rows v0..v1-1."""
        return range(v0 // self.chunk_rows, -(-min(v1, self._vertices) // self.chunk_rows))
