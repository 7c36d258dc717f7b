"""Owns the two places where a conversion keeps arrays: so much memory, and scratch files after it.

`SpillRoom` counts the bytes of memory that may still be reserved, and has append-only files in a folder, announced
before they are used, refused when the disk has not enough, and gone when the conversion ends, however it ends.
`ArrayStore` keeps arrays in the one while it lasts, then in the other.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import temporary_place
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, RunError


class SpillRoom:
    """A number of bytes of memory, and append-only files without a name in one folder. Use `close`.

    ``free_bytes`` of memory may still be reserved. ``folder``: by default the system's for temporary files.
    ``expected`` says, when the first file is opened, how many bytes will be needed in all (None: unknown);
    ``announced`` is what it said and ``written`` how many were.
    """

    def __init__(self, memory_bytes: int, folder: Path | None, expected: Callable[[], int | None]) -> None:
        self.free_bytes = memory_bytes
        self.folder = temporary_place() if folder is None else folder
        self.written = 0
        self.announced = 0
        self._expected = expected
        self._files: list[IO[bytes]] = []

    def reserve(self, count: int) -> bool:
        """Reserve ``count`` bytes of memory if there are as many."""
        if count > self.free_bytes:
            return False
        self.free_bytes -= count
        return True

    def release(self, count: int) -> None:
        """Give ``count`` reserved bytes back."""
        self.free_bytes += count

    def open(self) -> IO[bytes]:
        """A new file. It never has a name, so not even a killed process leaves it behind.

        Raises:
            InputError: the folder cannot be written, or its disk has not enough space.
        """
        try:
            if not self._files:
                self._announce(shutil.disk_usage(self.folder).free)
            file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise InputError(
                f"scratch folder {self.folder} cannot be used: {error.strerror}; --scratch names another"
            ) from error
        self._files.append(file)
        return file

    def close(self) -> None:
        """Close every file, which frees its space."""
        for file in self._files:
            file.close()
        self._files.clear()

    def _announce(self, free: int) -> None:
        needed = self._expected()
        self.announced = needed or 0
        if needed is not None and needed > free:
            raise InputError(
                f"{self.folder}: about {format_bytes(needed)} of temporary "
                f"space are needed, and {format_bytes(free)} are free; name another folder with --scratch, "
                "or allow more memory with --host-memory"
            )


@dataclass(slots=True)
class StoredArrays:
    """Some arrays of one `ArrayStore`: ``arrays`` in memory, or None where they are on disk, from ``starts`` on."""

    dtypes: tuple[np.dtype[Any], ...]
    nbytes: int
    arrays: tuple[NDArray[Any], ...] | None = None
    starts: tuple[int, ...] = ()

    def address(self, number: int) -> int:
        """Where an array is in memory; 0 if it is on disk."""
        return 0 if self.arrays is None else int(self.arrays[number].ctypes.data)


class ArrayStore:
    """Keeps arrays in memory while there is room for them, then in a scratch file of its own. Use `close`."""

    def __init__(self, room: SpillRoom) -> None:
        self.on_disk = False
        self._room = room
        self._file: IO[bytes] | None = None
        self._end = self._reserved = 0

    def keep(self, *arrays: NDArray[Any]) -> StoredArrays:
        """Keep some arrays, which are the store's now.

        Raises:
            InputError: the disk has not enough space.
            RunError: the disk is full or failed.
        """
        stored = StoredArrays(tuple(array.dtype for array in arrays), sum(array.nbytes for array in arrays))
        if self._room.reserve(stored.nbytes):
            stored.arrays = arrays
            self._reserved += stored.nbytes
        else:
            self._file = self._file or self._room.open()
            stored.starts = tuple(self._append(self._file.fileno(), array) for array in arrays)
            self.on_disk = True
        return stored

    def read(
        self, stored: StoredArrays, number: int, first: int, last: int, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Items [first, last) of an array; those of one on disk are put into ``out`` (None: a new array).

        Raises:
            RunError: the disk failed.
        """
        if stored.arrays is not None:
            return stored.arrays[number][first:last]
        assert self._file is not None
        dtype = stored.dtypes[number]
        out = np.empty(last - first, dtype) if out is None else out
        self._fill(self._file.fileno(), stored.starts[number] + first * dtype.itemsize, out)
        return out

    def forget(self, stored: StoredArrays) -> None:
        """Give back the memory of some arrays; the space of those on disk is given back by `close`."""
        if stored.arrays is not None:
            self._room.release(stored.nbytes)
            self._reserved -= stored.nbytes
            stored.arrays = None

    def close(self) -> None:
        """Give back the memory and the space of all."""
        self._room.release(self._reserved)
        self._reserved = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, handle: int, array: NDArray[Any]) -> int:
        """Write an array's bytes at the end of the file; return where they begin."""
        start = self._end
        view = memoryview(np.ascontiguousarray(array)).cast("B")
        try:
            while view:
                count = os.pwrite(handle, view, self._end)
                self._end += count
                view = view[count:]
        except OSError as error:
            raise RunError(
                f"{self._room.folder}: writing temporary data failed after "
                f"{format_bytes(self._room.written)}: {error.strerror}; free space, or name "
                "another folder with --scratch"
            ) from error
        self._room.written += self._end - start
        return start

    def _fill(self, handle: int, start: int, out: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes at ``start``."""
        view = memoryview(out).cast("B")
        try:
            while view:
                count = os.preadv(handle, [view], start)
                if count == 0:
                    raise RunError(f"{self._room.folder}: temporary data is missing")
                start += count
                view = view[count:]
        except OSError as error:
            raise RunError(
                f"{self._room.folder}: reading temporary data failed: {error.strerror}; "
                "name another folder with --scratch"
            ) from error
