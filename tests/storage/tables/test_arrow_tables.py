"""Numbers that Arrow writes as Python would; rows that are converted at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.tables.arrow_tables import python_texts
from penstock.storage.tables.columns import Column, mapped

EDGES = [0.0, -0.0, 1.0, -3.0, 1e-4, 9.9e-5, 1e-5, 9.9e-6, 1.25e-10, 5e-324, 1e10, 9999999999.5, 1e15, 1e16, 1e22]
STRANGE = [123456789012345.6, 2.0**53, 1.5e300, np.inf, -np.inf, np.nan]


@given(values=st.lists(st.floats(), max_size=50))
def test_floats_are_as_python_writes_them(values: list[float]) -> None:
    assert python_texts(np.array(values, np.float64)).to_pylist() == [str(value) for value in values]


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_floats_near_a_change_of_notation(kind: str) -> None:
    for exponent in range(-20, 24):
        values = np.array([1.0, 1.5, -2.25, 9.75], kind) * np.array(10.0**exponent, kind)
        assert python_texts(values).to_pylist() == [str(value) for value in values.tolist()]
    values = np.array([*EDGES, *(STRANGE if kind == "f8" else [])], kind)
    assert python_texts(values).to_pylist() == [str(value) for value in values.tolist()]
    assert python_texts(np.array([3.0, 0.0, -7.0], kind)).to_pylist() == ["3.0", "0.0", "-7.0"]


@pytest.mark.parametrize("kind", ["u1", "u8", "i8"])
def test_whole_numbers(kind: str) -> None:
    values = np.array([0, 7, np.iinfo(kind).max, np.iinfo(kind).min], kind)
    assert python_texts(values).to_pylist() == [str(value) for value in values.tolist()]


@pytest.mark.parametrize(("kind", "count", "most"), [("int64", 2, 1 << 17), ("int64", 24, 1 << 14), ("T", 24, 1 << 12)])
def test_ranges_of_wide_rows_have_fewer(kind: str, count: int, most: int) -> None:
    """So that those that are under way take as much memory."""
    rows = 1 << 17
    values = np.zeros(rows, kind) if kind != "T" else np.full(rows, "x", np.dtypes.StringDType())
    columns = {f"c{number}": Column.of(values) for number in range(count)}
    lengths = list(mapped(columns, lambda parts: len(parts[0][0])))
    assert sum(lengths) == rows
    assert max(lengths) == most
