"""About how many bytes a table takes in a file, before it is computed.

Least: what the sparsest values of these types take, so that a file of that size is sure to be too large. Likely: what
values of algorithms took. Dense formats (`hdf5`, `npy`, `npz`) are known to the byte but for their headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from penstock.storage.tables.formats import FORMATS

DECIMALS = {2: 6, 4: 10, 8: 18}
"""Characters of a floating-point number that is not round, by its bytes."""


@dataclass(frozen=True)
class SizeRange:
    """Bytes, the least and about how many."""

    least: int
    likely: int


@dataclass(frozen=True)
class ColumnSize:
    """Bytes of all values of a column: as text, the least and about, and in memory."""

    least_text: int
    likely_text: int
    in_memory: int


def column_size(dtype: np.dtype[np.generic], rows: int, *, sparse: bool) -> ColumnSize:
    """The size of a column of numbers; sparse: values may be absent."""
    likely = DECIMALS[dtype.itemsize] if dtype.kind == "f" else 2
    return ColumnSize(0 if sparse else rows, rows * likely, rows * dtype.itemsize)


def digits_of_first(count: int) -> int:
    """Digits of the numbers 0 to count - 1, written one after another."""
    total, power = count, 10
    while power < count:
        total += count - power
        power *= 10
    return total


def table_size(format: str, rows: int, columns: Sequence[ColumnSize]) -> SizeRange:
    """The size of a table of so many rows in one of `FORMATS`."""
    written = FORMATS[format]
    if written.text:
        between = rows * len(columns)  # a delimiter or a newline behind every value
        least = between + sum(column.least_text for column in columns)
        likely = between + sum(column.likely_text for column in columns)
    else:
        least = likely = sum(column.in_memory for column in columns)
    return SizeRange(least // written.most, int(likely / written.usual))
