"""Raw binary pairs: read as numpy reads them, in order, and lengths that lie are refused."""

import gzip
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from support.reading import edges_in, small_blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("count", [0, 1, 4, 1001])
def test_pairs(tmp_path: Path, width: int, count: int) -> None:
    pairs = np.random.default_rng(1).integers(0, 1 << (width - 1), (count, 2), np.uint64)
    path = tmp_path / "pairs"
    path.write_bytes(pairs.astype(f"<u{width // 8}").tobytes())
    source = open_source([path], f"binary{width}", IngestOptions())
    assert edges_in(source) == list(map(tuple, pairs.tolist()))
    assert source.bytes_done == source.total_bytes == path.stat().st_size


def test_compressed_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.gz"
    path.write_bytes(gzip.compress(np.arange(1000, dtype="<u4").tobytes()))
    assert edges_in(open_source([path], "binary32", IngestOptions()))[-1] == (998, 999)


@pytest.mark.parametrize(("width", "size"), [(32, 12), (32, 1), (64, 8), (64, 64 + 15)])
def test_a_length_that_is_no_whole_number_of_pairs(tmp_path: Path, width: int, size: int) -> None:
    path = tmp_path / "pairs"
    path.write_bytes(bytes(size))
    with pytest.raises(InputError, match=rf"pairs: {size} bytes .*--format"):
        edges_in(open_source([path], f"binary{width}", IngestOptions()))


def test_a_pipe_is_read_as_it_comes(tmp_path: Path) -> None:
    pairs = np.arange(1000, dtype="<u4")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(pairs.tobytes(),))
    writer.start()
    assert edges_in(open_source([pipe], "binary32", IngestOptions())) == list(map(tuple, pairs.reshape(-1, 2).tolist()))
    writer.join()


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_bytes(bytes(80_000))
    source = open_source([path], "binary32", IngestOptions(threads=1)).batches()
    assert len(next(source)) == 8
    os.truncate(path, 1000)
    with pytest.raises(InputError, match="pairs became shorter"):
        list(source)
