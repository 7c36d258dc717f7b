"""A file that is written from its beginning to its end while the disk is already at work on what is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from penstock.storage.base.threads import ThreadPool

SYNC_BYTES = 32 << 20
"""Written before the disk is told to begin, or to go on: less, and telling it costs more than it saves."""
PIECE_BYTES = 8 << 20
"""Written at once, so that a signal does not wait for more."""


class OrderedFile(Protocol):
    """A file that is written from its beginning to its end."""

    def write(self, data: Any) -> int:
        """Append all of the data; return its bytes."""


def write_all(file: OrderedFile, pieces: Generator[Any, None, None]) -> None:
    """Append pieces to a file one after another; they are closed, whatever happens."""
    with closing(pieces):
        for piece in pieces:
            file.write(piece)


class SyncedFile:
    """A new file, written in order; a context manager. Raises OSError where the disk fails, `close` at the latest.

    written: called with the number of bytes written so far.
    """

    def __init__(self, path: Path, written: Callable[[int], None] | None = None) -> None:
        self._file = path.open("wb", buffering=0)
        self._written = written
        self._size = self._begun = 0
        self._pool: ThreadPool | None = None
        self._syncing: Future[None] | None = None

    def __enter__(self) -> SyncedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._syncing is not None:
                self._syncing.result()
        finally:
            if self._pool is not None:
                self._pool.shutdown()
            self._file.close()

    def write(self, data: Any) -> int:
        """Append all of the data; return its bytes."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += self._file.write(view[done : done + PIECE_BYTES]) or 0
        self._size += done
        self._sync()
        if self._written is not None:
            self._written(self._size)
        return done

    @property
    def closed(self) -> bool:
        """Whether it is closed, as Arrow asks of Python's files."""
        return self._file.closed

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Nothing is buffered here."""

    def _sync(self) -> None:
        """Let the disk begin with what was written since it was told last, unless it is busy with that."""
        if self._size - self._begun < SYNC_BYTES or not (self._syncing is None or self._syncing.done()):
            return
        if self._syncing is not None:
            self._syncing.result()
        self._pool = self._pool or ThreadPool(1, "sync")
        self._begun, self._syncing = self._size, self._pool.submit(os.fdatasync, self._file.fileno())
