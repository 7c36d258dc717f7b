"""A file without a name that holds pages of arrays for as long as a run: checksummed, past the page cache.

It lies in one folder or over several, a page after the other, and has its room on the disks from the start: so a disk
that is too small is found before a run. No name leads to it, so the system frees it however the process ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from penstock.storage.base.atomic import free_bytes, temporary_place
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, RunError, refusal
from penstock.storage.base.stage_clock import BusyTimer
from penstock.storage.encoding.codec import checksum

DIRECT = getattr(os, "O_DIRECT", 0)
SLOT = 4096
"""Bytes of which a page's room is a multiple, which direct I/O asks for."""
Place = tuple[int, int, int]
"""In which folder's file a page is, where it begins, and its bytes."""
WHAT = "the file for vertex state"
WAYS = "free some room, name another folder (--scratch), or give the run more memory"


def slot_bytes(size: int) -> int:
    """Room for so many bytes of a page."""
    return -(-size // SLOT) * SLOT


def folders_beside(files: Sequence[Path]) -> list[Path]:
    """Where there is room beside the files of a graph, the manifest first; of none the folder for temporary files."""
    return list(dict.fromkeys(file.parent for file in files[1:] or files)) or [temporary_place()]


def check_folders(folders: Sequence[Path], room: int) -> None:
    """Refuse what `PageFile` would for want of a folder or of room in it. Raises InputError."""
    for folder in folders:
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{folder}: {WHAT} needs {format_bytes(room)}, and no file can be made here; {WAYS}")
    for folder in folders:
        together = sum(one.stat().st_dev == folder.stat().st_dev for one in folders)
        needed, free = together * _share(room, folders), free_bytes(folder / WHAT)
        if needed > free:
            raise InputError(
                f"{folder}: {WHAT} needs {format_bytes(needed)}, and {format_bytes(free)} are free; {WAYS}"
            )


def _share(room: int, folders: Sequence[Path]) -> int:
    return slot_bytes(-(-room // len(folders))) + SLOT


class PageFile:
    """Pages by key, of memory that begins and ends where direct I/O may; safe to use from several threads.

    It is closed, and its room free again, when nothing refers to it. folders: where it lies. room: bytes of all pages
    together, each a `slot_bytes`.
    Raises RunError where the disks are full, InputError for a folder that takes no file.
    """

    def __init__(self, folders: Sequence[Path], room: int) -> None:
        self.bytes_read = self.bytes_written = 0
        self.folders, self._lock, self._moving = list(folders), threading.Lock(), BusyTimer()
        self._ends = [0] * len(folders)
        self._places: dict[object, Place] = {}
        self._unused: dict[int, list[tuple[int, int]]] = {}  # places by their bytes
        self._sums: dict[object, int] = {}
        handles: list[int] = []
        self._closed = weakref.finalize(self, _close, handles)
        for folder in folders:
            try:
                handles.append(_unnamed(folder))
                os.posix_fallocate(handles[-1], 0, _share(room, folders))
            except OSError as error:
                self._closed()
                raise refusal(
                    error,
                    f"{folder}: {WHAT} needs {format_bytes(room)} here: {error.strerror}; {WAYS}",
                ) from error
        self._handles = handles

    @property
    def bytes_moved(self) -> int:
        """Bytes that were read and written so far."""
        return self.bytes_read + self.bytes_written

    @property
    def busy_seconds(self) -> float:
        """Seconds so far in which at least one page was read or written."""
        return self._moving.seconds

    def __contains__(self, key: object) -> bool:
        return key in self._sums

    def forget(self, keys: Iterable[object]) -> None:
        """Have no pages of these keys, which none reads or writes; their places are those of pages to come."""
        with self._lock:
            for key in reversed([*keys]):  # so that what comes next is one behind the other
                if self._sums.pop(key, None) is not None:
                    number, begin, size = self._places.pop(key)
                    self._unused.setdefault(size, []).append((number, begin))

    def write(self, key: object, page: memoryview) -> None:
        """Keep a page, in the place of what the key had. Raises RunError."""
        with self._lock:
            if key not in self._places or self._places[key][2] != len(page):
                self._places[key] = self._place(len(page))
            at = self._places[key]
            self.bytes_written += len(page)
        with self._moving:
            self._whole("written", os.pwritev, at, page)
        self._sums[key] = checksum(page)

    def _place(self, size: int) -> Place:
        """A place for a page of so many bytes: the begin of the shortest unused one that has them, else a new one."""
        length = min((length for length, places in self._unused.items() if places and length >= size), default=0)
        if length:
            number, begin = self._unused[length].pop()
            if length > size:
                self._unused.setdefault(length - size, []).append((number, begin + size))
        else:
            number = min(range(len(self.folders)), key=self._ends.__getitem__)
            begin = self._ends[number]
            self._ends[number] += size
        return number, begin, size

    def read(self, key: object, page: memoryview) -> None:
        """Fill a page with what the key has. Raises RunError."""
        with self._lock:
            at = self._places[key]
            self.bytes_read += len(page)
        with self._moving:
            self._whole("read", os.preadv, at, page)
        if checksum(page) != self._sums[key]:
            raise RunError(
                f"{self.folders[at[0]]}: {WHAT} holds other bytes than were written, at offset {at[1]}; check the disk"
            )

    def _whole(self, done: str, move: Callable[[int, list[memoryview], int], int], at: Place, page: memoryview) -> None:
        """Move all bytes of a page, of which the system may move some at a time."""
        number, begin, _ = at
        moved = 0
        while moved < len(page):
            try:
                some = move(self._handles[number], [page[moved:]], begin + moved)
                if some == 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            except OSError as error:
                raise RunError(
                    f"{self.folders[number]}: {WHAT} cannot be {done}: {error.strerror}; check the disk, or give the "
                    "run more memory"
                ) from error
            moved += some


def _unnamed(folder: Path) -> int:
    """Open a file without a name, for direct I/O where the file system has it."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        handle = os.dup(file.fileno())
    try:
        fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            os.close(handle)
            raise
    return handle


def _close(handles: list[int]) -> None:
    while handles:
        os.close(handles.pop())
