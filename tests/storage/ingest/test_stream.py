"""Streams: magic bytes decide, pipes work, and what is no edge list is refused by its first bytes."""

import gzip
import io
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.errors import InputError, RunError
from penstock.storage.ingest.blocks import line_blocks
from penstock.storage.ingest.raw import RawFile
from penstock.storage.ingest.stream import Stream


def content(path: Path, piece: int = 1000) -> bytes:
    with Stream(path) as stream:
        found = b""
        buffer = bytearray(piece)
        while count := stream.read_into(memoryview(buffer)):
            found += buffer[:count]
        return found


@given(data=st.binary(max_size=300), piece=st.integers(1, 400))
def test_plain_and_compressed_content_is_the_same(
    data: bytes, piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("stream") / "file.zst"
    path.write_bytes(b"1" + data)
    assert content(path, piece) == b"1" + data
    path.write_bytes(gzip.compress(data))
    assert content(path, piece) == data


def test_zero_padding_between_gzip_members_is_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "padded"
    path.write_bytes(gzip.compress(b"1 2\n") + b"\0" * 512 + gzip.compress(b"3 4\n") + b"\0" * 9)
    assert content(path) == b"1 2\n3 4\n"


def test_trailing_garbage_after_gzip_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(gzip.compress(b"1 2\n") + b"garbage")
    with pytest.raises(InputError, match="damaged"):
        content(path)


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"PK\x03\x04....", "zip"),
        (b"\xff\xfe1\x00 \x00", "UTF-16"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
    ],
)
def test_what_is_no_stream_of_edges_is_refused(tmp_path: Path, first: bytes, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(first)
    with pytest.raises(InputError, match=words):
        Stream(path)


@pytest.mark.parametrize("text", [b"", b"\n", b"1 2", b"1 2\n", b"\xef\xbb\xbf1 2", b"1\n\n22\n333\n" * 40])
@pytest.mark.parametrize("block", [1, 7, 64, 100_000])
def test_blocks_are_whole_lines(tmp_path: Path, text: bytes, block: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(text)
    with Stream(path) as stream:
        blocks = [part.tobytes() for part in line_blocks(stream, block)]
    assert all(part.endswith(b"\n") for part in blocks)
    whole = text.removeprefix(b"\xef\xbb\xbf")
    if whole and not whole.endswith(b"\n"):
        whole += b"\n"
    assert b"".join(blocks) == whole


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_standard_input_is_recognized_too(compress: object) -> None:
    code = (
        "import sys\nfrom penstock.storage.ingest.source import open_source, IngestOptions\n"
        "source = open_source(['-'], None, IngestOptions(threads=2))\n"
        "assert source.total_bytes is None\n"
        "print(sum(len(batch) for batch in source.batches()), source.bytes_done)"
    )
    data = b"1 2\n3 4\n" * 3000
    sent = compress(data)  # type: ignore[operator]
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert done.stdout.split() == [b"6000", str(len(sent)).encode()]


def test_a_failing_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1 2\n" * 100)
    raw = RawFile(path)
    raw.read(64)
    raw.close()

    class Broken(io.RawIOBase):
        def readinto(self, _: object) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(raw, "_file", Broken())
    with pytest.raises(RunError, match=r"file: reading failed: Input/output error"):
        raw.read_into(memoryview(np.empty(10, np.uint8)))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"file cannot be opened: Permission denied"):
        RawFile(tmp_path / "file")


def test_a_silent_pipe_does_not_hold_us_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while compressed standard input waits for its producer."""
    import os

    monkeypatch.setattr("penstock.storage.ingest.stream.PATIENCE_SECONDS", 0.2)
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, open(writing, "wb", buffering=0) as producer:
        producer.write(gzip.compress(b"1 2\n" * 100_000)[:200])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        stream = Stream("-")
        started = time.monotonic()
        stream.close()
        assert time.monotonic() - started < 1.0
        producer.close()
        for thread in threading.enumerate():
            if thread.name == "unpack":
                thread.join()
