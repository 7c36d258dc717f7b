"""Rows of features: those that were saved, whatever the format and the budget, in this process and in others."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from penstock.engine import FeatureRows
from penstock.storage.base.errors import BudgetError, InputError, RunError

VALUES = np.random.default_rng(7).random((3000, 24), np.float32)
ROWS = np.random.default_rng(8).integers(0, len(VALUES), 2000)


def saved(values: np.ndarray, path: Path) -> Path:
    """Save values in the format that a name says."""
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["other"] = np.arange(3)
            file["plain"] = values
            file.create_dataset("packed", data=values, chunks=(100, 24), compression="gzip")
    else:
        lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 24)
        columns = {"vector": lists, "first": values[:, 0], "second": values[:, 1]}
        pq.write_table(pa.table(columns), path, row_group_size=700)
    return path


@pytest.mark.parametrize("budget", [None, "266KiB"])
@pytest.mark.parametrize(
    ("file", "name", "columns"),
    [
        ("x.npy", None, slice(None)),
        ("x.h5", "plain", slice(None)),
        ("x.h5", "packed", slice(None)),
        ("x.parquet", "vector", slice(None)),
        ("x.parquet", ["first", "second"], slice(2)),
        ("x.parquet", "second", 1),
    ],
)
def test_rows_are_those_that_were_saved(tmp_path: Path, file: str, name: Any, columns: Any, budget: str | None) -> None:
    features = FeatureRows(saved(VALUES, tmp_path / file), name, host_memory=budget, scratch=tmp_path)
    expected = VALUES[:, columns]
    assert (features.shape, features.dtype, len(features)) == (expected.shape, expected.dtype, 3000)
    for rows in (ROWS, ROWS[:7], ROWS[::-1].tolist(), [], [5, 5, 2999, 5]):
        np.testing.assert_array_equal(features[rows], expected[np.asarray(rows, int)])
    assert (budget is None) == (len(features._used) == len(features._slots))
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(again[ROWS], expected[ROWS])


def test_what_was_decoded_is_removed(tmp_path: Path) -> None:
    path = saved(VALUES, tmp_path / "x.parquet")
    features = FeatureRows(path, "first", scratch=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    del features
    gc.collect()
    assert list(tmp_path.iterdir()) == [path]


def test_rows_that_are_kept_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = FeatureRows(saved(VALUES, tmp_path / "x.npy"), host_memory="300KiB")
    read: list[int] = []
    monkeypatch.setattr(features, "_read", lambda blocks, slots: read.extend(blocks.tolist()))
    per_block = features._rows
    for block in (0, 1, 2, 0, 1):
        features[[block * per_block]]
    assert read == [0, 1, 2]
    room = len(features._used)
    features[per_block * np.arange(1, room)]  # all but one place, so that the block used longest ago may stay
    assert read == [0, 1, 2, *range(3, room)]
    features[[per_block * room]]
    features[[per_block * np.int64(1)]]
    assert read[-1] == room  # block 0 has made room, not block 1


def test_a_failed_read_leaves_no_wrong_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = FeatureRows(saved(VALUES, tmp_path / "x.npy"), host_memory="300KiB")
    features[ROWS[:5]]

    def fail(*_: Any) -> None:
        raise RunError("the disk failed")

    with monkeypatch.context() as broken:
        broken.setattr(features._file, "read", fail)
        with pytest.raises(RunError, match="the disk failed"):
            features[ROWS]
    np.testing.assert_array_equal(features[ROWS], VALUES[ROWS])


def test_refusals(tmp_path: Path) -> None:
    features = FeatureRows(saved(VALUES, tmp_path / "x.npy"))
    for rows, message in (([3000], "has no row 3000, but rows 0 to 2999"), ([-1], "no row -1"), (0.5, "float64")):
        with pytest.raises(InputError, match=message):
            features[rows]
    with pytest.raises(BudgetError, match="has no room for where 72 blocks of rows are"):
        FeatureRows(tmp_path / "x.npy", host_memory=200)
    with pytest.raises(InputError, match=r"nothing.npy cannot be read: No such file"):
        FeatureRows(tmp_path / "nothing.npy")
    np.save(tmp_path / "fortran.npy", np.asfortranarray(VALUES))
    (tmp_path / "short.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:1000])
    np.save(tmp_path / "words.npy", np.array([["a"], [None]], object))
    for name, message in (("fortran", "ascontiguousarray"), ("short", "no array of NumPy's"), ("words", "no array")):
        with pytest.raises(InputError, match=message):
            FeatureRows(tmp_path / f"{name}.npy")
    saved(VALUES, tmp_path / "x.h5")
    with pytest.raises(InputError, match="name one of other, packed, plain"):
        FeatureRows(tmp_path / "x.h5")
    (tmp_path / "no.h5").write_bytes(b"no")
    with pytest.raises(InputError, match=r"no\.h5"):
        FeatureRows(tmp_path / "no.h5")
    pq.write_table(pa.table({"text": ["a", "b"], "gap": [1, None]}), tmp_path / "bad.parquet")
    for column in ("text", "gap"):
        with pytest.raises(InputError, match=f"the column {column} is not numbers"):
            FeatureRows(tmp_path / "bad.parquet", column, scratch=tmp_path)
    with pytest.raises(InputError, match="has no column 'none'; there is text, gap"):
        FeatureRows(tmp_path / "bad.parquet", "none")
    assert not list(tmp_path.glob(".penstock*"))


@pytest.mark.parametrize("lists", [[[1.0], [2.0, 3.0, 4.0]], [[1.0, None], [2.0, 3.0]], [[], []]])
def test_lists_of_several_lengths_or_with_gaps_are_no_rows(tmp_path: Path, lists: list[list[float | None]]) -> None:
    pq.write_table(pa.table({"x": pa.array(lists, pa.list_(pa.float32()))}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="the column x is not numbers, or lists of one length, without gaps"):
        FeatureRows(tmp_path / "x.parquet", scratch=tmp_path)


def test_only_arrays_of_numbers_have_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "text.npy", np.array(["a", "b"]))
    with (tmp_path / "several.npy").open("wb") as file:
        np.savez(file, a=VALUES)
    for name in ("text", "several"):
        with pytest.raises(InputError, match="has no rows of numbers"):
            FeatureRows(tmp_path / f"{name}.npy")


def test_no_rows_are_none(tmp_path: Path) -> None:
    assert FeatureRows(saved(VALUES[:0], tmp_path / "x.npy"))[[]].shape == (0, 24)


def test_another_process_does_not_take_another_file(tmp_path: Path) -> None:
    path = saved(VALUES, tmp_path / "x.npy")
    sent = pickle.dumps(FeatureRows(path))
    saved(np.tile(VALUES, (2, 1)), path)
    with pytest.raises(InputError, match="another file now"):
        pickle.loads(sent)
    path.unlink()
    with pytest.raises(InputError, match=r"x\.npy cannot be read: No such file"):
        pickle.loads(sent)
