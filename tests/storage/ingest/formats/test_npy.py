"""NumPy edge arrays: any layout of numbers reads back, in pieces; objects are never loaded."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from penstock.storage.base.errors import InputError
from support.reading import edges_of, small_blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


def saved(folder: Path, array: Any) -> Path:
    path = folder / "edges.npy"
    np.save(path, array, allow_pickle=True)
    return path


KINDS = st.sampled_from(["u1", "<i4", ">i4", "<u8", "<f8", ">f4"])
SHAPES = st.tuples(st.integers(0, 40), st.sampled_from([2, 3]))


@given(data=st.data(), kind=KINDS, shape=SHAPES, fortran=st.booleans())
def test_arrays_read_back(
    data: st.DataObject, kind: str, shape: tuple[int, int], fortran: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    array = data.draw(arrays.arrays(np.dtype(kind), shape, elements=st.integers(0, 200)))
    path = saved(tmp_path_factory.mktemp("npy"), np.asfortranarray(array) if fortran else array)
    assert edges_of(path)[0] == [tuple(row) for row in array.tolist()]
    assert edges_of(path, weights=False)[0] == [tuple(row) for row in array[:, :2].tolist()]
    assert edges_of(path, columns=(1, 0))[0] == [tuple(row) for row in array[:, 1::-1].tolist()]


def test_records_read_back(tmp_path: Path) -> None:
    rows = [(2**63 + i, i, i / 2) for i in range(30)]
    path = saved(tmp_path, np.array(rows, [("from", "<u8"), ("to", "<i2"), ("length", "<f4")]))
    found, source = edges_of(path)
    assert found == rows
    assert source.bytes_done == source.total_bytes
    assert edges_of(path, columns=("to", "from"))[0] == [(row[1], row[0]) for row in rows]


def test_a_compressed_array_reads_alike(tmp_path: Path) -> None:
    path = saved(tmp_path, np.arange(60).reshape(20, 3))
    packed = tmp_path / "edges.npy.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert edges_of(packed)[0] == edges_of(path)[0]
    packed.write_bytes(gzip.compress(saved(tmp_path, np.asfortranarray(np.arange(8).reshape(4, 2))).read_bytes()))
    with pytest.raises(InputError, match="Fortran order"):
        edges_of(packed)


@pytest.mark.parametrize(
    ("array", "options", "words"),
    [
        (np.array([[1, -2]]), {}, r"row 0 .*column 1 -2 is negative"),
        (np.array([[1.0, 2.0], [3.0, 2.5]]), {}, r"row 1 .*column 1 2\.5 is not a whole number"),
        (np.array([[1.0, np.nan]]), {}, r"is missing \(nan\)"),
        (np.array([[1.0, 2.0, np.inf]]), {}, r"row 0 .*column 2 is inf"),
        (np.array([[1, "x"]], object), {}, "pickled Python objects"),
        (np.array([["1", "2"]]), {}, r"edges are \(m, 2\)"),
        (np.arange(4), {}, r"edges are \(m, 2\)"),
        (np.array([[1, 2]]), {"weights": True}, "no column 2; it has 0, 1"),
        (np.array([(1, 2)], [("a", "u1"), ("b", "u1")]), {"columns": ("a", "c")}, "no column 'c'; it has a, b"),
        (np.array([(1, "x")], [("a", "u1"), ("b", "U1")]), {}, "column b holds <U1"),
    ],
)
def test_bad_values_are_named(tmp_path: Path, array: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=rf"edges\.npy.*{words}"):
        edges_of(saved(tmp_path, array), **options)


@pytest.mark.parametrize("cut", [3, 40, 200])
def test_a_truncated_file_is_an_error(tmp_path: Path, cut: int) -> None:
    path = saved(tmp_path, np.arange(60).reshape(30, 2))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"truncated|no readable NumPy array"):
        edges_of(path, "npy")
