"""Numbers of all rows in a file without a name, where memory has no room for them."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import temporary_place
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError


class NumbersInFile:
    """Unsigned numbers, of which those that are read are in memory; at first each is the largest of its type.

    They are stored plus 1, so that this is what a file has that was never written.
    """

    ndim = 1

    def __init__(self, count: int, dtype: np.dtype[Any]) -> None:
        """Reserve the file. Raises InputError where the system's folder for temporary files has no room."""
        self.dtype = dtype
        self._count, folder = count, temporary_place()
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            os.posix_fallocate(self._file.fileno(), 0, max(1, count * dtype.itemsize))
        except OSError as error:
            raise InputError(
                f"{folder} cannot hold {format_bytes(count * dtype.itemsize)} of numbers, and memory has no room for "
                f"them: {error.strerror}; allow more with --host-memory, or name another folder with TMPDIR"
            ) from error

    def __len__(self) -> int:
        """How many rows there are."""
        return self._count

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """The numbers in some rows."""
        found: NDArray[Any] = self._stored("r", 0, self._count)[rows] - self.dtype.type(1)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The numbers in all rows."""
        return self[:]

    def put(self, rows: NDArray[np.int64], numbers: NDArray[Any]) -> None:
        """Set the numbers in some rows, ascending."""
        first, last = int(rows[0]), int(rows[-1]) + 1
        self._stored("r+", first, last)[rows - first] = numbers + self.dtype.type(1)

    def _stored(self, mode: Any, first: int, last: int) -> NDArray[Any]:
        """What the file has of a range, in memory only as long as this array lives."""
        return np.memmap(self._file, self.dtype, mode, first * self.dtype.itemsize, (last - first,))
