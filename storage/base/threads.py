"""Starts threads: where the system refuses one, a single error names the limits in the way.

Python says "can't start new thread" for a limit on memory (each thread's stack), on processes, or of a container alike.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from penstock.storage.base.budget import check_room, stack_bytes
from penstock.storage.base.errors import RunError

P = ParamSpec("P")
T = TypeVar("T")
FIRST_BYTES = 4 << 20
"""What a thread allocates before it runs anything. One that cannot leaves Python waiting for it for ever."""
WAY_OUT = "raise the limit on memory (ulimit -v), on processes (ulimit -u) or of the container, or lower --threads"


def check_stacks(count: int, name: str) -> None:
    """Raise RunError unless there is memory for the stacks of so many threads, and for what each allocates first."""
    try:
        _check_room(count)
    except MemoryError as error:
        raise _refusal(name) from error


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises RunError where the system allows no further one."""
    try:
        _check_room()
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise _refusal(thread.name) from error


def _check_room(count: int = 1) -> None:
    check_room(count * (stack_bytes() + FIRST_BYTES), "threads")


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
                _check_room()
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
