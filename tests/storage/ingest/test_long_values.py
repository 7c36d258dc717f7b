"""Values as long as a file: refused in linear time, before they are held, with a short message; or read.

Sizes are such that what takes quadratic or exponential time does not end here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from penstock.engine import convert
from penstock.storage.base.errors import InputError
from penstock.storage.encoding.string_array import LONGEST_NAME
from penstock.storage.ingest.core import arrow
from penstock.storage.ingest.core.source import LONGEST_VALUE, IngestOptions
from penstock.storage.ingest.formats import metis
from penstock.storage.ingest.open_source import open_source
from support.reading import edges_of, small_blocks

LONG = LONGEST_VALUE - 100
"""Characters of a value that fits a line."""
DIGITS = "9" * 5000
"""More digits than Python converts."""
POOL = pa.proxy_memory_pool(pa.default_memory_pool())
"""Counts what is allocated in it; it outlives its test, since what was allocated there may be freed later."""


def _npy(kind: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(2, kind), allow_pickle=False)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "options", "reason"),
    [
        ("a.txt", f"1 2\n1 {'1' * LONG}x\n", {}, "target '1+ ...' is not a number"),
        ("a.txt", f"1 2\n1 {'1' * LONG}\n", {}, "target '1+ ...' is larger than 2.64"),
        ("a.txt", f"1 2 3\n1 2 {'1.' * (LONG // 2)}\n", {"weights": True}, "weight '.* ...' is not a number"),
        ("a.txt", f"1 2\n1 {'x' * LONG}\n", {"string_ids": True}, f"is longer than {LONGEST_NAME} bytes"),
        ("a.txt", "1" * (20 << 20), {}, f"a line is longer than {LONGEST_VALUE} bytes"),
        ("a.txt", f"from to {'n' * LONG}\n1 2 3\n", {"columns": ("from", "x")}, "no column is named 'x'"),
        ("a.csv", f"a,b\n1,2\n3,{'4' * LONG}\n", {}, "target '4+ ...' is larger than 2.64"),
        ("a.csv", f"a,b\n1,2\n3,{'4' * LONG},5\n", {}, "it has 3 columns, and the first line 2"),
        ("a.csv", f'a,b\n1,2\n"{"," * LONG}",3\n', {}, "source ',+ ...' is not a number"),
        ("a.csv", f'a,b\n1,2\n3,"{"4" * LONG}"5\n', {}, "text stands behind a closing quote"),
        ("a.csv", 'a,b\n1,2\n3,"' + "4\n" * (10 << 20), {}, "a quote is opened and not closed"),
        ("a.csv", f"{'n' * 60_000},y,z,w\n1,2,3,4\n", {}, "columns are n+ ...,* and which of them are source"),
        ("a.mtx", f"%%MatrixMarket {'m' * LONG} x y z\n", {}, "'m+ ...' is no graph"),
        ("a.mtx", f"%%MatrixMarket matrix coordinate real general\n{DIGITS} 3 1\n1 2 3\n", {}, "larger than 2.64 - 1"),
        (
            "a.mtx",
            f"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 {'3' * LONG}\n",
            {},
            "too large for a 64-bit float",
        ),
        ("a.gr", f"p sp {DIGITS} 1\na 1 2 3\n", {}, "no graph has 2.64 vertices"),
        ("a.gr", f"p sp 3 1\na 1 {'2' * LONG} 3\n", {}, "target '2+ ...' is larger than 2.64"),
        ("a.graph-txt", f"{DIGITS}\n1 2 3\n", {}, "no graph has so many vertices"),
        ("a.graph-txt", "7" * (20 << 20), {}, "its first line is longer than"),
        ("a.graph", "%" * (20 << 20), {}, "its first line is longer than"),
        ("a.graph", f"2 1\n{'2' * LONG}\n1\n", {}, "neighbor '2+ ...' is larger than 2.64|hold no two fields"),
        ("a.adj", "1: " + "9" * (20 << 20), {}, "hold no two fields"),
        ("a.adj", f"1: 2 {DIGITS}\n", {}, "neighbor '9+ ...' is larger than 2.64"),
        ("a.npy", _npy([("n" * 3000, "u4"), ("m" * 3000, "u4")]), {"columns": ("x", "y")}, "has no column 'x'"),
        ("a.npy", _npy([("n" * 3000, "f8"), ("m" * 3000, "i8")])[:-16] + b"\xff" * 16, {}, "column n+ ... is missing"),
        ("a.npy", b"\x93NUMPY\x01\0\xff\xff" + b"x" * 65535, {}, "is no readable NumPy array"),
    ],
)
def test_a_long_value_is_refused(
    name: str, content: str | bytes, options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=reason) as caught:
        edges_of(path, **options)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", f"{'# ' * 2000}x\n1 2\n"),
        ("a.txt", f"{'#' + ' ' * 60_000}\n1 2\n"),
        ("a.txt", f"from to a{'(' * (LONG)}\n1 2 3\n"),
        ("a.csv", f"from,to,a{'(' * 60_000}\n1,2,3\n"),
        ("a.csv", f"graph{' ' * 60_000},b\n1,2\n"),
        ("a.csv", f'a,b,c\n1,2,"{"x,{}," * 1000}"\n'.replace("{}", '""')),
        ("a.csv", f"from,to,c\n1,2,{'x' * LONG}\n"),
        ("a.mtx", f"%%MatrixMarket matrix coordinate pattern general\n%{'x' * LONG}\n2 3 1\n2 3\n"),
    ],
)
def test_a_long_value_that_is_not_taken_is_passed_over(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert edges_of(tmp_path / name, columns=None if name == "a.mtx" else (0, 1))[0] == [(1, 2)]


@pytest.mark.parametrize(
    ("name", "head", "edges"),
    [
        ("a.csv", "from,to\n", "1,2\n2,3\n"),
        ("a.txt", "from to\n", "1 2\n2 3\n"),
        ("a.graph", "4 2\n\n3\n2 4\n3\n", ""),
        ("a.graph-txt", "4\n\n2\n3\n\n", ""),
    ],
)
def test_many_comments_are_passed_once(
    name: str, head: str, edges: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    lines: list[int] = []

    def counted(block: Any, at: int = 0) -> Iterator[tuple[int, str, int]]:
        for line in metis_lines(block, at):
            lines.append(line[0])
            yield line

    metis_lines = metis.lines_of
    monkeypatch.setattr(metis, "lines_of", counted)
    (tmp_path / name).write_text("# a comment\n" * 3000 + head + edges)
    assert edges_of(tmp_path / name)[0] == [(1, 2), (2, 3)]
    assert len(lines) <= 3001
    (tmp_path / name).write_text("# a comment\n" * 3000 + head + edges + "x,y\n")
    with pytest.raises(InputError, match=rf"line {3001 + (head + edges).count(chr(10))}: "):
        edges_of(tmp_path / name)


def test_names_behind_many_comments_are_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    for name, edge in (("a.csv", "ann,bo"), ("a.txt", "ann bo")):
        (tmp_path / name).write_text("# a comment\n" * 3000 + edge + "\n")
        assert edges_of(tmp_path / name, string_ids=None, header=False)[0] == [("ann", "bo")]


@pytest.fixture
def long_text(tmp_path: Path) -> pa.Table:
    """A table with one value of 40 MB."""
    return pa.table({"a": ["x", "z" * 40_000_000], "b": ["y", "y"]})


def test_text_of_a_row_group_fits_the_budget(long_text: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(long_text, path)
    reason = "row group 0 has a column of text of 38.1 MiB, which is decoded as a whole; give --host-memory 153MiB"
    with pytest.raises(InputError, match=reason):
        edges_of(path, string_ids=True, host_memory=100 << 20)
    with pytest.raises(InputError, match=f"row 1 .*longer than {LONGEST_NAME} bytes"):
        edges_of(path, string_ids=True, host_memory=200 << 20)
    (tmp_path / "e.txt").write_text("0 1\n")
    pyarrow.parquet.write_table(pa.table({"id": [0, 1], "name": long_text["a"]}), path)
    with pytest.raises(InputError, match=reason.partition(";")[0]):
        convert(tmp_path / "e.txt", tmp_path / "g.h5", vertices=path, host_memory=100 << 20)


def test_rows_that_repeat_a_long_value_come_in_short_batches(tmp_path: Path) -> None:
    path, memory = tmp_path / "a.parquet", 32 << 20
    names = ["k" * LONGEST_NAME, "n"] * 500
    pyarrow.parquet.write_table(pa.table({"a": names, "b": names[::-1]}), path, row_group_size=900)
    batches = list(arrow.parquet_batches(path, ["a", "b"], 1024, memory))
    assert sum(map(len, batches)) == 1000
    assert max(batch.nbytes for batch in batches) <= memory // arrow.BATCH_SHARE
    assert edges_of(path, string_ids=True, host_memory=memory)[0][:2] == [(names[0], "n"), ("n", names[0])]


@pytest.mark.parametrize(
    ("write", "suffix"), [(pyarrow.parquet.write_table, "parquet"), (pyarrow.feather.write_feather, "feather")]
)
def test_text_of_numbers_and_lists_is_no_text(write: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    write(pa.table({"a": [["x"]], "b": [b"y"], "c": ["z"]}), path)
    with pytest.raises(InputError, match=r"columns a, b cannot be taken: .* list.*; cast them"):
        edges_of(path, string_ids=True, columns=("a", "b"))


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_record_batches_fit_the_budget(compression: str, long_text: pa.Table, tmp_path: Path) -> None:
    """A compressed one says how long it is, and is refused before it is decoded."""
    path = tmp_path / "a.feather"
    pyarrow.feather.write_feather(long_text, path, compression=compression)
    before = pa.default_memory_pool()
    pa.set_memory_pool(POOL)
    try:
        with pytest.raises(
            InputError, match=r"it has record batches of 38.1 MiB, which is decoded as a whole; give --h"
        ):
            edges_of(path, string_ids=True, host_memory=100 << 20)
    finally:
        pa.set_memory_pool(before)
    assert (POOL.max_memory() or 0) < 1 << 20


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_dictionaries_of_record_batches_count(compression: str, tmp_path: Path) -> None:
    path, names = tmp_path / "a.feather", pa.array([f"{number}" + "x" * 100 for number in range(50_000)])
    table = pa.table({"source": names.dictionary_encode(), "target": names.dictionary_encode()})
    pyarrow.feather.write_feather(table, path, compression=compression)
    with pytest.raises(InputError, match=r"it has record batches of 10\.\d MiB"):
        edges_of(path, string_ids=True, host_memory=40 << 20)
    edges, _ = edges_of(path, string_ids=True, host_memory=100 << 20)
    assert len(edges) == 50_000


def test_a_damaged_arrow_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.feather"
    table = pa.table({"source": np.arange(20), "target": np.arange(20)})
    pyarrow.feather.write_feather(table, path, compression="zstd")
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            edges_of(path)
        except InputError:
            refused += 1
    assert refused > 100


def test_columns_of_long_names_are_told_in_short(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"from to {'n' * LONG}\n1 2 3\n")
    source = open_source([tmp_path / "a.txt"], None, IngestOptions())
    assert sum(map(len, source.batches())) == 1
    assert len(source.columns_taken[0].told()) < 400  # type: ignore[attr-defined]
