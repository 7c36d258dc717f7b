"""Encodes appended arrays in threads: cuts chunks of a fixed size from pieces of any size.

Memory is bounded: at most ``ahead`` raw chunks wait for a thread, then ``append`` waits.
"""

import threading
from collections import deque
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
    """Cuts what is appended into chunks and encodes them."""

    def __init__(self, coding: Coding, pool: Executor, ahead: int) -> None:
        self.coding = coding
        self.items = 0
        self._pool, self._ahead = pool, ahead
        self._filling: list[NDArray[Any]] = []
        self._filled = 0
        self._working: deque[Future[EncodedFrame]] = deque()
        self._ready: deque[EncodedFrame] = deque()

    @property
    def ready(self) -> int:
        """How many frames can be taken."""
        return len(self._ready)

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

    def take(self) -> EncodedFrame:
        """Return the next frame, in order."""
        return self._ready.popleft()

    def _cut(self) -> None:
        self._working.append(self._pool.submit(_encode, self._filling, self.coding))
        self._filling, self._filled = [], 0
        self._collect(self._ahead)

    def _collect(self, most: int) -> None:
        """Move finished frames over, and wait until at most ``most`` are being encoded."""
        while self._working and (len(self._working) > most or self._working[0].done()):
            self._ready.append(self._working.popleft().result())
