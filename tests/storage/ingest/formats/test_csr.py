"""Raw CSR arrays: read as numpy reads them, cut into pieces of rows, and sizes or offsets that lie are refused."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.csr import CsrSource, cut_rows
from penstock.storage.ingest.open_source import open_source
from support.reading import edges_in, small_blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


@given(
    degrees=st.lists(st.integers(0, 20), max_size=60),
    width=st.sampled_from([4, 8]),
    weights=st.sampled_from([None, "u1", "u2", "u4", "f8"]),
)
def test_csr(degrees: list[int], width: int, weights: str | None, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("csr")
    random = np.random.default_rng(2)
    offsets = np.concatenate([[0], np.cumsum(np.array(degrees, np.uint64))]).astype("<u8")
    count = int(offsets[-1])
    neighbors = random.integers(0, max(len(degrees), 1), count).astype(f"<u{width}")
    names = [folder / "offsets", folder / "neighbors"]
    for name, array in zip(names, (offsets, neighbors), strict=True):
        array.tofile(name)
    expected = [np.repeat(np.arange(len(degrees)), degrees), neighbors]
    if weights is not None:
        values = random.integers(0, 200, count).astype(weights)
        values.tofile(folder / "weights")
        names.append(folder / "weights")
        expected.append(values)
    source = open_source(names, "csr", IngestOptions())
    assert source.known_vertices == len(degrees)
    assert isinstance(source, CsrSource)
    assert (source.edges, source.weighted) == (count, weights is not None)
    assert edges_in(source) == list(zip(*(column.tolist() for column in expected), strict=True))
    assert source.bytes_done == source.total_bytes
    if weights is not None:
        parts = [part.tolist() for part in source.weights()]
        assert list(chain.from_iterable(parts)) == expected[2].tolist()


@given(degrees=st.lists(st.integers(0, 30), max_size=40), limit=st.integers(1, 40), first=st.integers(0, 9))
def test_pieces_hold_every_edge_once(degrees: list[int], limit: int, first: int) -> None:
    offsets = 100 + np.concatenate([[0], np.cumsum(np.array(degrees, np.int64))])
    at = 100
    rows: dict[int, int] = {}
    for piece in cut_rows(first, offsets, limit):
        assert piece.offsets[0] == at
        assert 0 < piece.edges <= limit
        assert piece.whole or len(piece.offsets) == 2
        at = int(piece.offsets[-1])
        for row, degree in enumerate(np.diff(piece.offsets).tolist(), start=piece.first):
            assert row not in rows or not piece.whole
            rows[row] = rows.get(row, 0) + degree
    assert at == offsets[-1]
    assert {row: degree for row, degree in rows.items() if degree} == {
        first + row: degree for row, degree in enumerate(degrees) if degree
    }


def csr(folder: Path, offsets: list[int], neighbors: list[int]) -> list[Path]:
    names = [folder / "offsets", folder / "neighbors"]
    np.array(offsets, "<u8").tofile(names[0])
    np.array(neighbors, "<u4").tofile(names[1])
    return names


@pytest.mark.parametrize(
    ("offsets", "neighbors", "words"),
    [
        ([0, 2, 1, 3], [0, 1, 2], "rise"),
        ([0, 9, 3, 3], [0, 1, 2], "rise"),
        ([0, 3, 9, 3], [0, 1, 2], "rise"),
        ([1, 2, 3], [0, 1, 1], "first offset"),
        ([3], [0, 1, 1], "first offset"),
        ([0, 1, 4], [0, 1, 1], "do not hold 4 neighbors"),
        ([0, 1, 3], [0, 1, 2], "neighbor 2 .* is no vertex"),
        ([], [], "offsets"),
    ],
)
def test_offsets_that_lie_are_refused(tmp_path: Path, offsets: list[int], neighbors: list[int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        edges_in(open_source(csr(tmp_path, offsets, neighbors), "csr", IngestOptions()))


def test_csr_needs_its_files(tmp_path: Path) -> None:
    names = csr(tmp_path, [0, 1], [0])
    with pytest.raises(InputError, match="OFFSETS NEIGHBORS"):
        open_source(names[:1], "csr", IngestOptions())
    with pytest.raises(InputError, match="does not exist"):
        open_source([names[0], tmp_path / "absent"], "csr", IngestOptions())
    with pytest.raises(InputError, match="not standard input"):
        open_source([names[0], "-"], "csr", IngestOptions())
    with pytest.raises(InputError, match="WEIGHTS"):
        open_source(names, "csr", IngestOptions(weights=True))
