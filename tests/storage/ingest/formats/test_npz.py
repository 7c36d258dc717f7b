"""scipy's sparse matrices: every layout reads back as scipy wrote it, and damage is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from support.reading import edges_of, small_blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


def saved(folder: Path, matrix: Any, *, compressed: bool = True) -> Path:
    path = folder / "matrix.npz"
    scipy.sparse.save_npz(path, matrix, compressed=compressed)
    return path


@given(
    rows=st.integers(1, 30),
    columns=st.integers(1, 30),
    seed=st.integers(0, 999),
    layout=st.sampled_from(["csr", "csc", "coo"]),
    compressed=st.booleans(),
    kind=st.sampled_from([np.float64, np.float32, np.int64, np.uint8]),
)
def test_matrices_read_back(
    rows: int,
    columns: int,
    seed: int,
    layout: str,
    compressed: bool,
    kind: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    random = np.random.default_rng(seed)
    dense = random.integers(0, 9, (rows, columns)) * (random.random((rows, columns)) < 0.2)
    matrix = scipy.sparse.coo_array(dense.astype(kind))
    path = saved(tmp_path_factory.mktemp("npz"), matrix.asformat(layout), compressed=compressed)
    found, source = edges_of(path)
    ends = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    assert sorted(found) == sorted(ends)
    assert (source.known_vertices, source.bytes_done) == (max(rows, columns), path.stat().st_size)
    assert sorted(edges_of(path, weights=False)[0]) == sorted(edge[:2] for edge in found)


def test_booleans_are_no_weights_and_stored_zeros_are_edges(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_array(np.array([[True, False], [True, True]]))
    assert edges_of(saved(tmp_path, matrix))[0] == [(0, 0), (1, 0), (1, 1)]
    matrix = scipy.sparse.csr_array(([0.0, 2.0], [1, 1], [0, 1, 2]), shape=(2, 2))
    assert edges_of(saved(tmp_path, matrix))[0] == [(0, 1, 0.0), (1, 1, 2.0)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indptr": [0, 2, 1, 3]}, "indptr does not rise"),
        ({"indptr": [1, 1, 2, 3]}, "indptr does not rise"),
        ({"indptr": [0, 1, 2, 9]}, "indptr does not rise"),
        ({"indptr": [0, 1, 3]}, "indptr has shape"),
        ({"indices": [0, 1, 3]}, "column 3 is outside the matrix of 3 columns"),
        ({"indices": [0, -1, 2]}, "column -1 is negative"),
        ({"data": [1.0, np.nan, 2.0]}, "weight data is nan"),
        ({"data": [1j, 2, 3]}, "complex128 cannot be weights"),
        ({"data": None}, "no array 'data'"),
        ({"format": None}, "no sparse matrix of scipy"),
        ({"format": "bsr"}, "'bsr' is not supported"),
    ],
)
def test_arrays_that_are_no_matrix_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    good = {"format": "csr", "shape": [3, 3], "indptr": [0, 1, 2, 3], "indices": [0, 1, 2], "data": [1.0, 2.0, 3.0]}
    members = {name: np.array(value) for name, value in (good | change).items() if value is not None}
    np.savez(tmp_path / "matrix.npz", **members)
    with pytest.raises(InputError, match=rf"matrix\.npz.*{words}"):
        edges_of(tmp_path / "matrix.npz")


@pytest.mark.parametrize("compressed", [True, False])
def test_damage_is_an_error(tmp_path: Path, compressed: bool) -> None:
    path = saved(tmp_path, scipy.sparse.eye_array(2000, format="csr"), compressed=compressed)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="damaged or truncated"):
        edges_of(path)
    flipped = bytearray(whole)
    for at in range(300, len(whole) // 2, 97):
        flipped[at] ^= 0x55
    path.write_bytes(flipped)
    with pytest.raises(InputError):
        edges_of(path)


def test_options_that_cannot_be(tmp_path: Path) -> None:
    path = saved(tmp_path, scipy.sparse.eye_array(3, format="coo"))
    with pytest.raises(InputError, match="no columns to choose"):
        edges_of(path, columns=(0, 1))
    with pytest.raises(InputError, match="cannot be read from a pipe"):
        edges_of(Path("-"), "npz")
