"""Owns the way from appended arrays to encoded chunks: fixed chunks cut from any pieces, encoded in threads.

Memory is bounded: at most ``ahead`` raw chunks wait for a thread, then ``append`` waits. Refuses to
place or write frames; write.py takes them in order.
"""

import threading
from collections import deque
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.codec import Coding, Encoder, checksum

_encoders = threading.local()


class EncodedFrame(NamedTuple):
    """One chunk ready for the file: its bytes, their checksum, and how many items it holds."""

    data: bytes
    checksum: int
    items: int


def _encode(buffer: NDArray[Any], items: int, coding: Coding) -> tuple[EncodedFrame, NDArray[Any]]:
    """Encode in a worker, with that thread's own encoder; hand the buffer back."""
    known = _encoders.__dict__.setdefault("known", {})
    if coding not in known:
        known[coding] = Encoder(coding)
    data = known[coding].encode(buffer[:items])
    return EncodedFrame(data, checksum(data), items), buffer


class ChunkStream:
    """Cuts what is appended into chunks and encodes them."""

    def __init__(self, coding: Coding, pool: Executor, ahead: int) -> None:
        self.coding = coding
        self.items = 0
        self._pool, self._ahead = pool, ahead
        self._buffers: list[NDArray[Any]] = []
        self._filling: NDArray[Any] | None = None
        self._filled = 0
        self._working: deque[Future[tuple[EncodedFrame, NDArray[Any]]]] = deque()
        self._ready: deque[EncodedFrame] = deque()

    @property
    def ready(self) -> int:
        """How many frames can be taken."""
        return len(self._ready)

    def append(self, items: NDArray[Any]) -> None:
        """Copy items in, at most a chunk at a time if memory is to stay bounded."""
        self.items += len(items)
        at = 0
        while at < len(items):
            if self._filling is None:
                spare = self._buffers
                self._filling = spare.pop() if spare else np.empty(self.coding.chunk_items, self.coding.kind)
            step = min(len(items) - at, self.coding.chunk_items - self._filled)
            self._filling[self._filled : self._filled + step] = items[at : at + step]
            self._filled += step
            at += step
            if self._filled == self.coding.chunk_items:
                self._cut()

    def finish(self) -> None:
        """Cut what is left and wait for every chunk."""
        if self._filled:
            self._cut()
        self._collect(0)
        self._buffers.clear()

    def take(self) -> EncodedFrame:
        """Return the next frame, in order."""
        return self._ready.popleft()

    def _cut(self) -> None:
        assert self._filling is not None
        args = (self._filling, self._filled, self.coding)
        self._working.append(self._pool.submit(_encode, *args))
        self._filling, self._filled = None, 0
        self._collect(self._ahead)

    def _collect(self, most: int) -> None:
        """Move finished frames over, and wait until at most ``most`` are being encoded."""
        while self._working and (len(self._working) > most or self._working[0].done()):
            frame, buffer = self._working.popleft().result()
            self._ready.append(frame)
            self._buffers.append(buffer)
