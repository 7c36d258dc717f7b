"""Chunk frames: zstd and xxh3, from an array to checksummed bytes and back.

A frame is one zstd frame, so that any HDF5 tool with filter 32015 opens it. It holds the chunk's items as they are
(``plain``), their differences to the item before, whatever the row (``delta``), the first bytes of all, then the second
bytes and so on (``shuffled``, for keys of edges), or bitpack.py's payload (``packed``, and ``bits`` without
differences), always padded with zeros to a full chunk, as HDF5 requires. The checksum covers the
compressed bytes and is verified first: a damaged frame never reaches the decompressor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import xxhash
import zstandard
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.base.missing_code import are_left
from penstock.storage.encoding.edge_keys import restore_keys, shuffle_keys
from penstock.storage.encoding.payload import LANES, PAYLOADS, VALUES, payload_words

LEVELS = {"packed": -1, "bits": -1, "delta": 1, "plain": 1, "shuffled": 1}
"""zstd level of each encoding: see measurements.md."""
PLAIN_WEIGHT_LEVEL = -1
"""For weights that cannot be bit-packed: coding their bytes by entropy would decode at 1.5 GB/s."""


MALFORMED = "its blocks are malformed"
"""What is wrong with a payload whose sizes do not agree."""


class FrameError(Exception):
    """A frame that cannot be what was written; says why."""


def checksum(data: Any) -> int:
    """Return the 64-bit xxh3 of a buffer."""
    return int(xxhash.xxh3_64_intdigest(data))


@dataclass(frozen=True, slots=True)
class Coding:
    """How an array becomes frames.

    Attributes
    ----------
    encoding : {"packed", "bits", "delta", "plain", "shuffled"}
        What the payload holds.
    kind : dtype
        Of the items.
    chunk_items : int
        Items of a full frame; a shorter one is padded with zeros.
    level : int
        zstd's.
    """

    encoding: str
    kind: np.dtype[Any]
    chunk_items: int
    level: int


@lru_cache(maxsize=64)
def payload_bytes(encoding: str, kind: np.dtype[Any], chunk_items: int) -> int:
    """Return the bytes that every frame of an array decompresses to."""
    if encoding in PAYLOADS:
        return 4 * payload_words(chunk_items, kind.itemsize)
    return chunk_items * kind.itemsize


def frame_bound(encoding: str, kind: np.dtype[Any], chunk_items: int) -> int:
    """Return the most bytes that a frame can take on disk (zstd's own bound, rounded up)."""
    size = payload_bytes(encoding, kind, chunk_items)
    return size + (size >> 8) + 4096


def compress(data: Any, level: int) -> bytes:
    """Return one zstd frame, with the number of its bytes in its header."""
    return zstandard.ZstdCompressor(level=level).compress(np.ascontiguousarray(data).data)


@jit
def _differences(ids: Any, out: Any) -> None:
    """Fill ``out`` with the differences of ``ids``, both uint32 or both uint64; the first from 0."""
    before = ids.dtype.type(0)
    for i in range(len(ids)):
        out[i] = ids[i] - before
        before = ids[i]


@jit
def _sums(deltas: Any, out: Any) -> int:
    """Fill ``out`` with running sums and return the largest, -1 for none and -2 beyond 2^63."""
    kind = deltas.dtype.type
    now = kind(0)
    largest = kind(0)
    for i in range(len(out)):
        now = kind(now + deltas[i])
        out[i] = now
        largest = max(largest, now)
    if len(out) == 0:
        return -1
    return int(largest) if int(largest) >= 0 else -2


class Encoder:
    """Turns arrays into frames; belongs to one thread, which its buffers and contexts require.

    Attributes
    ----------
    words : int
        32-bit words of the last frame's payload, without the zeros after it; 0 where the encoding has no payload.
    """

    def __init__(self, coding: Coding) -> None:
        self.words = 0
        self._coding = coding
        self._compressor = zstandard.ZstdCompressor(level=coding.level)
        self._payload = np.zeros(payload_bytes(coding.encoding, coding.kind, coding.chunk_items), np.uint8)

    def encode(self, items: NDArray[Any]) -> bytes:
        """Return the frame of at most ``chunk_items`` items, an array of the coding's dtype."""
        used = self._fill(items)
        self._payload[used:] = 0
        return self._compressor.compress(self._payload.data)

    def _fill(self, items: NDArray[Any]) -> int:
        """Write the payload; return its bytes."""
        encoding = self._coding.encoding
        if encoding == "shuffled":
            shuffle_keys(items, self._payload.reshape(8, -1))
            return len(self._payload)
        if encoding in PAYLOADS:
            from penstock.storage.encoding import bitpack  # the compiler, only where something is packed

            if items.itemsize < 4:  # to the same payload, by a version that is compiled already: each takes a second
                items = items.astype(np.uint32)
            words = self._payload.view(np.uint32)
            self.words = int(bitpack.pack(items, words, encoding == "packed"))
            return 4 * self.words
        target = self._payload.view(self._coding.kind)[: len(items)]
        if encoding == "delta":
            _differences(items, target)
        else:
            target[:] = items
        return items.nbytes


class Decoder:
    """Turns frames into arrays; belongs to one thread, which its buffers and contexts require."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor()
        self._scratch = np.empty(0, np.uint8)

    def decode(
        self,
        frame: Any,
        encoding: str,
        out: NDArray[Any],
        chunk_items: int,
        limit: int | None,
        words: int | None = None,
    ) -> None:
        """Decode a frame whose checksum was verified.

        Parameters
        ----------
        frame : bytes-like
            One zstd frame.
        encoding : {"packed", "bits", "delta", "plain", "shuffled"}
            What its payload holds.
        out : ndarray, (items,)
            Contiguous; is filled with the items. Its dtype is the array's.
        chunk_items : int
            Items of a full frame.
        limit : int or None
            One more than the largest value allowed, of keys the largest vertex; None: any.
        words : int or None
            32-bit words of its payload; None: unknown.

        Raises
        ------
        FrameError
            The frame does not hold exactly one chunk of such items.
        """
        size = payload_bytes(encoding, out.dtype, chunk_items)
        if encoding in PAYLOADS:
            payload = self._payload(frame, size, words)
            largest = _decoder(len(out), chunk_items, encoding == "packed")(payload, out)
            if encoding == "bits" and limit is not None and largest == -1 and len(out):
                largest = int(out.max())
        elif encoding == "delta":
            deltas = self._buffer(size).view(out.dtype)
            self.decompress(frame, deltas)
            largest = _sums(deltas, out)
        elif encoding == "shuffled":
            planes = self._buffer(size).reshape(8, -1)
            self.decompress(frame, planes.reshape(-1))
            largest = restore_keys(planes, out.view(np.uint32))
        else:
            whole = out.nbytes == size
            place = out if whole else self._buffer(size)
            self.decompress(frame, place)
            if not whole:
                out[:] = place[: out.nbytes].view(out.dtype)
            largest = int(out.max()) if limit is not None and len(out) else -1
        if largest < -1 and (limit is not None or encoding in PAYLOADS):
            raise FrameError(MALFORMED)
        if limit is not None and largest >= limit:
            raise FrameError(f"it holds the value {largest}, and {limit - 1} is the largest allowed")

    def copy_payload(
        self, frame: Any, encoding: str, kind: np.dtype[Any], items: int, chunk_items: int, out: NDArray[np.uint32]
    ) -> None:
        """Copy the payload of a frame whose checksum was verified.

        Parameters
        ----------
        frame : bytes-like
            One zstd frame.
        encoding : {"packed", "bits"}
            What its payload holds.
        kind : dtype
            Of the items.
        items, chunk_items : int
            Items of this frame, and of a full one.
        out : ndarray of uint32, (words,)
            Contiguous, as long as the payload; is filled with it, straight from the frame.

        Raises
        ------
        FrameError
            The frame does not hold a payload of so many items and words whose blocks fit it.
        """
        from penstock.storage.encoding import unpack  # the compiler, only where something is checked

        self.decompress(frame, out, payload_bytes(encoding, kind, chunk_items))
        _check_words(out, len(out))
        width = 2 if kind.itemsize == 8 else 1
        if not unpack.sound(out, items, width, 0 if encoding == "packed" else VALUES):
            raise FrameError(MALFORMED)

    def _payload(self, frame: Any, size: int, words: int | None) -> NDArray[np.uint32]:
        """Decompress a frame into this decoder's buffer; return its payload, of ``words`` words where that is known."""
        whole = self._buffer(size).view(np.uint32)
        self.decompress(frame, whole)
        if words is None:
            return whole
        _check_words(whole, words)
        return whole[:words]

    def _buffer(self, size: int) -> NDArray[np.uint8]:
        if len(self._scratch) < size:
            self._scratch = np.empty(size, np.uint8)
        return self._scratch[:size]

    def decompress(self, frame: Any, payload: NDArray[Any], size: int | None = None) -> None:
        """Decompress a frame of ``size`` bytes, by default the payload's, as far as ``payload`` goes.

        Raises FrameError when it does not fit.
        """
        expected = payload.nbytes if size is None else size
        try:
            there = zstandard.frame_content_size(frame)  # -1: the frame does not tell
            if there != expected:
                raise FrameError(f"it decompresses to {there} bytes, not {expected}")
            done = self._decompressor.stream_reader(frame).readinto(payload.view(np.uint8))
        except zstandard.ZstdError as error:
            raise FrameError(f"zstd: {error}") from error
        if done != payload.nbytes:
            raise FrameError(f"it decompresses to {done} bytes, not {payload.nbytes}")


def _decoder(items: int, chunk_items: int, differences: bool) -> Callable[[NDArray[np.uint32], NDArray[Any]], int]:
    """Return what decodes a payload: without a compiler where an array has one such frame at most."""
    if are_left(items) and items < chunk_items:
        from penstock.storage.encoding import payload as unpack
    else:
        from penstock.storage.encoding import unpack  # type: ignore[no-redef]  # the compiler, only where it is worth it
    return unpack.unpack if differences else unpack.unpack_values


def _check_words(payload: NDArray[np.uint32], words: int) -> None:
    """Raise FrameError for a payload of another length than its chunk table says."""
    if int(payload[3]) + LANES != words:
        raise FrameError(f"its payload has {int(payload[3]) + LANES} words, and its chunk table says {words}")
