"""Result tables: what is written in any format is read back the same; a full disk is one error and leaves nothing."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.threads import ROWS
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.results.result_tables import bytes_of, write
from penstock.storage.tables.columns import Column, WriteOptions
from support.faults import python

KINDS = ["u1", "u2", "u4", "u8", "i4", "i8", "f4", "f8"]
Arrays = dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@st.composite
def tables(draw: st.DrawFn, strings: bool = True) -> Arrays:
    """A column of ids and one or two of values, some of which may be absent."""
    rows = draw(st.integers(0, 20))
    columns: Arrays = {"vertex": (np.arange(rows, dtype=np.uint64) * draw(st.sampled_from([1, 3])), None)}
    for name in draw(st.sampled_from([["level"], ["level", "parent"]])):
        values: NDArray[Any]
        if strings and draw(st.integers(0, 4)) == 0:
            values = np.array(draw(st.lists(TEXTS, min_size=rows, max_size=rows)), STRINGS)
        else:
            kind = np.dtype(draw(st.sampled_from(KINDS)))
            finite = {"allow_nan": False, "allow_infinity": False} if kind.kind == "f" else {}
            values = draw(arrays.arrays(kind, rows, elements=arrays.from_dtype(kind, **finite)))
        present = draw(st.one_of(st.none(), arrays.arrays(np.bool_, rows)))
        columns[name] = values, present
    return columns


def save(path: Path, columns: Arrays, **options: Any) -> None:
    write(path, {name: Column.of(*column) for name, column in columns.items()}, **options)


def expected(columns: Arrays) -> dict[str, list[Any]]:
    """Values by column, None where absent."""
    return {
        name: [value if present is None or present[row] else None for row, value in enumerate(values.tolist())]
        for name, (values, present) in columns.items()
    }


@settings(max_examples=25)
@given(columns=tables())
def test_parquet_comes_back(columns: Arrays, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "r.parquet"
    save(path, columns)
    table = pyarrow.parquet.read_table(path)
    assert table.to_pydict() == expected(columns)
    kinds = {name: str(table.schema.field(name).type) for name in columns}
    for name, (values, _) in columns.items():
        assert kinds[name] == ("string" if values.dtype.kind == "T" else values.dtype.name.replace("float", "")) or (
            values.dtype.kind == "f"
        )


@settings(max_examples=25)
@given(columns=tables())
def test_csv_comes_back(columns: Arrays, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "r.csv"
    save(path, columns)
    with path.open(newline="", encoding="utf-8") as file:
        heads, *rows = list(csv.reader(file))
    assert heads == list(columns)
    assert len(rows) == len(columns["vertex"][0])
    for place, (name, (values, _)) in enumerate(columns.items()):
        for row, value in zip(rows, expected(columns)[name], strict=True):
            if value is None:
                assert row[place] == ""
            elif values.dtype.kind == "T":
                assert row[place] == value
            else:
                assert values.dtype.type(row[place]) == values.dtype.type(value)


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.tsv", "\t")])
def test_names_of_columns_come_back(name: str, delimiter: str, tmp_path: Path) -> None:
    names = ["vertex", '"x"', "two\nlines", "a,b", "a\tb", "é"]
    save(tmp_path / name, {name: (np.arange(3), None) for name in names})
    with (tmp_path / name).open(newline="", encoding="utf-8") as file:
        heads, *rows = list(csv.reader(file, delimiter=delimiter))
    assert heads == names
    assert rows == [[str(row)] * len(names) for row in range(3)]


@settings(max_examples=25)
@given(columns=tables())
def test_hdf5_comes_back(columns: Arrays, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "r.h5"
    save(path, columns)
    with h5py.File(path) as file:
        assert set(file) == set(columns)
        for name, (values, _) in columns.items():
            found = file[name]
            if values.dtype.kind == "T":
                assert found.asstr()[()].tolist() == values.tolist()
            else:
                assert found.dtype == values.dtype
                assert found[()].tolist() == values.tolist()


@settings(max_examples=25)
@given(columns=tables())
def test_npy_comes_back(columns: Arrays, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "r.npy"
    save(path, columns)
    found, values, ids = np.load(path, allow_pickle=False), columns["level"][0], columns["vertex"][0]
    if not np.array_equal(ids, np.arange(len(ids))):
        assert found.dtype.names == ("vertex", "level")
        assert np.array_equal(found["vertex"], ids)
        found = found["level"]
    if values.dtype.kind == "T":
        # NumPy's strings of one width cannot tell trailing zeros; there are none in ids
        assert found.tolist() == values.tolist()
    else:
        assert found.dtype == values.dtype
        assert found.tolist() == values.tolist()


@settings(max_examples=25)
@given(columns=tables(strings=False))
def test_graphalytics_comes_back(columns: Arrays, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "r.txt"
    save(path, columns, format="graphalytics")
    values = columns["level"][0]
    lines = [line.split() for line in path.read_text().splitlines()]
    assert [int(vertex) for vertex, _ in lines] == columns["vertex"][0].tolist()
    for (_, text), value in zip(lines, expected(columns)["level"], strict=True):
        if value is None:
            assert text == "9223372036854775807"
        else:
            assert values.dtype.type(text) == values.dtype.type(value)


def many_rows() -> Arrays:
    """More rows than a thread converts at once."""
    random = np.random.default_rng(3)
    level = random.integers(0, 30, 300_001).astype(np.uint32)
    return {
        "vertex": (np.arange(300_001) * 2, None),
        "level": (level, level != 3),
        "rank": (random.random(300_001), None),
    }


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_stay_in_order_whatever_the_threads(threads: int, tmp_path: Path) -> None:
    columns = many_rows()
    (vertex, _), (level, present), (rank, _) = columns.values()
    assert present is not None
    seen: list[int] = []
    names = ("r.csv", "r.parquet", "r.h5", "r.npy", "r.txt")
    for name in names:
        options = WriteOptions(threads, seen.append)
        save(tmp_path / name, columns, format="graphalytics" if name == "r.txt" else None, options=options)
        assert 0 < seen[-1] <= (tmp_path / name).stat().st_size
    table: Any = pyarrow.csv.read_csv(tmp_path / "r.csv")
    for table in (pyarrow.csv.read_csv(tmp_path / "r.csv"), pyarrow.parquet.read_table(tmp_path / "r.parquet")):
        assert np.array_equal(table["vertex"].to_numpy(), vertex)
        assert np.array_equal(table["rank"].to_numpy(), rank)
        assert np.array_equal(table["level"].is_valid().to_numpy(), present)
        assert np.array_equal(table["level"].fill_null(3).to_numpy(), level)
    with h5py.File(tmp_path / "r.h5") as file:
        assert np.array_equal(file["level"][()], level)
        assert np.array_equal(file["rank"][()], rank)
    assert np.array_equal(np.load(tmp_path / "r.npy")["level"], level)
    assert np.array_equal(np.load(tmp_path / "r.npy")["vertex"], vertex)
    lines = (tmp_path / "r.txt").read_text().splitlines()
    absent = "9223372036854775807"
    texts = [str(value) if there else absent for value, there in zip(level.tolist(), present.tolist(), strict=True)]
    assert lines == [f"{one} {text}" for one, text in zip(vertex.tolist(), texts, strict=True)]


def test_the_bytes_of_some_formats_are_known_before(tmp_path: Path) -> None:
    columns = {name: Column.of(*column) for name, column in many_rows().items()}
    assert bytes_of(Path("r.npy"), columns) == (8 + 4) * 300_001
    places = {"vertex": Column.of(np.arange(300_001)), "level": columns["level"]}
    assert bytes_of(Path("r.npy"), places) == 4 * 300_001
    assert bytes_of(Path("r.h5"), columns) == (8 + 4 + 8) * 300_001
    assert bytes_of(Path("r.csv"), columns) is None
    assert bytes_of(Path("r.npy"), columns, "parquet") is None
    names = Column.of(np.array(["a"], STRINGS))
    assert bytes_of(Path("r.npy"), {"vertex": names, "component": names}) is None
    for name in ("r.npy", "r.h5"):
        write(tmp_path / name, columns)
        assert 0 <= (tmp_path / name).stat().st_size - (bytes_of(tmp_path / name, columns) or 0) < 10_000


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.h5", "r.npy", "r.txt"])
def test_an_interrupted_write_leaves_what_was_there(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("the old one")

    def interrupt(size: int) -> None:
        if size > 100_000:
            raise KeyboardInterrupt

    form = "graphalytics" if name == "r.txt" else None
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / name, many_rows(), force=True, format=form, options=WriteOptions(2, interrupt))
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "the old one"


def test_a_column_that_cannot_be_read_ends_the_write(tmp_path: Path) -> None:
    def read(first: int, last: int) -> Any:
        if first >= ROWS:
            raise RunError("the ids are damaged")
        return np.arange(first, last), None

    columns = {name: Column(np.dtype(np.int64), 3 * ROWS, lambda: read) for name in ("vertex", "level")}
    for name in ("r.csv", "r.parquet", "r.h5", "r.npy"):
        with pytest.raises(RunError, match="the ids are damaged"):
            write(tmp_path / name, columns)
    assert list(tmp_path.iterdir()) == []


FULL = """
import sys
from pathlib import Path
import numpy as np
from penstock.storage.base.errors import RunError
from penstock.storage.tables.columns import Column
from penstock.storage.tables.columns import Column
from penstock.storage.results.result_tables import write
random = np.random.default_rng(1)
columns = {"vertex": Column.of(np.arange(200_000)), "rank": Column.of(random.random(200_000))}
for name in sys.argv[2:]:
    try:
        write(Path(sys.argv[1]) / name, columns, force=True, format="graphalytics" if name.endswith("txt") else None)
        print("written")
    except RunError as error:
        print(error)
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("room", [0, 5000, 1_000_000])
def test_a_full_disk_is_one_error_and_leaves_what_was_there(room: int, tmp_path: Path) -> None:
    names = ["r.csv", "r.parquet", "r.h5", "r.npy", "r.txt"]
    (tmp_path / "r.csv").write_text("the old one")
    child = python(FULL, str(tmp_path), *names, file_bytes=room)
    assert child.stderr == ""
    assert child.returncode == 0
    said = child.stdout.splitlines()
    assert len(said) == len(names)
    for name, line in zip(names, said, strict=True):
        assert f"{name} could not be written: File too large; free space and retry" in line
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.csv"]
    assert (tmp_path / "r.csv").read_text() == "the old one"


def test_a_disk_that_fails_at_the_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.storage.base.atomic.flush", fail)
    for name in ("r.csv", "r.parquet", "r.h5", "r.npy"):
        with pytest.raises(RunError, match="No space left"):
            save(tmp_path / name, {"vertex": (np.arange(3), None), "x": (np.arange(3), None)})
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no format of answers"):
        write(tmp_path / "r.xlsx", {})
