"""Streams: magic bytes decide, pipes work, and what is no edge list is refused by its first bytes."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.ingest.bytes import stream as stream_module
from penstock.storage.ingest.bytes.blocks import line_blocks
from penstock.storage.ingest.bytes.file import RawFile
from penstock.storage.ingest.bytes.stream import FrameBlocks, Stream


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


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_bytes_of_compressed_input_are_done_when_their_content_was_given(tmp_path: Path, compress: Any) -> None:
    """Not when they are unpacked ahead."""
    content = np.random.default_rng(1).bytes(8 << 20)
    (tmp_path / "edges").write_bytes(compress(content))
    with Stream(tmp_path / "edges") as stream:
        given = len(stream.read(1 << 16))
        while not stream._unpacker._ready.full():  # type: ignore[union-attr]
            time.sleep(0.001)
        while given < len(content):
            assert given <= stream.raw_done + (1 << 16) <= given + stream_module.OUTPUT_BYTES
            given += len(stream.read(1 << 20))
        assert stream.read(1) == b""
        assert stream.raw_done == stream.raw_bytes


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


def test_standard_input_is_recognized_too() -> None:
    code = (
        "import sys\nfrom penstock.storage.ingest.open_source import open_source, IngestOptions\n"
        "source = open_source(['-'], None, IngestOptions(threads=2))\n"
        "assert source.total_bytes is None\n"
        "print(sum(len(batch) for batch in source.batches()), source.bytes_done)"
    )
    data = b"1 2\n3 4\n" * 3000
    sent = gzip.compress(data)
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

    monkeypatch.setattr("penstock.storage.ingest.bytes.stream.PATIENCE_SECONDS", 0.2)
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, open(writing, "wb", buffering=0) as producer:
        producer.write(gzip.compress(b"1 2\n" * 100_000)[:200])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        stream = Stream("-")
        stream.close()  # which waited for the producer would never come back: it is closed below
        producer.close()
        for thread in threading.enumerate():
            if thread.name == "unpack":
                thread.join()


def frames(data: bytes) -> dict[str, bytes]:
    """The same content in zstd, in every way that a frame may be laid out."""
    plain = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    streamed = plain.compressobj()
    noise = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"noise"
    return {
        "content size": zstandard.ZstdCompressor(level=1).compress(data),
        "checksum": plain.compress(data),
        "many blocks": b"".join(
            piece for start in range(0, len(data) + 1, 999) for piece in _flushed(streamed, data[start : start + 999])
        )
        + streamed.flush(),
        "two frames": plain.compress(data[: len(data) // 2]) + plain.compress(data[len(data) // 2 :]),
        "skippable": noise + plain.compress(data) + noise,
    }


def _flushed(compressor: object, data: bytes) -> tuple[bytes, bytes]:
    flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
    return compressor.compress(data), compressor.flush(flush)  # type: ignore[attr-defined]


TEXT = b"".join(b"%d %d\n" % (i, i * 7919 % 100_003) for i in range(30_000))


@pytest.mark.parametrize("way", frames(b"x"))
@pytest.mark.parametrize("data", [TEXT, b"1 2\n", b"\n" * 3_000_000], ids=["text", "line", "newlines"])
def test_zstd_frames_of_every_kind(tmp_path: Path, way: str, data: bytes) -> None:
    path = tmp_path / "file"
    packed = frames(data)[way]
    path.write_bytes(packed)
    assert content(path, 1 << 20) == data
    if way != "skippable":
        path.write_bytes(packed[:-1])
        with pytest.raises(InputError, match="too early"):
            content(path, 1 << 20)
    path.write_bytes(packed + b"garbage")
    with pytest.raises(InputError, match="damaged"):
        content(path, 1 << 20)


@pytest.mark.parametrize("name", ["gzip", "bz2", "lzma", "zstd"])
def test_a_step_gives_a_bounded_number_of_bytes(tmp_path: Path, name: str) -> None:
    """32 MiB of newlines are a few KiB of any of these; none of it waits in memory."""
    path = tmp_path / "file"
    module = {"gzip": gzip, "bz2": bz2, "lzma": lzma, "zstd": zstandard}[name]
    path.write_bytes(module.compress(b"\n" * (32 << 20)))
    raw = RawFile(path)
    sizes = [len(piece) for piece in stream_module._unpacked(raw, stream_module._compression(raw) or "", 8 << 20)]
    raw.close()
    assert sum(sizes) == 32 << 20
    assert max(sizes) <= stream_module.OUTPUT_BYTES


def test_a_window_beyond_the_budget_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    parameters = zstandard.ZstdCompressionParameters(window_log=24)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(writer.compress(b"1 2\n" * (5 << 20)) + writer.flush())
    for packed in (path.read_bytes(), lzma.compress(b"1 2\n", preset=9)):
        path.write_bytes(packed)
        with (
            pytest.raises(InputError, match=r"--host-memory (128|512)MiB"),
            Stream(path, 64 << 20) as stream,
        ):
            stream.read_into(memoryview(bytearray(100)))
    path.write_bytes(lzma.compress(b"1 2\n", preset=9))
    assert content(path) == b"1 2\n"


@given(data=st.binary(min_size=1, max_size=60), piece=st.integers(1, 70))
def test_blocks_of_what_is_no_frame_end_with_the_piece(data: bytes, piece: int) -> None:
    """Nothing is left out of what a decompressor is given, unless a frame has ended."""
    for start in (b"", b"\x28\xb5\x2f\xfd"):
        blocks, whole = FrameBlocks(), start + data
        for at in range(0, len(whole), piece):
            part = whole[at : at + piece]
            *_, last = blocks.cuts(part, 8)
            if blocks.complete:
                break
            assert last == len(part)
