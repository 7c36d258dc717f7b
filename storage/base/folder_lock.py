"""A lock on a folder: one run at a time writes to it, and the lock ends with the process that holds it.

The lock is flock(2) on a file in the folder, so that the kernel releases it however its holder ends; what a killed
holder leaves is the file, which locks nothing; every other holder removes it, also where a signal ends it. On NFS,
Linux makes flock a lock of the server, which holds between hosts. A file system without locks is used without one, and
a warning says so. The file names the process that holds the lock.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import platform
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from penstock.storage.base.atomic import register_debris, remove_debris
from penstock.storage.base.errors import InputError, refusal

_log = logging.getLogger("penstock.storage.base.folder_lock")
_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)
_TRIES, _PAUSE = 4, 0.025
"""How often the lock is tried, and seconds between: `check` of another process holds it for a moment."""


class FolderLock:
    """The lock that a file of this name in a folder stands for.

    option: what names the folder on the command line, for messages.
    """

    def __init__(self, folder: Path, name: str, option: str) -> None:
        self._folder, self._file, self._option = folder, folder / name, option
        self._close: weakref.finalize | None = None  # type: ignore[type-arg]

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._close is not None

    def acquire(self) -> None:
        """Take the lock, unless this object holds it already; the folder must be there.

        Raises:
            InputError: another run holds it, or the file cannot be made.
        """
        if self.held:
            return
        try:
            while not self._taken():
                pass
        except BaseException:
            self.release()
            self._remove_if_free()
            raise

    def release(self) -> None:
        """Give the lock up and remove its file; nothing to do where this object does not hold it."""
        if self._close is not None:
            with suppress(OSError):
                remove_debris(self._file)  # while it is locked: a process that waits for it then sees that it is gone
            close, self._close = self._close, None
            close()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold the lock for a block. Raises as `acquire`."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def check(self) -> None:
        """Refuse a folder that another run holds; makes no file. Raises InputError."""
        if self.held:
            return
        try:
            handle = os.open(self._file, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return  # no lock, or none that could be held: `acquire` says why
        try:
            self._lock(handle, fcntl.LOCK_SH, 1)
        finally:
            os.close(handle)

    def _taken(self) -> bool:
        """Lock the file, which is made where it is missing; False where its holder removed it meanwhile."""
        handle = self._open(os.O_RDWR | os.O_CREAT)
        close = weakref.finalize(self, os.close, handle)
        try:
            locked = self._lock(handle, fcntl.LOCK_EX, _TRIES)
            if not locked or self._is_current(handle):
                register_debris(self._file)
                self._close = close
        finally:
            if not self.held:
                close()
        if self.held and locked:
            self._write_holder(handle)
        return self.held

    def _remove_if_free(self) -> None:
        """Remove the file that an acquisition which was cut off has made, unless another process holds it."""
        with suppress(OSError):
            handle = os.open(self._file, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(handle):
                    self._file.unlink()
            finally:
                os.close(handle)

    def _open(self, flags: int) -> int:
        try:
            return os.open(self._file, flags | os.O_CLOEXEC, 0o666)
        except OSError as error:
            message = f"{self._folder} cannot be locked: {error.strerror}; name another {self._option}"
            raise refusal(error, message) from error

    def _lock(self, handle: int, kind: int, tries: int) -> bool:
        """Lock an open file; False where the file system has no locks. Raises InputError where another run has it."""
        for left in reversed(range(tries)):
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    _log.warning("%s cannot be locked (%s): see to it that no two runs use it", self._folder, error)
                    return False
                if error.errno not in _HELD:
                    raise refusal(error, f"{self._folder} cannot be locked: {error.strerror}") from error
            else:
                return True
            if left:
                time.sleep(_PAUSE)
        raise InputError(
            f"{self._folder} is in use by another run{_holder(handle)}: wait until it ends, "
            f"or name another {self._option}"
        )

    def _is_current(self, handle: int) -> bool:
        """Whether the file that was locked is still the one of that name."""
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self._file))
        except FileNotFoundError:
            return False

    def _write_holder(self, handle: int) -> None:
        holder = {
            "process": os.getpid(),
            "host": platform.node(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(holder).encode(), 0)
        except OSError as error:  # the lock holds all the same
            _log.warning("%s does not name its holder: %s", self._file, error.strerror)


def _holder(handle: int) -> str:
    """`, process 12 on host a since 2026-...`; nothing where the file does not name it."""
    try:
        holder = json.loads(os.read(handle, 4096))  # just opened: from its start
        process, host, since = int(holder["process"]), str(holder["host"]), str(holder["since"])
        return f", process {process} on host {host!r} since {since!r}".replace("'", "")
    except (OSError, ValueError, TypeError, KeyError):
        return ""
