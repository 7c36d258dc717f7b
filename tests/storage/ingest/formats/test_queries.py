"""Rows of databases and Arrow files are edges as those of Parquet are; databases stay as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.feather
import pytest
from penstock.engine import convert
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.formats import queries
from support.reading import edges_of

ROWS = [("ann", "bo", 1.5), ("bo", "cy", 2.0), ("cy", "ann", 3.0)]
QUERY = "select a as source, b as target, w as weight from follows"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A database with a space and a question mark in its name."""
    path = tmp_path / "my shop?.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table follows (a, b, w)")
        database.executemany("insert into follows values (?, ?, ?)", ROWS)
        database.execute("create table numbers (u, v)")
        database.executemany("insert into numbers values (?, ?)", [(one, one * 7 % 5) for one in range(5)])
    return path


def test_a_query_gives_edges(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shop.read_bytes()
    assert edges_of(shop, query=QUERY, string_ids=None)[0] == [row[:2] for row in ROWS]
    assert edges_of(shop, query=QUERY, string_ids=True, weights=True)[0] == ROWS
    monkeypatch.setattr(queries, "ROW_BYTES", 1 << 30)
    edges, source = edges_of(shop, query="select u, v from numbers order by u desc", string_ids=None)
    assert edges == [(4, 3), (3, 1), (2, 4), (1, 2), (0, 0)]
    assert source.columns_taken[0].names == ("u", "v")  # type: ignore[attr-defined]
    assert edges_of(shop, query="select u, v from numbers where u > 9")[0] == []
    assert edges_of(shop, query="select 1 as x, u, v from numbers", columns=("v", "u"))[0][1] == (2, 1)
    assert shop.read_bytes() == before


def test_from_python(shop: Path, tmp_path: Path) -> None:
    graph = convert(shop, tmp_path / "g.h5", query=QUERY, weights=True, renumber=True)
    assert graph.neighbors("bo").tolist() == ["cy"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "is a SQLite database (tables: follows, numbers); --query says what to read"),
        ({"query": "select * from nowhere"}, "no such table: nowhere"),
        ({"query": "drop table numbers"}, "attempt to write a readonly database"),
        ({"query": "create temp table x (y)"}, "gives no rows; it must be a select"),
        ({"query": "select u as source, null as target from numbers"}, "target is null; drop such rows"),
        ({"query": "select u, u from numbers"}, "give each a name of its own (as)"),
        ({"query": "select u, case u when 1 then 'x' else v end as v from numbers"}, "of several types"),
        ({"query": "select a, b from follows"}, "--string-ids takes ids that are strings"),
        ({"query": "select -u as a, v as b from numbers"}, "a -1 is negative"),
        ({"query": "select u, v from numbers", "columns": ("u", "z")}, "no column is named 'z'"),
    ],
)
def test_what_a_query_cannot_be(shop: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        edges_of(shop, **options)
    assert reason in str(caught.value)
    assert str(shop) in str(caught.value)


def test_queries_are_for_databases(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2\n")
    with pytest.raises(InputError, match="--query is for databases"):
        edges_of(tmp_path / "a.txt", query="select 1")
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0 and so on")
    with pytest.raises(InputError, match="is no readable SQLite database"):
        edges_of(tmp_path / "a.db")


def test_arrow_files(tmp_path: Path) -> None:
    path = tmp_path / "edges.feather"
    table = pyarrow.table({"from": ["x", "y"], "to": ["y", "z"], "km": [4, 5]})
    pyarrow.feather.write_feather(table, path, chunksize=1)
    assert edges_of(path, string_ids=None, columns=("from", "to", "km"))[0] == [("x", "y", 4), ("y", "z", 5)]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="is no readable Parquet or Arrow file"):
        edges_of(path)


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("create table e as select i as a, i * 3 % 7 as b, i / 2 as w from range(7) t(i)")
    assert edges_of(path, query="select a, b from e order by a")[0] == [(one, one * 3 % 7) for one in range(7)]
    weighted = edges_of(path, query="select a as source, b as target, w as weight from e order by a", weights=True)[0]
    assert weighted[1] == (1, 3, 0.5)
    with pytest.raises(InputError, match="is a DuckDB database; --query says"):
        edges_of(path)
    with pytest.raises(InputError, match="nowhere"):
        edges_of(path, query="select * from nowhere")
