"""What a table takes at least is never more than what it takes; dense formats are known but for their headers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.storage.results.result_tables import write
from penstock.storage.tables.columns import Column
from penstock.storage.tables.formats import ANSWERS, ColumnSize, column_size, digits_of_first, formats_of, table_size

ROWS = 20_000


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 99, 100, 12345])
def test_digits(count: int) -> None:
    assert digits_of_first(count) == sum(len(str(number)) for number in range(count))


@pytest.mark.parametrize("absent", [True, False])
@pytest.mark.parametrize("format", [name for name in formats_of(ANSWERS) if name != "graphar"])
def test_a_file_is_no_smaller_than_its_least_size(format: str, absent: bool, tmp_path: Path) -> None:
    values = np.zeros(ROWS) if absent else np.random.default_rng(1).random(ROWS)
    columns = {
        "vertex": Column.of(np.arange(ROWS)),
        "rank": Column.of(values, np.zeros(ROWS, bool) if absent else None),
    }
    write(tmp_path / "table", columns, format=format)
    size = (tmp_path / "table").stat().st_size
    ids, rank = digits_of_first(ROWS), column_size(np.dtype(np.float64), ROWS, sparse=absent)
    shapes = [rank] if format == "npy" else [ColumnSize(ids, ids, ROWS * 8), rank]
    found = table_size(format, ROWS, shapes)
    assert found.least <= size
    if not absent:
        assert size / 2 < found.likely < 2 * size
    if format in ("npy", "hdf5"):
        assert found.least == found.likely > size - 8192
