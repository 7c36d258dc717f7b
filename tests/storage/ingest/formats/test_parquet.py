"""Parquet: columns by name and position, and values that are no ids or weights are refused."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from pyarrow import parquet
from support.reading import Edges, edges_of


def write(folder: Path, **columns: Any) -> Path:
    path = folder / "edges.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=700)
    return path


def edges(path: Path, **options: Any) -> Edges:
    return edges_of(path, **options)[0]


def test_columns_by_name_and_position(tmp_path: Path) -> None:
    largest = pa.array([2**64 - 1] * 2000, pa.uint64())
    path = write(tmp_path, a=list(range(2000)), b=largest, w=[i / 2 for i in range(2000)])
    assert edges(path) == [(i, 2**64 - 1) for i in range(2000)]
    assert edges(path, weights=True)[3] == (3, 2**64 - 1, 1.5)
    assert edges(path, columns=("b", "a"))[5] == (2**64 - 1, 5)
    assert edges(path, columns=("a", 1, "w"))[7] == (7, 2**64 - 1, 3.5)


def test_what_was_taken_is_told(tmp_path: Path) -> None:
    source = open_source([write(tmp_path, n=["x"], src=[1], dst=[2])], None, IngestOptions(columns=("src", "dst")))
    assert sum(map(len, source.batches())) == 1
    told = [taken.told() for taken in source.columns_taken]  # type: ignore[attr-defined]
    assert told == ["source = 'src' (1), target = 'dst' (2); not read: 'n' (0)"]


def test_decimal_weights_are_numbers(tmp_path: Path) -> None:
    weights = pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(9, 2))
    assert edges(write(tmp_path, a=[1, 2], b=[3, 4], weight=weights), weights=True) == [(1, 3, 1.5), (2, 4, 2.25)]


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"a": ["x"], "b": [1]}, {}, "column 'a' holds string"),
        ({"a": [1.5], "b": [1]}, {}, "column 'a' holds double"),
        ({"a": [1, -1], "b": [1, 1]}, {}, r"row 1 .*: a -1 is negative"),
        ({"a": [1, None], "b": [1, 1]}, {}, r"row 1 .*: a is null"),
        ({"a": [1], "b": [1], "w": [float("nan")]}, {"weights": True}, r"row 0 .*: weight w is nan"),
        ({"a": [1]}, {}, "no column 1; it has a"),
        ({"id": [1], "src": [2], "dst": [3]}, {}, "its columns are id, src, dst; .*perhaps --columns src,dst"),
        ({"ts": [1], "payer": [2], "payee": [3], "sum": [4]}, {"weights": True}, "--columns payer,payee"),
        ({"a": [1], "b": [2], "c": [3]}, {}, "which of them are source and target is not known; .*--columns"),
        ({"a": [1], "b": [2]}, {"columns": ("a", "c")}, "no column is named 'c'"),
    ],
)
def test_bad_values_are_named(tmp_path: Path, columns: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        edges(write(tmp_path, **columns), **options)


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, a=list(range(2000)), b=list(range(2000)))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="no readable Parquet"):
        edges(path)


def test_a_pipe_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be read from a pipe"):
        open_source(["-"], "parquet", IngestOptions())
