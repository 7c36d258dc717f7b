"""A column in a file without a name, until the table is written of which it is a part."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.base.atomic import debris, partial_name, writing
from penstock.storage.format.direct_io import DirectFile, OpenFile
from penstock.storage.format.read_plan import ReadRange
from penstock.storage.tables.columns import Column, mapped
from penstock.storage.tables.synced_file import write_all

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ColumnFile:
    """Numbers of all rows, written now, and read by ranges; several threads may read at once.

    The system frees the file when nothing refers to it, and however the process ends. folder: where it lies.
    Raises RunError where the disk is full or fails.
    """

    ndim = 1

    def __init__(self, folder: Path, column: Column) -> None:
        self.dtype, self._rows = column.dtype, column.rows
        with debris(partial_name(folder / "column")) as path, writing(f"{folder}: a file that keeps an answer"):
            with path.open("wb") as file:
                write_all(file, mapped({"": column}, lambda parts: np.ascontiguousarray(parts[0][0])))
            self._file = DirectFile(OpenFile(path))
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        """How many rows there are."""
        return self._rows

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """The numbers of a range. Raises RunError."""
        first, last, _ = rows.indices(self._rows)
        found = np.empty(max(0, last - first), self.dtype)
        wanted = ReadRange(0, first * self.dtype.itemsize, found.nbytes, found.nbytes, ())
        self._file.read(wanted, memoryview(found).cast("B"))
        return found
