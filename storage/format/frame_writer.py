"""Encodes appended arrays in threads, and writes the frames to their files while the next ones are encoded.

Chunks of a fixed size are cut from pieces of any size. Memory is bounded: at most ``ahead`` raw chunks wait for a
thread, then ``append`` waits. One thread writes, in the order given; another flushes what was written now and then, so
that little is left to wait for when a file is finished. adjacency_writer.py says which frame goes where.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import flush
from penstock.storage.base.threads import ThreadPool
from penstock.storage.encoding.codec import Coding, Encoder, checksum

_encoders = threading.local()


class EncodedFrame(NamedTuple):
    """One chunk ready for the file: its bytes, their checksum, how many items and words of payload it holds."""

    data: bytes
    checksum: int
    items: int
    words: int


def _encode(pieces: list[NDArray[Any]], coding: Coding) -> EncodedFrame:
    """Encode the items of one chunk in a worker, with that thread's own encoder."""
    known = _encoders.__dict__.setdefault("known", {})
    if coding not in known:
        known[coding] = Encoder(coding)
    items = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    pieces.clear()
    encoder = known[coding]
    data = encoder.encode(items)
    return EncodedFrame(data, checksum(data), len(items), encoder.words)


class ChunkEncoder:
    """Cuts what is appended into chunks and encodes them; ``ready`` has the frames to be taken, in order."""

    def __init__(self, coding: Coding, pool: Executor, ahead: int) -> None:
        self.coding = coding
        self.items = 0
        self._pool, self._ahead = pool, ahead
        self._filling: list[NDArray[Any]] = []
        self._filled = 0
        self._working: deque[Future[EncodedFrame]] = deque()
        self.ready: deque[EncodedFrame] = deque()

    def append(self, items: NDArray[Any]) -> None:
        """Take items, at most a chunk at a time if memory is to stay bounded. The array is kept, not copied."""
        items = items.astype(self.coding.kind, copy=False)
        self.items += len(items)
        at = 0
        while at < len(items):
            step = min(len(items) - at, self.coding.chunk_items - self._filled)
            self._filling.append(items[at : at + step])
            self._filled += step
            at += step
            if self._filled == self.coding.chunk_items:
                self._cut()

    def finish(self) -> None:
        """Cut what is left and wait for every chunk."""
        if self._filled:
            self._cut()
        self._collect(0)

    def _cut(self) -> None:
        self._working.append(self._pool.submit(_encode, self._filling, self.coding))
        self._filling, self._filled = [], 0
        self._collect(self._ahead)

    def _collect(self, most: int) -> None:
        """Move finished frames over, and wait until at most ``most`` are being encoded."""
        while self._working and (len(self._working) > most or self._working[0].done()):
            self.ready.append(self._working.popleft().result())


FLUSH_BYTES = 128 << 20
T = TypeVar("T")


class FrameWriter:
    """Writes in one thread what others queue. Call `finish` when all is queued, and always `close`."""

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self._writing: deque[Future[None]] = deque()
        self._flushing: Future[None] | None = None
        self._unflushed: dict[Path, int] = {}
        self._writer = ThreadPool(1, "write")
        self._flusher = ThreadPool(1, "flush")

    def put(self, path: Path, size: int, write: Callable[[], None]) -> None:
        """Queue ``write``, which writes ``size`` bytes to the file ``path``; wait while too many wait.

        Raises:
            Exception: what an earlier ``write`` raised.
            OSError: flushing failed.
        """
        self._writing.append(self._writer.submit(write))
        while len(self._writing) > self._ahead:
            self._writing.popleft().result()
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
        while self._writing:
            self._writing.popleft().result()
        self._wait_for_flush()

    def drop(self) -> None:
        """Drop what is still queued."""
        while self._writing:
            self._writing.popleft().cancel()

    def close(self) -> None:
        """End the threads; what has not begun is dropped."""
        self._writer.shutdown(cancel_futures=True)
        self._flusher.shutdown(cancel_futures=True)

    def _wait_for_flush(self) -> None:
        if self._flushing is not None:
            self._flushing.result()
            self._flushing = None
