"""Frames: every encoding gives back every array, and what was not written is refused with a reason."""

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from penstock.storage.encoding import unpack
from penstock.storage.encoding.codec import (
    LEVELS,
    Coding,
    Decoder,
    Encoder,
    FrameError,
    checksum,
    compress,
    frame_bound,
)
from penstock.storage.encoding.payload import VALUES
from support.covering import covering

CHUNK = 600
IDS = ("packed", "delta", "plain")


def frame_of(items: NDArray[Any], encoding: str) -> bytes:
    return Encoder(Coding(encoding, items.dtype, CHUNK, LEVELS[encoding])).encode(items)


def decoded(frame: bytes, encoding: str, like: NDArray[Any], limit: int | None = None) -> NDArray[Any]:
    out = np.full_like(like, 99)
    Decoder().decode(frame, encoding, out, CHUNK, limit)
    return out


@covering("encoding, kind, items", IDS, [np.uint32, np.uint64], [0, 1, 255, 256, 257, CHUNK - 1, CHUNK])
def test_every_encoding_gives_ids_back(encoding: str, kind: Any, items: int) -> None:
    random = np.random.default_rng(items)
    rows = [np.sort(random.integers(0, 1 << 31, part)) for part in (items // 3, items - items // 3)]
    ids = np.concatenate(rows).astype(kind)
    frame = frame_of(ids, encoding)
    assert len(frame) <= frame_bound(encoding, ids.dtype, CHUNK)
    assert np.array_equal(decoded(frame, encoding, ids, 1 << 31), ids)


@given(
    st.sampled_from(["u1", "u2", "u4", "f4", "f8"]).flatmap(
        lambda kind: hnp.arrays(
            np.dtype(kind), st.integers(0, CHUNK), elements={"allow_nan": False} if "f" in kind else None
        )
    )
)
def test_weights_of_every_kind_come_back(weights: NDArray[Any]) -> None:
    for encoding in ["plain", "bits"] if weights.dtype.kind == "u" else ["plain"]:
        assert np.array_equal(decoded(frame_of(weights, encoding), encoding, weights), weights)


@pytest.mark.parametrize("encoding", IDS)
def test_one_encoder_and_decoder_serve_many_frames(encoding: str) -> None:
    """A short chunk after a long one must not show the long one's items."""
    encoder = Encoder(Coding(encoding, np.dtype(np.uint32), CHUNK, LEVELS[encoding]))
    decoder, random = Decoder(), np.random.default_rng(0)
    for items in (CHUNK, 3, CHUNK, 0, 300):
        ids = random.integers(0, 1 << 32, items, dtype=np.uint32)
        out = np.empty_like(ids)
        decoder.decode(encoder.encode(ids), encoding, out, CHUNK, None)
        assert np.array_equal(out, ids)


@pytest.mark.parametrize("encoding", IDS)
def test_an_id_beyond_the_graph_is_refused(encoding: str) -> None:
    ids = np.array([1, 5, 9], np.uint32)
    frame = frame_of(ids, encoding)
    assert np.array_equal(decoded(frame, encoding, ids, 10), ids)
    with pytest.raises(FrameError, match="the value 9"):
        decoded(frame, encoding, ids, 9)


@pytest.mark.parametrize("encoding", ["packed", "delta", "plain", "bits"])
def test_damaged_frames_are_refused_or_decode_inside_their_array(encoding: str) -> None:
    """Without the checksum's help: zstd and the kernels must still keep to their memory."""
    ids = np.arange(500, dtype=np.uint32) * 7
    frame = frame_of(ids, encoding)
    random = np.random.default_rng(2)
    for _ in range(300):
        damaged = bytearray(frame)
        damaged[int(random.integers(len(frame)))] ^= 1 << int(random.integers(8))
        with suppress(FrameError):
            assert len(decoded(bytes(damaged), encoding, ids)) == len(ids)


@pytest.mark.parametrize("encoding", ["packed", "bits"])
@pytest.mark.parametrize("level", ["stored", "packed"])
def test_payloads_of_damaged_frames_are_refused_or_stay_in_their_words(encoding: str, level: str) -> None:
    """Without the checksum, of compressed frames and of frames of raw blocks, where every change reaches a word."""
    random = np.random.default_rng(7)
    ids = np.sort(random.integers(0, 1 << 31, 500)).astype(np.uint32)
    coding = Coding(encoding, ids.dtype, CHUNK, LEVELS[encoding] if level == "packed" else -100)
    encoder, decoder = Encoder(coding), Decoder()
    frame = encoder.encode(ids)
    guarded = np.full(encoder.words + 20, 7, np.uint32)
    words, refused = guarded[10:-10], 0
    decoder.copy_payload(frame, encoding, ids.dtype, len(ids), CHUNK, words)
    assert unpack.sound(words, len(ids), 1, 0 if encoding == "packed" else VALUES)
    for _ in range(300):
        damaged = bytearray(frame)
        damaged[int(random.integers(len(frame)))] ^= 1 << int(random.integers(8))
        try:
            decoder.copy_payload(bytes(damaged), encoding, ids.dtype, len(ids), CHUNK, words)
        except FrameError:
            refused += 1
        assert (guarded[:10] == 7).all()
        assert (guarded[-10:] == 7).all()
    assert refused > 0
    for wrong in (len(ids) - 1, len(ids) + 1):
        with pytest.raises(FrameError):
            decoder.copy_payload(frame, encoding, ids.dtype, wrong, CHUNK, words)
    with pytest.raises(FrameError, match="words"):
        decoder.copy_payload(frame, encoding, ids.dtype, len(ids), CHUNK, guarded[: encoder.words - 1])


def test_frames_that_hold_something_else_are_refused() -> None:
    ids = np.arange(10, dtype=np.uint32)
    for frame in (b"", b"not zstd at all", frame_of(ids, "plain")[:-3], compress(ids, 1)):
        for encoding in IDS:
            with pytest.raises(FrameError):
                decoded(frame, encoding, ids)


def test_the_checksum_is_xxh3_of_the_bytes() -> None:
    assert checksum(b"") == 0x2D06800538D394C2
    assert checksum(b"penstock") != checksum(b"penstocl")
    array = np.arange(12, dtype=np.uint64).reshape(6, 2)
    assert checksum(array) == checksum(array.tobytes())
