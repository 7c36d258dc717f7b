"""Threads: refusals that name the limits in the way, and parallel maps whose results come in order.

Python says "can't start new thread" for a limit on memory (each thread's stack), on processes, or of a container alike.
Of a map only so many results, or so much, are under way.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Generic, ParamSpec, TypeVar

from penstock.storage.base import stage_clock
from penstock.storage.base.budget import check_thread_room, cores
from penstock.storage.base.errors import InputError, RunError

Lock = threading.Lock
"""What one thread at a time holds."""
P = ParamSpec("P")
T = TypeVar("T")
FIRST_BYTES = 4 << 20
"""What a thread allocates before it runs anything. One that cannot leaves Python waiting for it for ever."""
WAY_OUT = "raise the limit on memory (ulimit -v), on processes (ulimit -u) or of the container, or lower --threads"


def check_stacks(count: int, name: str) -> None:
    """Raise RunError unless there is memory for the stacks of so many threads, and for what each allocates first."""
    try:
        check_thread_room(count, FIRST_BYTES)
    except MemoryError as error:
        raise _refusal(name) from error


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises RunError where the system allows no further one."""
    try:
        check_thread_room(1, FIRST_BYTES)
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise _refusal(thread.name) from error


def _refusal(name: str) -> RunError:
    return RunError(f"a thread ({name}) cannot be started; {WAY_OUT}")


class ThreadPool(ThreadPoolExecutor):
    """A ThreadPoolExecutor whose ``submit`` raises RunError where the system allows no further thread."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self._name, self._to_start = name, threads

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call, as ThreadPoolExecutor does."""
        try:
            if self._to_start:
                check_thread_room(1, FIRST_BYTES)
                self._to_start -= 1
            return super().submit(fn, *args, **kwargs)
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, RuntimeError) and not refused(error):
                raise
            raise _refusal(self._name) from error


def refused(error: BaseException) -> bool:
    """Whether this is what Python raises where the system allows no further thread."""
    return isinstance(error, RuntimeError) and "start new thread" in str(error)


def check_startable(count: int, name: str) -> None:
    """Raise RunError unless so many threads can run beside those that run now: starts them, and ends them."""
    leave = threading.Event()
    begun: list[threading.Thread] = []
    try:
        check_stacks(count, name)
        for _ in range(count):
            thread = threading.Thread(target=leave.wait, name=name, daemon=True)
            start(thread)
            begun.append(thread)
    finally:
        leave.set()
        for thread in begun:
            thread.join()


class ExclusiveUse:
    """Lets one thread at a time use an object, until it is closed, in the process that made it.

    name: the object, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._closed = False

    def check(self) -> None:
        """Raise InputError where the object cannot be used any more, or not here."""
        if os.getpid() != self._process:
            raise InputError(
                f"this {self._name} is of process {self._process}, from which this one was forked without its threads; "
                f"open a {self._name} here"
            )
        if self._closed:
            raise InputError(f"this {self._name} is closed; open another one")

    @contextmanager
    def acquired(self) -> Iterator[None]:
        """Wait for exclusive use and have it for a block. Raises InputError as `check`, and in a thread that has it."""
        self.check()
        if self._owner == threading.get_ident():
            raise InputError(
                f"this {self._name} is in the middle of a run: end it, or close its steps(), before another one begins"
            )
        with self._lock:
            self.check()
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Wait for the other threads, and let none follow. A run of this thread is cut off."""
        if os.getpid() != self._process or self._owner == threading.get_ident():
            self._closed = True
            yield
            return
        with self._lock:
            self._closed = True
            yield


class PerThread(Generic[T]):
    """What each thread has for itself, made by `make` at its first call."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._mine = make, threading.local()

    def __call__(self) -> T:
        """The calling thread's."""
        if not hasattr(self._mine, "made"):
            self._mine.made = self._make()
        made: T = self._mine.made
        return made


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
