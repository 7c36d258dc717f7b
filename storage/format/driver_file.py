"""The file below the HDF5 library while it writes: every system call is made here, and every error is kept here.

The library must never see a write that fails: it reports some failures only where objects are deallocated, which is
silent, and it crashes at the end of the process over a file that it could not close. So a failed write succeeds for
the library, what it wrote stays in memory for it to read back, and `check` raises the error for the caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

PIECE_BYTES = 8 << 20
"""Written at once, so that `stop` does not wait for more."""
KEPT_BYTES = 1 << 20
"""The library reads back its own structures, which are smaller than that, and no items."""


class DriverFile:
    """A new file that is written through h5py's driver for Python's file objects; not for several threads at once.

    written: called with the number of bytes that the file has so far.

    Raises OSError: it cannot be made.
    """

    def __init__(self, path: Path, written: Callable[[int], None] | None = None) -> None:
        self._written = written
        self._file = path.open("w+b", buffering=0)
        self._at = self._size = 0
        self._lost: list[tuple[int, bytes]] = []
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise the first error that there was; what is written after it is kept in memory, so call this often."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Write nothing to the disk any more: the file is to be removed."""
        self._error = self._error or OSError("writing was stopped")

    def close(self) -> None:
        """Close the file, once the library has. Raises OSError."""
        self._file.close()

    # What the driver calls; nothing here may raise.

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, from the beginning or the end."""
        self._at = offset + (self._size if whence == os.SEEK_END else 0)
        return self._at

    def tell(self) -> int:
        """Where the next call reads or writes."""
        return self._at

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write all of `data`. If that fails keep it, unless it is too much to be what the library reads back."""
        view = memoryview(data).cast("B")
        at, self._at = self._at, self._at + len(view)
        self._size = max(self._size, self._at)
        try:
            if self._error is None:
                self._write(at, view)
        except BaseException as error:  # an interrupt too: the caller gets it from `check`
            self._error = error
        if self._error is not None and len(view) <= KEPT_BYTES:
            self._lost.append((at, bytes(view)))
        return len(view)

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Read what was written; bytes that were never written are zeros."""
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))
        try:
            self._read(self._at, view)
        except BaseException as error:
            self._error = self._error or error
        for at, data in self._lost:
            first, end = max(at, self._at), min(at + len(data), self._at + len(view))
            if first < end:
                view[first - self._at : end - self._at] = data[first - at : end - at]
        self._at += len(view)
        return len(view)

    def read(self, size: int) -> bytes:
        """As `readinto`, for the driver of older h5py."""
        buffer = bytearray(size)
        self.readinto(buffer)
        return bytes(buffer)

    def truncate(self, size: int) -> int:
        """Make the file so long."""
        self._size = size
        try:
            if self._error is None:
                os.ftruncate(self._file.fileno(), size)
        except BaseException as error:
            self._error = error
        return size

    def flush(self) -> None:
        """Nothing is buffered here."""

    def _write(self, at: int, view: memoryview) -> None:
        self._file.seek(at)
        done = 0
        while done < len(view):
            self.check()  # another thread may have said `stop`
            done += self._file.write(view[done : done + PIECE_BYTES]) or 0
        if self._written is not None:
            self._written(self._size)

    def _read(self, at: int, view: memoryview) -> None:
        self._file.seek(at)
        done = 0
        while done < len(view):
            count = self._file.readinto(view[done:])
            if not count:
                return
            done += count
