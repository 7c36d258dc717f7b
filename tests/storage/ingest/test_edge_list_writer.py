"""Edge lists are written exactly, in order, whole or not at all."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.edge_list_writer import write_edges
from penstock.storage.ingest.synthetic import SyntheticSource, rmat

NUMBERS = [0, 9, 10, 99, 100, 12345, 4294967295, 4294967296, 10**19 - 1, 10**19, 2**64 - 1]


class Fixed:
    """A source of given batches."""

    name = "fixed"
    total_bytes = None
    bytes_done = 0
    known_vertices = None
    undirected = False

    def __init__(self, *batches: EdgeBatch) -> None:
        self._batches = batches

    def batches(self) -> Iterator[EdgeBatch]:
        yield from self._batches


def numbers(dtype: type = np.uint64) -> EdgeBatch:
    values = np.array(NUMBERS, np.uint64)
    return EdgeBatch(values.astype(dtype), values[::-1].astype(dtype))


def test_numbers_of_any_length_are_written_exactly(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    size = write_edges(Fixed(numbers()), path)
    expected = "".join(f"{a}\t{b}\n" for a, b in zip(NUMBERS, NUMBERS[::-1], strict=True))
    assert path.read_text() == expected
    assert size == len(expected)


def test_weights_make_a_third_column(tmp_path: Path) -> None:
    ends = np.array([1, 2], np.uint32)
    path = tmp_path / "x.tsv"
    write_edges(Fixed(EdgeBatch(ends, ends[::-1].copy(), np.array([7, 255], np.uint8))), path)
    assert path.read_text() == "1\t2\t7\n2\t1\t255\n"


def test_batches_stay_in_order_plain_zipped_and_binary(tmp_path: Path) -> None:
    source = rmat(14, 64, 1)
    batches = list(source.batches())
    pairs = np.concatenate([np.stack([b.sources, b.targets], axis=1) for b in batches])
    assert len(batches) > 3
    written: list[int] = []
    write_edges(source, tmp_path / "x.bin", threads=3, progress=written.append)
    write_edges(source, tmp_path / "x.txt", threads=3)
    write_edges(source, tmp_path / "x.txt.gz", threads=3)
    raw = np.fromfile(tmp_path / "x.bin", "<u4").reshape(-1, 2)
    np.testing.assert_array_equal(raw, pairs)
    text = (tmp_path / "x.txt").read_bytes()
    assert gzip.decompress((tmp_path / "x.txt.gz").read_bytes()) == text
    np.testing.assert_array_equal(np.fromstring(text, np.int64, sep=" ").reshape(-1, 2), pairs)
    assert written == sorted(written)
    assert written[-1] == source.edges


def test_wide_ids_make_wide_pairs(tmp_path: Path) -> None:
    write_edges(Fixed(numbers()), tmp_path / "x.bin")
    raw = np.fromfile(tmp_path / "x.bin", "<u8").reshape(-1, 2)
    assert raw[:, 0].tolist() == NUMBERS


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("x.parquet", rmat(3), r"x\.parquet: no edge list"),
        ("x.gz", rmat(3), r"x\.gz: no edge list"),
        ("x.bin", rmat(3, weights=(1, 2)), "hold no weights"),
    ],
)
def test_other_outputs_are_refused(tmp_path: Path, name: str, source: SyntheticSource, message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_edges(source, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
