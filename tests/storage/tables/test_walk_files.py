"""Files of walks: what is written is what libraries read, whole or not at all."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.tables import formats
from penstock.storage.tables.columns import WriteOptions
from penstock.storage.tables.walk_files import WrittenWalks, save_walks

NONE = 2**32 - 1
BLOCKS = [np.array([[0, 1, 2], [2, NONE, NONE]], np.uint32), np.array([[1, 0, NONE]], np.uint32)]
NAMES = np.array(["rome", "oslo", "a,b"], STRINGS)
NUMBERS = np.array([7, 5_000_000_000, 9], np.uint64)
WALKS = [[0, 1, 2], [2], [1, 0]]


def written(names: Any, blocks: Any = None) -> WrittenWalks:
    return WrittenWalks(iter(BLOCKS) if blocks is None else blocks, 3, 3, np.dtype(np.uint32), names)


def lists(table: Any) -> list[list[Any]]:
    return [list(walk) for walk in table["walk"].to_pylist()]


def steps(table: Any) -> list[list[Any]]:
    rows = zip(*(table[f"step_{step}"].to_pylist() for step in range(3)), strict=True)
    return [[one for one in row if one not in (None, "")] for row in rows]


def lines(text: str) -> list[list[Any]]:
    return [[int(one) if one.isdigit() else one for one in line.split(" ")] for line in text.splitlines()]


READERS: dict[str, Callable[[Path], list[list[Any]]]] = {
    "parquet": lambda path: lists(pyarrow.parquet.read_table(path)),
    "feather": lambda path: lists(pyarrow.feather.read_table(path)),
    "txt": lambda path: lines(path.read_text()),
    "txt.gz": lambda path: lines(gzip.decompress(path.read_bytes()).decode()),
    "csv": lambda path: steps(pyarrow.csv.read_csv(path)),
    "csv.gz": lambda path: steps(pyarrow.csv.read_csv(path)),
    "npy": lambda path: [[int(one) for one in row if one >= 0] for row in np.load(path)],
}


@pytest.mark.parametrize("format", READERS)
@pytest.mark.parametrize("names", [None, NUMBERS, NAMES], ids=["vertices", "numbers", "names"])
def test_files(format: str, names: NDArray[Any] | None, tmp_path: Path) -> None:
    path = tmp_path / f"walks.{format}"
    assert formats.format_of(path, None, formats.WALKS) == format
    if format == "npy" and names is NAMES:
        with pytest.raises(InputError, match="ids are strings"):
            save_walks(written(names), path, format, WriteOptions(2), force=False)
        assert list(tmp_path.iterdir()) == []
        return
    save_walks(written(names), path, format, WriteOptions(2), force=False)
    ids = list(range(3)) if names is None else names.tolist()
    assert READERS[format](path) == [[ids[v] for v in walk] for walk in WALKS]


def test_names_with_spaces_are_no_words(tmp_path: Path) -> None:
    names = np.array(["rome", "new york", "b"], STRINGS)
    with pytest.raises(InputError, match="spaces in ids"):
        save_walks(written(names), tmp_path / "w.txt", "txt", WriteOptions(), force=False)
    save_walks(written(names), tmp_path / "w.csv", "csv", WriteOptions(), force=False)
    assert READERS["csv"](tmp_path / "w.csv")[2] == ["new york", "rome"]


@pytest.mark.parametrize("format", ["parquet", "txt", "npy"])
def test_a_file_is_whole_or_not_there(format: str, tmp_path: Path) -> None:
    def failing() -> Generator[NDArray[Any], None, None]:
        yield BLOCKS[0]
        raise InputError("the graph is gone")

    with pytest.raises(InputError, match="the graph is gone"):
        save_walks(written(None, failing()), tmp_path / f"w.{format}", format, WriteOptions(), force=False)
    assert list(tmp_path.iterdir()) == []


def test_matrices_are_as_narrow_as_ids(tmp_path: Path) -> None:
    for names, kind in ((NUMBERS, np.int64), (np.array([4, 5, 6], np.uint64), np.int32)):
        save_walks(written(names), tmp_path / "w.npy", "npy", WriteOptions(), force=True)
        assert np.load(tmp_path / "w.npy").dtype == kind


def test_other_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"no format of walks ends in '\.xyz'"):
        formats.format_of(Path("walks.xyz"), None, formats.WALKS)
