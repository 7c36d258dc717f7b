"""Owns a file that is held open: what was opened stays readable, whatever becomes of its name.

A conversion with --force puts a new graph in an old one's place; who opened the old one reads on, because the handle
and not the name is kept. Refuses what is no regular file, so that neither a pipe nor a device makes opening hang.
"""

import errno
import os
import stat
import weakref
from pathlib import Path


class OpenFile:
    """A regular file, open for reading until nobody holds this any more. ``path`` is its name when it was opened.

    Raises OSError: it cannot be opened, is a folder, or is neither.
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
    def name(self) -> str:
        """A name by which this very file can be opened again, also if ``path`` is another's now."""
        alias = f"/dev/fd/{self._handle}"
        return alias if os.path.exists(alias) else str(self.path)

    def reopen(self, flags: int = 0) -> int:
        """Return a new handle of the same file, with other flags than reading alone. Raises OSError."""
        if not flags:
            return os.dup(self._handle)
        return os.open(self.name, os.O_RDONLY | os.O_CLOEXEC | flags)
