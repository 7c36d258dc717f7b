"""Raw binary pairs and CSR arrays: read as numpy reads them, and sizes that lie are refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.errors import InputError
from penstock.storage.ingest import options as ingest_options
from penstock.storage.ingest.options import IngestOptions, Source
from penstock.storage.ingest.source import open_source


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_options, "SMALLEST_BLOCK", 64)
    monkeypatch.setattr(ingest_options, "LARGEST_BLOCK", 64)


def edges(source: Source) -> list[tuple[float, ...]]:
    found: list[tuple[float, ...]] = []
    for batch in source.batches():
        columns = [batch.sources, batch.targets] + ([] if batch.weights is None else [batch.weights])
        found += zip(*(column.tolist() for column in columns), strict=True)
    return found


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("count", [0, 1, 4, 1001])
def test_pairs(tmp_path: Path, width: int, count: int) -> None:
    pairs = np.random.default_rng(1).integers(0, 1 << (width - 1), (count, 2), np.uint64)
    path = tmp_path / "pairs"
    path.write_bytes(pairs.astype(f"<u{width // 8}").tobytes())
    source = open_source([path], f"binary{width}", IngestOptions())
    assert edges(source) == list(map(tuple, pairs.tolist()))
    assert source.bytes_done == source.total_bytes == path.stat().st_size


def test_compressed_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.gz"
    path.write_bytes(gzip.compress(np.arange(1000, dtype="<u4").tobytes()))
    assert edges(open_source([path], "binary32", IngestOptions()))[-1] == (998, 999)


@pytest.mark.parametrize(("width", "size"), [(32, 12), (32, 1), (64, 8), (64, 64 + 15)])
def test_a_length_that_is_no_whole_number_of_pairs(tmp_path: Path, width: int, size: int) -> None:
    path = tmp_path / "pairs"
    path.write_bytes(bytes(size))
    with pytest.raises(InputError, match=rf"pairs: {size} bytes .*--format"):
        edges(open_source([path], f"binary{width}", IngestOptions()))


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
    assert edges(source) == list(zip(*(column.tolist() for column in expected), strict=True))


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
        ([0, 1, 4], [0, 1, 1], "do not hold 4 neighbors"),
        ([0, 1, 3], [0, 1, 2], "neighbor 2 .* is no vertex"),
        ([], [], "offsets"),
    ],
)
def test_offsets_that_lie_are_refused(tmp_path: Path, offsets: list[int], neighbors: list[int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        edges(open_source(csr(tmp_path, offsets, neighbors), "csr", IngestOptions()))


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
