"""Packed payloads give back what was packed; a damaged payload is refused and touches nothing else."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.storage.encoding import bitpack, payload, unpack
from penstock.storage.encoding.payload import payload_words

SIZES = (0, 1, 2, 7, 8, 9, 255, 256, 257, 511, 512, 1000)
IDS = (np.uint32, np.uint64)
VALUES = (np.uint8, np.uint16, np.uint32)


def packed(items: NDArray[Any], differences: bool) -> NDArray[np.uint32]:
    """The payload, in a buffer of the announced size whose last use was another one."""
    words = np.full(payload_words(len(items), items.itemsize), 0xDEADBEEF, np.uint32)
    used = bitpack.pack(items, words, differences)
    assert used <= len(words)
    return words[:used].copy()


def unpacked(words: NDArray[np.uint32], like: NDArray[Any], differences: bool) -> NDArray[Any]:
    guarded = np.full(len(like) + 2, 77, like.dtype)
    out = guarded[1:-1]
    largest = (unpack.unpack if differences else unpack.unpack_values)(words, out)
    assert guarded[0] == guarded[-1] == 77, "wrote outside its array"
    expected = int(like.max()) if differences and len(like) else -1
    assert largest == expected
    few = np.full_like(like, 77)
    assert (payload.unpack if differences else payload.unpack_values)(words, few) == largest
    assert np.array_equal(few, out)
    return out


def patterns(kind: Any, size: int, seed: int) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(seed)
    top = min(int(np.iinfo(kind).max), 2**63 - 1)
    small = random.integers(0, min(top, 1000), size).astype(kind)
    any_bits = random.integers(0, top, size, dtype=np.uint64).astype(kind)
    return {
        "zeros": np.zeros(size, kind),
        "largest": np.full(size, top, kind),
        "rising": np.arange(size).astype(kind),
        "falling": np.arange(size)[::-1].astype(kind),
        "small": small,
        "rows": np.concatenate([np.sort(part) for part in np.array_split(small, 9)]) if size else small,
        "any": any_bits,
        "sorted": np.sort(any_bits),
        "ends": np.where(random.random(size) < 0.5, 0, top).astype(kind),
        "rare": np.where(random.random(size) < 0.02, any_bits, small).astype(kind),
    }


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("size", SIZES)
def test_ids_come_back(kind: Any, size: int) -> None:
    for name, ids in patterns(kind, size, size).items():
        assert np.array_equal(unpacked(packed(ids, True), ids, True), ids), name


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("size", SIZES)
def test_values_come_back(kind: Any, size: int) -> None:
    for name, values in patterns(kind, size, size).items():
        assert np.array_equal(unpacked(packed(values, False), values, False), values), name


@given(st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 300), max_size=600))
def test_any_ids_come_back(ids: list[int]) -> None:
    array = np.array(ids, np.uint32)
    assert np.array_equal(unpacked(packed(array, True), array, True), array)


def cheapest(lengths: list[int], narrowest: int) -> tuple[int, int]:
    """Return (bits, width) of the cheapest width, of equals the widest, for residuals of these lengths."""
    top = max(lengths)
    tried = [(sum(length > w for length in lengths) * (8 + top - w) + 256 * w, -w) for w in range(narrowest, 33)]
    bits, width = min((bits, width) for bits, width in tried if -width <= top or width == 0)
    return bits, -width


@given(st.integers(0, 2**32), st.sampled_from([1, 20, 300, 1 << 14, 1 << 31]), st.floats(0, 1))
def test_the_cheapest_of_three_windows_is_chosen(seed: int, span: int, rising: float) -> None:
    """Against plain Python: from the least difference, from the least forward one, and around zero."""
    random = np.random.default_rng(seed)
    steps = np.where(random.random(256) < rising, 1, -1) * random.integers(0, span, 256)
    ids = np.clip(np.cumsum(steps) + (1 << 31), 0, (1 << 32) - 1).astype(np.uint32)
    words = packed(ids, True)
    mask = (1 << int(words[1])) - 1
    differences = np.diff(ids.astype(np.int64)).tolist()
    choices = []
    for start in (min(differences), min((d for d in differences if d >= 0), default=None)):
        if start is not None:
            bits, width = cheapest([((d - start) & mask).bit_length() for d in differences], 0)
            choices.append((bits, width, start & mask))
    if min(differences) < 0:
        signed = [((d if d >= 0 else ~d).bit_length() + 1) * (d != 0) for d in differences]
        bits, width = cheapest(signed, 1)
        choices.append((bits, width, -(1 << width - 1) & mask))
    _, width, start = min(choices, key=lambda choice: choice[0])
    assert (int(words[6]) & 63, int(words[5])) == (width, start)


def test_sorted_rows_take_fewer_bytes_than_their_ids() -> None:
    random = np.random.default_rng(1)
    rows = [np.sort(random.integers(0, 1 << 20, 16)).astype(np.uint32) for _ in range(4096)]
    ids = np.concatenate(rows)
    assert packed(ids, True).nbytes < 0.7 * ids.nbytes


@pytest.mark.parametrize("differences", [True, False])
def test_a_damaged_payload_never_writes_elsewhere(differences: bool) -> None:
    """Every word in turn becomes every extreme: a wrong answer is the checksum's business, memory is ours."""
    random = np.random.default_rng(5)
    ids = random.integers(0, 1 << 20, 700).astype(np.uint32)
    ids[::50] = 2**32 - 1
    words = packed(ids, differences)
    decode = unpack.unpack if differences else unpack.unpack_values
    plain, few = payload.unpack if differences else payload.unpack_values, np.empty(len(ids), np.uint32)
    guarded = np.full(len(ids) + 600, 77, np.uint32)
    out = guarded[300:-300]
    refused = 0
    for at in range(len(words)):
        for value in (0, 1, 63, 0xFFFFFFFF, int(words[at]) ^ (1 << int(random.integers(32)))):
            damaged = words.copy()
            damaged[at] = value
            largest = decode(damaged, out)
            refused += largest == -2
            assert plain(damaged, few) == largest
            assert largest == -2 or np.array_equal(few, out)
            assert (guarded[:300] == 77).all()
            assert (guarded[-300:] == 77).all()
    assert refused > 20


def test_a_payload_of_another_length_or_kind_is_refused() -> None:
    ids = np.arange(300, dtype=np.uint32)
    words = packed(ids, True)
    for decoder in (unpack, payload):
        assert decoder.unpack(words, np.empty(299, np.uint32)) == -2
        assert decoder.unpack(words, np.empty(300, np.uint64)) == -2
        assert decoder.unpack(words[:-1].copy(), np.empty(300, np.uint32)) == -2
        assert decoder.unpack(words[:3].copy(), np.empty(300, np.uint32)) == -2
        assert decoder.unpack_values(words, np.empty(300, np.uint32)) == -2
