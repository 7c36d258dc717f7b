"""Files of a graph that are open: positioned reads, past the page cache where asked and allowed.

What was opened stays readable, whatever becomes of its name: a conversion with --force puts a new graph in an old
one's place, and a run that opened the old one keeps its handle and reads on. An I/O error is tried once more, which
cables and network disks sometimes need; then it is an error that names the file. So is a file that is cut short.
"""

import errno
import logging
import os
import stat
import threading
import time
import weakref
from pathlib import Path

from penstock.storage.base.errors import RunError
from penstock.storage.format.read_plan import PAGE, ReadRange

_log = logging.getLogger("penstock.storage.format.direct_io")


class OpenFile:
    """A regular file, open for reading as long as this object. ``path`` is its name when it was opened.

    Raises OSError: it cannot be opened, or is no regular file (so that neither a pipe nor a device makes opening hang).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._closed = weakref.finalize(self, os.close, self._handle)
        mode = os.fstat(self._handle).st_mode
        if not stat.S_ISREG(mode):
            self._closed()
            kind = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(kind, "it is not a regular file" if kind == errno.EINVAL else os.strerror(kind), str(path))

    @property
    def size(self) -> int:
        """Bytes it has now."""
        return os.fstat(self._handle).st_size

    @property
    def replaced(self) -> bool:
        """Whether its name is another file's now."""
        try:
            return not os.path.samestat(os.fstat(self._handle), self.path.stat())
        except FileNotFoundError:
            return False

    @property
    def name(self) -> str:
        """A name by which this very file can be opened again, also if ``path`` is another's now."""
        alias = f"/dev/fd/{self._handle}"
        return alias if os.path.exists(alias) else str(self.path)

    def reopen(self, flags: int = 0) -> int:
        """Return a new handle of the same file, with other flags than reading alone. Raises OSError."""
        if not flags:
            return os.dup(self._handle)
        return os.open(self.name, os.O_RDONLY | os.O_CLOEXEC | flags)


class DirectFile:
    """A file opened for ``preadv``; safe to read from many threads; a context manager.

    ``direct`` says whether reads bypass the page cache: asked for, and the file system allows it.
    ``throttle`` (bytes per second, for tests) slows the file as a whole.
    """

    def __init__(self, held: OpenFile, *, direct: bool = False, throttle: float | None = None) -> None:
        self.path, self._held, self._throttle = held.path, held, throttle
        self._free_at = 0.0
        self._pace = threading.Lock()
        self.direct = direct and hasattr(os, "O_DIRECT")
        self._handle = self._open()

    def _open(self) -> int:
        if self.direct:
            try:
                return self._held.reopen(os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                _log.info("%s: the file system allows no direct reads; the page cache is used", self.path)
                self.direct = False
        return self._held.reopen()

    def close(self) -> None:
        """Close the file; no read may be under way."""
        os.close(self._handle)

    def __enter__(self) -> "DirectFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def expect(self, ranges: list[tuple[int, int]]) -> None:
        """Tell the system, where it can be told, which ranges (start, length) will be read: it begins to read all."""
        if hasattr(os, "posix_fadvise"):
            for start, length in ranges:
                os.posix_fadvise(self._handle, start, length, os.POSIX_FADV_WILLNEED)

    def read(self, wanted: ReadRange, buffer: memoryview) -> None:
        """Fill the buffer (page-aligned) with a range. Raises RunError naming the file."""
        if self._throttle is not None:
            self._wait(wanted.length)
        try:
            done = self._read(wanted, buffer)
        except OSError as error:
            try:
                done = self._again(error, wanted, buffer)
            except OSError as last:
                raise RunError(
                    f"{self.path} cannot be read at offset {wanted.start}: {last.strerror or last}; check the disk"
                ) from last
        if done < wanted.needed:
            raise RunError(
                f"{self.path} is cut short: {done} of {wanted.needed} bytes at offset "
                f"{wanted.start}; convert the input again, or restore the file from a copy"
            )

    def _again(self, error: OSError, wanted: ReadRange, buffer: memoryview) -> int:
        """Try a second time: as before after EIO, through the page cache where direct fails."""
        if error.errno == errno.EINVAL and self.direct:
            with self._pace:
                if self.direct:
                    self.direct = False
                    plain = self._held.reopen()
                    os.dup2(plain, self._handle, inheritable=False)
                    os.close(plain)
        elif error.errno != errno.EIO:
            raise error
        _log.warning("%s: reading %d bytes at offset %d failed (%s); trying again",
                     self.path, wanted.length, wanted.start, error.strerror or error)  # fmt: skip
        return self._read(wanted, buffer)

    def _read(self, wanted: ReadRange, buffer: memoryview) -> int:
        done = 0
        while done < wanted.needed:
            view = buffer[done : wanted.length]
            step = os.preadv(self._handle, [view], wanted.start + done)
            if self.direct and done + step < wanted.needed:
                step -= step % PAGE
            if step <= 0:
                break
            done += step
        return done

    def _wait(self, size: int) -> None:
        assert self._throttle is not None
        with self._pace:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + size / self._throttle
            pause = self._free_at - now
        time.sleep(pause)


def open_direct_file(held: OpenFile, *, direct: bool, throttle: float | None = None) -> DirectFile:
    """Return a `DirectFile`. Raises RunError where it cannot be opened."""
    try:
        return DirectFile(held, direct=direct, throttle=throttle)
    except OSError as error:
        raise RunError(f"{held.path} cannot be opened: {error.strerror}") from error
