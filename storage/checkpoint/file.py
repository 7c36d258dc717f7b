"""The file of a checkpoint: a story (JSON) and arrays of numbers, whole and under checksums.

    magic │ frames of the first array │ frames of the next │ … │ header (JSON) │ length, checksum, version, magic

A frame is zstd over at most 1 MiB of an array's items. The header names every array with its dtype and shape, and the
length and xxh3 of each frame; the last 24 bytes hold the header's own. So every byte is either compared or under a
checksum, arrays of any size are written in one go, from bounded memory, and nothing is used before it was verified.
There is no pickle: a checkpoint holds numbers and texts, and cannot hold code.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import replacing
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import RunError
from penstock.storage.base.threads import ThreadPool, ordered_map
from penstock.storage.checkpoint.state_pages import PagedValues
from penstock.storage.encoding.codec import Decoder, FrameError, checksum, compress

FORMAT_VERSION = 1
MAGIC = b"\x89PNSTK\r\n"
FRAME_BYTES = 1 << 20  # a multiple of the bytes of any item
LEVEL = -1
"""zstd's fastest: sparse bitmaps and levels shrink a lot, ranks hardly, and neither costs more than writing would."""
WRITING_BYTES = 16 << 20
"""The most memory that writing takes: frames before and after compression, and the compressors (measured: 12.4 MiB)."""
Values = NDArray[Any] | PagedValues
"""Numbers in memory, or in another file."""
_TRAILER = struct.Struct("<QQI4s")
_END = b"KEPT"
_KINDS = "biuf"
_THREADS = 4


class CheckpointError(Exception):
    """A file that is not a whole checkpoint of this version; says why."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array of a checkpoint: `offset` of its first frame in the file, (length, checksum) of every frame."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    frames: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Bytes of its items."""
        return self.dtype.itemsize * prod(self.shape)


def write_checkpoint(path: Path, story: dict[str, Any], arrays: Iterable[tuple[str, Values]]) -> int:
    """Write a checkpoint in place of `path`, whole or not at all; return its bytes.

    story: plain JSON. arrays: names and arrays of numbers, drawn one by one.

    Raises:
        RunError: the disk is full, or failed; `path` is as it was.
        UnsyncedError: `path` is the new one, and its folder could not be synced.
    """
    try:
        with replacing(path, force=True) as partial:
            with partial.open("wb") as file:
                _write(file, story, arrays)
            return partial.stat().st_size
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}") from error


def _write(file: BinaryIO, story: dict[str, Any], arrays: Iterable[tuple[str, Values]]) -> None:
    file.write(MAGIC)
    specs = []
    with ThreadPool(min(_THREADS, cores()), "checkpoint") as pool:
        for name, array in arrays:
            frames = []
            for frame in ordered_map(pool, lambda piece: compress(piece, LEVEL), _pieces(array), _THREADS + 1):
                file.write(frame)
                frames.append((len(frame), checksum(frame)))
            specs.append({"name": name, "dtype": array.dtype.str, "shape": array.shape, "frames": frames})
    header = json.dumps({"story": story, "arrays": specs}, separators=(",", ":")).encode()
    file.write(header)
    file.write(_TRAILER.pack(len(header), _header_checksum(header), FORMAT_VERSION, _END))


def _pieces(array: Values) -> Iterator[NDArray[np.uint8]]:
    items = (array if isinstance(array, PagedValues) else np.ascontiguousarray(array)).reshape(-1)
    step = FRAME_BYTES // array.dtype.itemsize
    for first in range(0, len(items), step):
        yield items[first : first + step].view(np.uint8)


def _header_checksum(header: bytes) -> int:
    return checksum(header + struct.pack("<QI", len(header), FORMAT_VERSION))


class Checkpoint:
    """A checkpoint file all of whose bytes were verified. story: as it was written. arrays: by name.

    Raises:
        CheckpointError: it is foreign, newer, truncated or damaged.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            header, end = _read_header(file)
            try:
                self.story: dict[str, Any] = dict(header["story"])
                self.arrays = _layout(header["arrays"], end)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise CheckpointError(f"it is damaged: its header is malformed ({error})") from error
            for kept in self.arrays.values():
                for _ in _frames(file, kept):
                    pass

    def fill(self, name: str, out: Values) -> None:
        """Read an array into `out`, contiguous and of its dtype and shape. Raises CheckpointError, OSError."""
        kept = self.arrays.get(name)
        if kept is None:
            raise CheckpointError(f"it has no {name!r}")
        if (kept.dtype, kept.shape) != (out.dtype, out.shape):
            raise CheckpointError(f"its {name!r} is {kept.dtype} {kept.shape} and not {out.dtype} {out.shape}")
        paged, decoder, step = isinstance(out, PagedValues), Decoder(), FRAME_BYTES // out.dtype.itemsize
        items: Any = out.reshape(-1)
        with self.path.open("rb") as file:
            for number, frame in enumerate(_frames(file, kept)):
                here = slice(number * step, min((number + 1) * step, len(items)))
                part = np.empty(here.stop - here.start, out.dtype) if paged else items[here]
                try:
                    decoder.decompress(frame, part.view(np.uint8))
                except FrameError as error:
                    raise CheckpointError(f"it is damaged: {name!r}: {error}") from error
                if paged:
                    items[here] = part


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header, and where it begins, which is where the frames end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise CheckpointError("it is no checkpoint of Penstock")
    if size < len(MAGIC) + _TRAILER.size:
        raise CheckpointError("it is truncated")
    file.seek(size - _TRAILER.size)
    length, digest, version, end = _TRAILER.unpack(file.read(_TRAILER.size))
    if end != _END:
        raise CheckpointError("it is truncated")
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"it has format version {version}, and this Penstock reads up to {FORMAT_VERSION}; upgrade Penstock"
        )
    begin = size - _TRAILER.size - length
    if version != FORMAT_VERSION or begin < len(MAGIC):
        raise CheckpointError("it is damaged: its last bytes are wrong")
    file.seek(begin)
    header = file.read(length)
    if _header_checksum(header) != digest:
        raise CheckpointError("it is damaged: the checksum of its header is wrong")
    try:
        return dict(json.loads(header)), begin
    except (ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"it is damaged: its header is malformed ({error})") from error


def _layout(specs: list[dict[str, Any]], end: int) -> dict[str, StoredArray]:
    """The arrays by name, checked: their frames fill the file up to `end`. Raises ValueError and its like."""
    found: dict[str, StoredArray] = {}
    at = len(MAGIC)
    for spec in specs:
        name, dtype, shape = str(spec["name"]), np.dtype(spec["dtype"]), tuple(spec["shape"])
        frames = tuple((int(length), int(digest)) for length, digest in spec["frames"])
        if dtype.kind not in _KINDS or not shape or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"{name!r} is {dtype} {shape}")
        kept = StoredArray(dtype, shape, at, frames)
        if name in found or len(frames) != -(-kept.size // FRAME_BYTES) or not all(length > 0 for length, _ in frames):
            raise ValueError(f"{name!r} has {len(frames)} frames")
        found[name] = kept
        at += sum(length for length, _ in frames)
    if at != end:
        raise ValueError(f"{end - at} bytes belong to no array")
    return found


def _frames(file: BinaryIO, kept: StoredArray) -> Iterator[bytes]:
    """The frames of an array, each verified."""
    file.seek(kept.offset)
    for number, (length, digest) in enumerate(kept.frames):
        frame = file.read(length)
        if len(frame) != length or checksum(frame) != digest:
            raise CheckpointError(f"it is damaged: the checksum of frame {number} at byte {kept.offset} on is wrong")
        yield frame
