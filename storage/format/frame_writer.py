"""Writes frames to their files while the next ones are encoded, and flushes them early.

One thread writes, in the order given; another flushes what was written now and then, so that little is left to wait for
when a file is finished. adjacency_writer.py says which frame goes where.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from penstock.storage.base.atomic import flush
from penstock.storage.base.threads import ThreadPool

FLUSH_BYTES = 128 << 20
T = TypeVar("T")


class FrameWriter:
    """Writes in one thread what others queue. Call `finish` when all is queued, and always `close`."""

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self._placing: deque[Future[None]] = deque()
        self._flushing: Future[None] | None = None
        self._unflushed: dict[Path, int] = {}
        self._writer = ThreadPool(1, "place")
        self._flusher = ThreadPool(1, "flush")

    def put(self, path: Path, size: int, place: Callable[[], None]) -> None:
        """Queue ``place``, which writes ``size`` bytes to the file ``path``; wait while too many wait.

        Raises:
            Exception: what an earlier ``place`` raised.
            OSError: flushing failed.
        """
        self._placing.append(self._writer.submit(place))
        while len(self._placing) > self._ahead:
            self._placing.popleft().result()
        self._unflushed[path] = self._unflushed.get(path, 0) + size
        if self._unflushed[path] >= FLUSH_BYTES and (self._flushing is None or self._flushing.done()):
            self._wait_for_flush()
            self._flushing = self._flusher.submit(flush, path)
            self._unflushed[path] = 0

    def call(self, work: Callable[[], T]) -> T:
        """Run `work` in the thread that writes, after all that waits there; return what it returns."""
        return self._writer.submit(work).result()

    def finish(self) -> None:
        """Wait until all is written. Raises as `put`."""
        while self._placing:
            self._placing.popleft().result()
        self._wait_for_flush()

    def drop(self) -> None:
        """Drop what is still queued."""
        while self._placing:
            self._placing.popleft().cancel()

    def close(self) -> None:
        """End the threads; what has not begun is dropped."""
        self._writer.shutdown(cancel_futures=True)
        self._flusher.shutdown(cancel_futures=True)

    def _wait_for_flush(self) -> None:
        if self._flushing is not None:
            self._flushing.result()
            self._flushing = None
