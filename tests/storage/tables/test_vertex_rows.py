"""Rows of vertices by ascending id, in parts between bounds."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.tables.vertex_rows import ID, write_sorted

SIZES = {"numbers": 0, "short": 8, "long": 60}


def ids_of(size: int, count: int = 500) -> list[Any]:
    return [f"{number:0{size}}" for number in range(count)] if size else list(range(0, 7 * count, 7))


def written(rows: list[Any], bounds: list[Any], path: Path) -> list[Any]:
    kind = pa.string() if isinstance(rows[0], str) else pa.uint64()
    batches = [pa.record_batch([pa.array(rows[at : at + 90], kind)], [ID]) for at in range(0, len(rows), 90)]
    write_sorted(iter(batches), bounds, path, BytesIO, {})
    found: list[Any] = pyarrow.parquet.read_table(path)[ID].to_pylist()
    return found


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_parts_follow_one_another(size: int, tmp_path: Path) -> None:
    ids = ids_of(size)
    assert written(ids[::-1], [ids[100], ids[101], ids[300]], tmp_path / "rows.parquet") == ids


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_an_id_that_comes_twice_is_refused(size: int, tmp_path: Path) -> None:
    ids = ids_of(size)
    with pytest.raises(InputError, match=r"250? has two lines|vertex 1750 has two lines"):
        written([*ids[::-1], ids[250]], ids[100:300:50], tmp_path / "rows.parquet")
