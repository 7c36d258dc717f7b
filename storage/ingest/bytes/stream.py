"""Owns raw input as content: plain or decompressed, whatever the file is called.

Compression is found by its first bytes, never by the name; members of gzip, bzip2, xz and zstd follow each other
without limit, and a member that ends too early is an error, not a short graph. Decompression runs in a thread of its
own, ahead of the reader. Refuses archives (zip), UTF-16 and folders. Of the ingest, only this file imports zstandard.

Whatever the content, a step gives at most `OUTPUT_BYTES`, and the window that zstd and xz refer back to is at most an
eighth of the budget (but 8 MiB, which any decompressor must have). zstd has no limit to the output of a step: a frame
is fed to it a few blocks at a time instead, which RFC 8878 (3.1.1) bounds to 128 KiB each, however short they are.
Where blocks end is found without checks: what is no frame is passed on whole, for the decompressor to refuse.
"""

import bz2
import lzma
import queue
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

import zstandard
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place, file_size
from penstock.storage.base.threads import start
from penstock.storage.ingest.bytes.file import RawFile
from penstock.storage.ingest.core.edge_columns import EdgeColumns
from penstock.storage.ingest.core.source import IngestOptions

BLOCK_BYTES = 128 << 10
_MAGIC = b"\x28\xb5\x2f\xfd"
_SINGLE, _CHECKSUM = 32, 4
_RUN, _RESERVED = 1, 3
_ALL = 1 << 62


class FrameBlocks:
    """One frame, or skippable frame. ``window``: how far it refers back, in bytes (0 until its header is read)."""

    def __init__(self) -> None:
        self.window = 0
        self._header, self._wanted = b"", 5
        self._body = 0
        self._checksum = 0
        self._read: Callable[[], None] | None = self._begin

    @property
    def complete(self) -> bool:
        """Whether the frame has ended."""
        return self._read is None and not self._body

    def cuts(self, piece: bytes, most: int) -> Iterator[int]:
        """Yield where to stop in the next piece: after at most ``most`` blocks, and at the end of piece or frame."""
        at = headers = 0
        while at < len(piece) and not self.complete:
            if self._body:
                step = min(self._body, len(piece) - at)
                self._body -= step
                at += step
                continue
            step = min(self._wanted - len(self._header), len(piece) - at)
            self._header += piece[at : at + step]
            at += step
            if len(self._header) == self._wanted and self._read is not None:
                self._read()
                headers += 1
                if headers % (most - 1) == 0:  # one more may be complete since the piece before
                    yield at
        yield at

    def _begin(self) -> None:
        """Read a magic number and what describes the rest of the header."""
        if self._header[1:4] == b"*M\x18" and self._header[0] >> 4 == 5:
            self._wanted, self._read = 8, self._skip
        elif self._header[:4] == _MAGIC:
            flags = self._header[4]
            content = (1 if flags & _SINGLE else 0, 2, 4, 8)[flags >> 6]
            self._wanted = 5 + (not flags & _SINGLE) + (0, 1, 2, 4)[flags & 3] + content
            self._read = self._describe
        else:
            self._body, self._read = _ALL, None

    def _skip(self) -> None:
        self._body, self._read = int.from_bytes(self._header[4:8], "little"), None

    def _describe(self) -> None:
        flags = self._header[4]
        self._checksum = 4 if flags & _CHECKSUM else 0
        if flags & _SINGLE:
            size = (1, 2, 4, 8)[flags >> 6]
            self.window = int.from_bytes(self._header[-size:], "little") + (256 if size == 2 else 0)
        else:
            base = 1 << (10 + (self._header[5] >> 3))
            self.window = base + base // 8 * (self._header[5] & 7)
        self._header, self._wanted, self._read = b"", 3, self._block

    def _block(self) -> None:
        header = int.from_bytes(self._header, "little")
        kind = header >> 1 & 3
        self._header = b""
        self._body = 1 if kind == _RUN else _ALL if kind == _RESERVED else header >> 3
        if header & 1:
            self._body += self._checksum
            self._read = None


PIECE_BYTES = 16 << 10
OUTPUT_BYTES = 1 << 20
LEAST_WINDOW = 8 << 20
WINDOW_SHARE = 8
DECODER_BYTES = 2 << 20
"""What xz holds beside its window, at most."""
LARGEST_XZ_WINDOW = 64 << 20
"""Of its presets (-9)."""
PATIENCE_SECONDS = 2.0


class Stream:
    """One input's bytes, decompressed within a part of ``host_memory``. Use as a context manager."""

    closed = False
    """What Arrow asks of a file before it reads."""

    def __init__(self, path: Place, host_memory: int = 1 << 30) -> None:
        self._raw = RawFile(path)
        self.name = self._raw.name
        self.raw_bytes = self._raw.size
        try:
            self.compression = _compression(self._raw)
        except InputError:
            self._raw.close()
            raise
        self._unpacker: _Unpacker | None = None
        if self.compression is not None:
            window = max(LEAST_WINDOW, host_memory // WINDOW_SHARE)
            self._unpacker = _Unpacker(self._raw, self.compression, window)

    @property
    def raw_done(self) -> int:
        """Bytes of the input as it lies on disk that were read so far; of compressed input those of what was given."""
        return self._raw.done if self._unpacker is None else self._unpacker.raw_done

    def read_into(self, buffer: memoryview) -> int:
        """Fill ``buffer`` with content as far as the input goes; fewer bytes only at the end.

        Raises:
            InputError: the compressed data is truncated or damaged.
            RunError: the disk failed.
        """
        source = self._raw if self._unpacker is None else self._unpacker
        filled = 0
        while filled < len(buffer) and (count := source.read_into(buffer[filled:])):
            filled += count
        return filled

    def read(self, count: int = 0, /) -> bytes:
        """The next ``count`` bytes of content, fewer only at the end. Raises as `read_into`."""
        buffer = bytearray(count)
        return bytes(memoryview(buffer)[: self.read_into(memoryview(buffer))])

    def close(self) -> None:
        """Stop decompressing and close the input."""
        if self._unpacker is not None:
            self._unpacker.close()
        self._raw.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Block = TypeVar("Block")
Result = TypeVar("Result")


class InputFiles:
    """The files of a source, read one after another: name, bytes on disk, and how many of these were read.

    Attributes: as `core/source.Source`; ``total_bytes`` is None where a file is a pipe; ``edge_columns``: what is kept
    beside edges, in records in the place of weights, if anything is.
    """

    known_vertices: int | None = None
    undirected = False

    def __init__(self, paths: Sequence[Place], options: IngestOptions) -> None:
        self.name = ", ".join(map(str, paths))
        self._paths, self._options = list(paths), options
        self._sizes = [file_size(path) for path in paths]
        self.total_bytes = None if None in self._sizes else sum(size or 0 for size in self._sizes)
        self.edge_columns = EdgeColumns(options.edge_properties) if options.edge_properties else None
        self._closed_bytes = 0
        self._open: Stream | None = None
        self._block_ends: deque[int] = deque()

    @property
    def bytes_done(self) -> int:
        """Bytes of input read so far, as they are on disk, without blocks that are read ahead of what was given."""
        return self._block_ends[0] if self._block_ends else self._bytes_read

    @property
    def _bytes_read(self) -> int:
        return self._closed_bytes + (self._open.raw_done if self._open else 0)

    def _in_step(
        self, blocks: Iterable[Block], results: Callable[[Iterable[Block]], Generator[Result]]
    ) -> Generator[Result]:
        """Yield the results of blocks, one of each, in order; `bytes_done` is the end of the block given last."""
        ends: deque[int] = deque()
        self._block_ends = ends

        def noted() -> Iterator[Block]:
            for block in blocks:
                ends.append(self._bytes_read)
                yield block

        with closing(results(noted())) as found:
            for result in found:
                yield result
                ends.popleft()

    def _streams(self) -> Iterator[Stream]:
        """Open one file after another, and close it when the next one is asked for."""
        for path in self._paths:
            with Stream(path, self._options.host_memory) as stream:
                self._open = stream
                yield stream
                self._closed_bytes += stream.raw_done
                self._open = None


def _compression(raw: RawFile) -> str | None:
    first = raw.first
    if first[:4] == b"PK\x03\x04":
        raise InputError(f"{raw.name} is a zip archive; unpack it and name the file inside")
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{raw.name} is UTF-16 text; convert it (iconv -f UTF-16 -t UTF-8)")
    if first[:8] == b"\x89HDF\r\n\x1a\n":
        raise InputError(f"{raw.name} is an HDF5 file, perhaps a graph that is converted already")
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    if first[:3] == b"BZh" and first[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return "bzip2"
    if first[:6] == b"\xfd7zXZ\x00":
        return "xz"
    if first[:4] == b"(\xb5/\xfd" or (first[1:4] == b"*M\x18" and first[0] >> 4 == 5):
        return "zstd"
    return None


class _WindowError(Exception):
    """The data refers back further than the budget allows: by so many bytes."""


class _ZstdFrame:
    """One zstd frame, as the other decompressors are, but for what `outputs` says."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._blocks = FrameBlocks()
        self._decoder = zstandard.ZstdDecompressor(max_window_size=window).decompressobj()
        self.unused_data = b""

    @property
    def eof(self) -> bool:
        """Whether the frame is complete."""
        return bool(self._decoder.eof)

    def outputs(self, piece: bytes) -> Iterator[bytes]:
        """Yield what a piece gives, at most `OUTPUT_BYTES` at a time. Raises _WindowError."""
        fed = 0
        for cut in self._blocks.cuts(piece, OUTPUT_BYTES // BLOCK_BYTES):
            if self._blocks.window > self._window:
                raise _WindowError(self._blocks.window)
            yield self._decoder.decompress(piece[fed:cut])
            fed = cut
            if self.eof:
                self.unused_data = self._decoder.unused_data + piece[fed:]
                return
        if self._blocks.complete:
            raise ValueError("a frame does not end with its last block")


_MAKERS: dict[str, Callable[[int], Any]] = {
    "gzip": lambda window: zlib.decompressobj(wbits=31),
    "bzip2": lambda window: bz2.BZ2Decompressor(),
    "xz": lambda window: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=window + DECODER_BYTES),
    "zstd": _ZstdFrame,
}
DAMAGE = (zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError, OSError, ValueError)
"""What the decompressors raise for data that cannot be."""


def _unpacked(raw: RawFile, compression: str, window: int) -> Iterator[bytes]:
    """The content, piece by piece; raises InputError for what is damaged, ends too early or needs too much memory."""
    make = _MAKERS[compression]
    member = make(window)
    try:
        while piece := raw.read(PIECE_BYTES):
            while piece:
                if member.eof:
                    piece = piece.lstrip(b"\0")
                    if not piece:
                        break
                    member = make(window)
                yield from _feed(member, piece, compression)
                piece = member.unused_data if member.eof else b""
        if compression == "gzip" and not member.eof:
            yield member.flush()
    except _WindowError as error:
        raise InputError(_too_far(raw.name, compression, error.args[0])) from None
    except DAMAGE as error:
        if compression == "xz" and "memory usage limit" in str(error).lower():
            raise InputError(_too_far(raw.name, compression, LARGEST_XZ_WINDOW)) from None
        raise InputError(
            f"{raw.name}: its {compression} data is damaged near byte {raw.done} ({error}); fetch the file again"
        ) from error
    if not member.eof:
        raise InputError(
            f"{raw.name}: its {compression} data ends too early, after {raw.done} bytes: the file "
            "is truncated; fetch it again"
        )


def _too_far(name: str, compression: str, window: int) -> str:
    return (
        f"{name}: its {compression} data refers back up to {format_bytes(window)}, more than the budget allows; give "
        f"--host-memory {-(-window * WINDOW_SHARE >> 20)}MiB, or compress it again with a smaller window (zstd without "
        "--long and --ultra, xz -6)"
    )


def _feed(member: Any, piece: bytes, compression: str) -> Iterator[bytes]:
    if compression == "zstd":
        yield from member.outputs(piece)
    elif compression == "gzip":
        while piece:
            yield member.decompress(piece, OUTPUT_BYTES)
            piece = member.unconsumed_tail
    else:
        yield member.decompress(piece, OUTPUT_BYTES)
        while not member.eof and not member.needs_input:
            yield member.decompress(b"", OUTPUT_BYTES)


class _Unpacker:
    """Decompresses ahead of its reader in a thread, at most a few pieces."""

    def __init__(self, raw: RawFile, compression: str, window: int) -> None:
        self.raw_done = 0
        self._ready: queue.Queue[tuple[bytes | BaseException, int]] = queue.Queue(maxsize=2)
        self._stop = threading.Event()
        self._piece = memoryview(b"")
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=(raw, compression, window), name="unpack", daemon=True)
        start(self._thread)

    def read_into(self, buffer: memoryview) -> int:
        while not self._piece and not self._ended:
            item, self.raw_done = self._ready.get()
            if isinstance(item, BaseException):
                self._ended = True
                raise item
            self._ended = not item
            self._piece = memoryview(item)
        count = min(len(self._piece), len(buffer))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count

    def close(self) -> None:
        """End the thread; one that waits for a silent pipe is left to the end of the process."""
        self._stop.set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._thread.is_alive() and time.monotonic() < deadline:
            try:
                self._ready.get(timeout=0.02)
            except queue.Empty:
                continue

    def _run(self, raw: RawFile, compression: str, window: int) -> None:
        held: list[bytes] = []
        held_bytes = 0
        try:
            for piece in _unpacked(raw, compression, window):
                held.append(piece)
                held_bytes += len(piece)
                if held_bytes >= OUTPUT_BYTES // 4:
                    self._put(b"".join(held), raw.done)
                    held, held_bytes = [], 0
                if self._stop.is_set():
                    return
            if held_bytes:
                self._put(b"".join(held), raw.done)
            self._put(b"", raw.done)
        except BaseException as error:
            self._put(error, raw.done)

    def _put(self, item: bytes | BaseException, done: int) -> None:
        while not self._stop.is_set():
            try:
                self._ready.put((item, done), timeout=0.1)
                return
            except queue.Full:
                continue
