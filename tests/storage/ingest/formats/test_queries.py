"""Rows of databases and Arrow files are edges as those of Parquet are; a query is a read, of bounded values."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.feather
import pytest
from penstock.engine import convert
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.encoding.string_array import LONGEST_NAME
from penstock.storage.ingest.core.source import LONGEST_VALUE, IngestOptions
from penstock.storage.ingest.formats import queries
from support.commands import answered, refused
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
    monkeypatch.setattr(queries, "MOST_ROWS", 2)
    edges, source = edges_of(shop, query="select u, v from numbers order by u desc", string_ids=None)
    assert edges == [(4, 3), (3, 1), (2, 4), (1, 2), (0, 0)]
    assert source.columns_taken[0].names == ("u", "v")  # type: ignore[attr-defined]
    assert edges_of(shop, query="select u, v from numbers where u > 9")[0] == []
    assert edges_of(shop, query="select 1 as x, u, v from numbers", columns=("v", "u"))[0][1] == (2, 1)
    assert shop.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "is a SQLite database (tables: follows, numbers); --query says what to read"),
        ({"query": "select * from nowhere"}, "no such table: nowhere"),
        ({"query": "-- nothing"}, "gives no rows; --query is one select"),
        ({"query": "select u, v from numbers; select 1"}, "one statement at a time"),
        ({"query": "select \ud800"}, "surrogates not allowed"),
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


@pytest.mark.parametrize(
    "query",
    [
        "drop table numbers",
        "insert into numbers values (8, 9) returning u, v",
        "create temp table x (y)",
        "attach 'other.db' as other",
        "vacuum into 'other.db'",
        "pragma user_version = 7",
        "pragma table_info(numbers)",
        "select cid as u, pk as v from pragma_table_info('numbers')",
        "select load_extension('other.so') as u, 1 as v",
        "select u, v from found",
        "begin",
        "analyze",
        "detach main",
    ],
)
def test_a_query_of_sqlite_is_a_read(shop: Path, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("create virtual table found using fts4(u, v)")
    before = shop.read_bytes()
    monkeypatch.chdir(shop.parent)
    with pytest.raises(InputError) as caught:
        edges_of(shop, query=query)
    assert str(caught.value) == f"{shop}: --query {query!r}: {queries.ONE_SELECT}"
    assert (os.listdir(shop.parent), shop.read_bytes()) == ([shop.name], before)


@pytest.mark.parametrize(
    ("query", "edges"),
    [
        ("with recursive c (x) as (select 1 union all select x + 1 from c where x < 3) select x, x from c", 3),
        ("select u as a, value as b from numbers, json_each('[4, 5]')", 10),
        ("select max(u) as a, abs(-v) as b from numbers group by v", 5),
        ("values (1, 2), (3, 4)", 2),
    ],
)
def test_selects_of_every_kind_are_reads(shop: Path, query: str, edges: int) -> None:
    query = query.replace("select x, x", "select x, x as y")
    assert len(edges_of(shop, query=query)[0]) == edges


def test_a_view_of_a_hostile_database_calls_nothing_with_effects(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("create view edges as select load_extension('evil.so') as u, 1 as v")
    with pytest.raises(InputError, match="unsafe use of load_extension"):
        edges_of(shop, query="select u, v from edges")


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """A database with a write-ahead log, closed."""
    (tmp_path / "logged").mkdir()
    path = tmp_path / "logged" / "wal.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table e (u, v)")
        database.executemany("insert into e values (?, ?)", [(1, 2), (2, 3)])
    return path


def test_nothing_is_made_beside_a_database_with_a_log(logged: Path) -> None:
    assert edges_of(logged, query="select u, v from e")[0] == [(1, 2), (2, 3)]
    assert os.listdir(logged.parent) == ["wal.db"]


def test_what_is_in_the_log_is_read(logged: Path) -> None:
    with closing(sqlite3.connect(logged)) as database:
        with database:
            database.execute("insert into e values (3, 4)")
        assert (logged.parent / "wal.db-wal").stat().st_size > 0
        assert edges_of(logged, query="select u, v from e")[0][2] == (3, 4)


def test_a_database_that_changes_is_refused(logged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_ROWS", 1)
    found = queries.record_batches(logged, "sqlite", IngestOptions(query="select u, v from e", host_memory=1 << 20))
    assert len(next(found)) == 1
    os.utime(logged, (1, 1))
    with pytest.raises(RunError, match="was changed while it was read"):
        list(found)


def test_a_long_value_of_sqlite_is_refused_before_it_is_read(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("create table long (u, v, fits, note)")
        values = 1, 2, "x" * LONGEST_VALUE, "x" * (LONGEST_VALUE + 1)
        database.execute("insert into long values (?, ?, ?, ?)", values)
    assert edges_of(shop, query="select u, v, fits from long", columns=("u", "v"))[0] == [(1, 2)]
    for query in ("select u, v, note from long", "select u, hex(fits) as v from long"):
        with pytest.raises(InputError, match=r"has more than 1\.0 MiB; leave its column out of the query"):
            edges_of(shop, query=query, columns=("u", "v"))


def test_a_batch_has_no_more_bytes_than_its_share(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute("create table names (a, b)")
        database.executemany("insert into names values (?, ?)", [("x" * 60_000, str(one)) for one in range(200)])
    options = IngestOptions(query="select a, b from names", host_memory=32 << 20)
    batches = list(queries.record_batches(shop, "sqlite", options))
    assert sum(map(len, batches)) == 200
    most = options.host_memory // queries.BATCH_SHARE
    assert max(batch.nbytes for batch in batches) < most + 2 * LONGEST_VALUE


def test_messages_are_short(shop: Path) -> None:
    long = "n" * 5_000
    with closing(sqlite3.connect(shop)) as database, database:
        database.execute(f'create table "{long}" (a)')
        database.execute("create table odd (a, b)")
        database.execute("insert into odd values (cast(x'ff' || ? as text), 1)", ["y" * 5_000])
    for query in (f"select {long}", f'select a as "{long}", a as "{long}" from follows', "select a, b from odd", None):
        with pytest.raises(InputError) as caught:
            edges_of(shop, query=query, string_ids=True)
        assert len(str(caught.value)) < len(str(shop)) + 700


def test_queries_are_for_databases(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2\n")
    with pytest.raises(InputError, match="--query is for sqlite, duckdb"):
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


@pytest.mark.parametrize("checksum", [b"\n" * 8, b"\x1f\x8b" * 4, b"\xff\xfe" * 4])
def test_duckdb_is_known_whatever_its_checksum(checksum: bytes, tmp_path: Path) -> None:
    (tmp_path / "any").write_bytes(checksum + b"DUCK" + bytes(8192))
    with pytest.raises(InputError, match="is a DuckDB database; --query says"):
        edges_of(tmp_path / "any")


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DuckDB database in a folder of its own."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path_factory.mktemp("duck") / "shop.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("create table e as select i as a, i * 3 % 7 as b, i / 2 as w from range(7) t(i)")
        database.execute("create table s as select 'n' || i as a, 'm' || i as b, 'z'::blob as c from range(5000) t(i)")
        database.execute("create view passwords as select * from read_csv('/etc/passwd')")
        database.execute("create table long as select 'x' as a, repeat('y', 12 << 20) as b, 1 as c")
    return path


def test_duckdb(duck: Path) -> None:
    assert edges_of(duck, query="select a, b from e order by a;")[0] == [(one, one * 3 % 7) for one in range(7)]
    weighted = edges_of(duck, query="select a as source, b as target, w as weight from e order by a", weights=True)[0]
    assert weighted[1] == (1, 3, 0.5)
    named = edges_of(duck, query="select a, c, b from s order by a desc -- last", string_ids=None, columns=("a", "b"))[
        0
    ]
    assert (len(named), named[0], named[4999]) == (5000, ("n999", "m999"), ("n0", "m0"))
    with pytest.raises(InputError, match="is a DuckDB database; --query says"):
        edges_of(duck)
    with pytest.raises(InputError, match="nowhere"):
        edges_of(duck, query="select * from nowhere")
    with pytest.raises(InputError, match="Could not convert string 'q' to INT32"):  # while rows are read
        edges_of(duck, query="select a, case when b = 'm4999' then 'q'::int else 1 end as b from s", string_ids=True)


@pytest.mark.parametrize(
    "query",
    [
        "copy e to 'other.csv'",
        "with x as (copy e to 'other.csv') select 1 as a, 2 as b",
        "insert into e values (1, 2, 3) returning a, b",
        "with x as (delete from e returning a, b) select a, b from x",
        "select 1 as a, 2 as b; select 3 as a, 4 as b",
        "attach 'other.duckdb'",
        "install httpfs",
        "load httpfs",
        "update extensions",
        "set threads = 1",
        "pragma threads = 1",
        "call enable_logging()",
        "select * from enable_logging(storage = 'file', storage_config = {'path': 'logs'})",
        "select * from read_csv('/etc/passwd')",
        "from '/etc/passwd'",
        "select content as a, 1 as b from read_text('/etc/passwd')",
        "select file as a, 1 as b from glob('/etc/*')",
        "select a, b from passwords",
        "select a, b from python_values",
        "export database 'other'",
        "select \ud800",
        "",
    ],
)
def test_a_query_of_duckdb_is_a_read(duck: Path, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python_values = pyarrow.table({"a": [1], "b": [2]})
    assert len(python_values) == 1
    before = duck.read_bytes()
    monkeypatch.chdir(duck.parent)
    with pytest.raises(InputError) as caught:
        edges_of(duck, query=query, string_ids=None, scratch=duck.parent)
    assert str(caught.value).startswith(f"{duck}: --query {query!r}: ")
    assert (os.listdir(duck.parent), duck.read_bytes()) == ([duck.name], before)


def test_files_are_open_to_a_query_by_intent(
    duck: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one's.csv", "two.csv", "many/three.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("a,b\n8,9\n")
    one, many = "select a, b from 'one''s.csv'", f"select a, b from '{tmp_path}/many/*.csv'"
    convert_it = "convert", duck, "--force", "g.h5", "--query"
    assert answered(capsys, *convert_it, one, "--query-reads", "one's.csv")["edges"] == 1
    assert answered(capsys, *convert_it, many, "--query-reads", "many", "--query-reads", "two.csv")["edges"] == 1
    assert convert(duck, "p.h5", query=one, query_reads=tmp_path / "one's.csv").edges == 1
    written = "with x as (copy e to 'many/four.csv') select 1 as a, 2 as b"
    for query in (one, "select a, b from 'two.csv'", f"select a, b from '{tmp_path}/many/../two.csv'", written):
        assert f"--query {query!r}" in refused(capsys, *convert_it, query, "--query-reads", "many")
    assert not Path("many/four.csv").exists()
    assert "--query-reads three.csv does not exist" in refused(capsys, *convert_it, one, "--query-reads", "three.csv")
    assert "--query-reads is for duckdb, and the format is csv" in refused(
        capsys, "convert", "two.csv", "h.h5", "--query-reads", "many"
    )


def test_values_of_duckdb_keep_to_the_budget(duck: Path) -> None:
    options: dict[str, Any] = {"string_ids": True, "host_memory": 32 << 20, "scratch": duck.parent}
    assert edges_of(duck, query="select a, b, c from long", columns=("a", "c"), **options)[0] == [("x", "1")]
    for query in ("select a, b from long", "select 'x' as a, repeat('y', 1 << 30) as b"):
        with pytest.raises(InputError, match=r"Out of Memory Error.*; give more --host-memory"):
            edges_of(duck, query=query, **options)
    longest = f"select repeat('x', {LONGEST_NAME}) as a, 'y' as b from range(3000)"
    batches = list(queries.record_batches(duck, "duckdb", IngestOptions(query=longest, host_memory=32 << 20)))
    assert sum(map(len, batches)) == 3000
    assert max(batch.nbytes for batch in batches) <= 2 * options["host_memory"] // queries.BATCH_SHARE
    with pytest.raises(InputError, match=f"row 0 .from 0.: a is empty, longer than {LONGEST_NAME} bytes"):
        edges_of(duck, query=longest.replace("repeat('x', ", "repeat('x', 9 + "), **options)


def test_a_query_of_duckdb_that_does_not_fit_goes_to_scratch_files(duck: Path) -> None:
    query = "select a, b from (select hash(i) % 99999 as a, i as b from range(1500000) t(i)) order by a desc, b"
    options = IngestOptions(query=query, host_memory=128 << 20, scratch=duck.parent, threads=2)
    batches = queries.record_batches(duck, "duckdb", options)
    first = next(batches)
    (folder,) = duck.parent.glob(".penstock-scratch-*")
    assert any(folder.iterdir())
    found = [first, *batches]
    ids = np.concatenate([batch.column(0).to_numpy() for batch in found]).astype(np.int64)
    assert len(ids) == 1_500_000
    assert (np.diff(ids) <= 0).all()
    assert os.listdir(duck.parent) == [duck.name]
