"""Columns of a result table, which are read range by range, so that no copy of a whole one is made."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from penstock.storage.base.threads import ROWS, map_rows
from penstock.storage.tables.formats import TableStyle

Part = tuple[NDArray[Any], NDArray[np.bool_] | None]
"""Values of a range of rows, and which of them are present (None: all)."""
Read = Callable[[int, int], Part]
"""Reads rows first..last-1; several threads may call it at once."""


@dataclass(frozen=True)
class Column:
    """One column: its dtype (numbers, or NumPy's strings), its length, and how it is read.

    opened: called once by who reads the column, in one thread; what only some formats write is loaded there.
    """

    dtype: np.dtype[Any]
    rows: int
    opened: Callable[[], Read]

    @classmethod
    def of(cls, values: NDArray[Any], present: NDArray[np.bool_] | None = None) -> Column:
        """The column of an array."""

        def read(first: int, last: int) -> Part:
            return values[first:last], None if present is None else present[first:last]

        return cls(values.dtype, len(values), lambda: read)

    def arrays(self) -> Part:
        """All values, and which of them are present (None: all)."""
        values, present = self.opened()(0, self.rows)
        return values, None if present is None or present.all() else present


Columns = Mapping[str, Column]
"""The table by name: "vertex" (and "side" of a bipartite graph), then the fields of the result; of one length."""


@dataclass(frozen=True)
class WriteOptions:
    """How a table is written.

    threads: most threads that convert; None: every core. written: called with the number of bytes written so far.
    style: the options of output that the user gave, by name. origin: as in `hdf5.write_columns`.
    """

    threads: int | None = None
    written: Callable[[int], None] | None = None
    style: TableStyle = field(default_factory=TableStyle)
    origin: str = ""


def first_field(columns: Columns) -> str:
    """The name of the first column that is a field of the result."""
    return next(name for name in columns if name not in ("vertex", "side"))


def npy_head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of a `.npy` file, behind which its items follow row by row."""
    head = BytesIO()
    facts = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(head, facts)
    return head.getvalue()


NARROW_BYTES, TEXT_BYTES = 24, 32
"""Bytes of a row up to which ranges have all their rows, and about what a text takes in memory."""
LEAST_ROWS = 1 << 10


def mapped(
    columns: Columns, function: Callable[[list[Part]], Any], *, threads: int | None = None, size: int = ROWS
) -> Generator[Any, None, None]:
    """Yield what the function makes of the columns' parts, range by range in order; threads work on the next ones.

    Ranges have so many rows, or fewer where rows are wide, so that they take as much memory.
    """
    reads = [column.opened() for column in columns.values()]
    rows = next((column.rows for column in columns.values()), 0)
    width = sum(TEXT_BYTES if column.dtype.kind == "T" else column.dtype.itemsize for column in columns.values())
    size = min(size, max(LEAST_ROWS, size * NARROW_BYTES // max(width, NARROW_BYTES)))
    return map_rows(lambda a, b: function([read(a, b) for read in reads]), rows, threads=threads, size=size)
