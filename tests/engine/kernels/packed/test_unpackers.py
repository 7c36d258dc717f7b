"""Payloads are decoded by the cores and by a GPU's kernel (simulated), and forged ones neither harm nor pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine.kernels.cuda import driver
from penstock.engine.kernels.packed.cuda_unpacker import part_of, skew_of
from penstock.engine.kernels.packed.unpackers import unpacker_of
from penstock.engine.session import Session
from penstock.storage.base.errors import RunError
from penstock.storage.encoding.payload import BLOCK, HEADER_WORDS
from penstock.storage.encoding.unpack import unpack
from penstock.transfer.devices.device import Unpacker
from penstock.transfer.devices.emulated import EmulatedDevice
from support.covering import covering
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList
from support.payloads import Store, decoded, forged, rows, store_of
from support.program_cases import check, program_of
from support.small_host import packing

pytestmark = pytest.mark.skipif(not driver.SIMULATED, reason="there is a device: tests/gpu")
KERNELS = pytest.mark.parametrize("kernels", ["host", "cuda"])
DEVICE = EmulatedDevice()
FORGED = store_of(rows(np.random.default_rng(5), 600, 5000, 30, np.uint32), 1024)
FORGED_WIDE = store_of(rows(np.random.default_rng(5), 600, 5000, 30, np.uint64) << np.uint64(30), 1024)


def checked(store: Store, kernels: str, **ways: Any) -> Any:
    """What is decoded, of which nothing is malformed."""
    unpacker = unpacker_of(DEVICE, kernels)
    found = decoded(store, unpacker, DEVICE, **ways)
    unpacker.check()
    return found


def is_flagged(unpacker: Unpacker) -> bool:
    try:
        unpacker.check()
    except RunError:
        return True
    return False


@KERNELS
@covering("width", range(33), strength=1, rare={*range(33)} - {0, 1, 2, 7, 8, 15, 16, 17, 31, 32})
def test_every_width(width: int, kernels: str) -> None:
    """Differences of just so many bits, and a short last block."""
    rng = np.random.default_rng(width)
    steps = rng.integers(0, 1 << width, 300, np.uint64)
    steps[1::2] |= np.uint64((1 << width) >> 1)
    ids = (np.cumsum(steps) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    store = store_of(ids, 1024)
    assert (checked(store, kernels) == ids).all()


@KERNELS
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("far", [0, 1, 7, 200])
def test_exceptions(far: int, dtype: Any, kernels: str) -> None:
    """Most differences are small; `far` of 300 are not."""
    rng = np.random.default_rng(far)
    ids = np.cumsum(rng.integers(1, 4, 300)).astype(dtype)
    top = 1 << (31 if dtype is np.uint32 else 62)
    ids[rng.choice(300, far, replace=False)] = rng.integers(top // 2, top, far, dtype)
    assert (checked(store_of(ids, 512), kernels) == ids).all()


@KERNELS
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_the_largest_and_smallest_of_everything(dtype: Any, kernels: str) -> None:
    top = (1 << 32) - 1 if dtype is np.uint32 else (1 << 63) - 2
    for ids in ([0], [top], [top] * 257, [0, top] * 130, [7] * 256, list(range(256)), list(range(300, 0, -1))):
        store = store_of(np.array(ids, dtype), 512)
        assert (checked(store, kernels) == store.items).all()


@KERNELS
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_values(dtype: Any, kernels: str) -> None:
    rng = np.random.default_rng(3)
    for low, high in ((0, 1), (5, 9), (0, np.iinfo(dtype).max)):
        values = rng.integers(low, high, 700, dtype, endpoint=True)
        assert (checked(store_of(values, 512, values=True), kernels) == values).all()


@KERNELS
@pytest.mark.parametrize("block", [64, 512])
def test_sums_of_the_values_before_each(block: int, kernels: str) -> None:
    """By blocks, modulo 2^32; what is behind the last value counts as 0."""
    values = np.random.default_rng(4).integers(0, 1 << 32, 700, np.uint32)
    found = checked(store_of(values, 512, values=True), kernels, summed=block, behind=5)
    padded = np.append(values, np.zeros(5, np.uint32))
    for first in range(0, len(padded), block):
        part = padded[first : first + block]
        assert (found[first : first + block] == np.cumsum(part, dtype=np.uint32) - part).all()


@KERNELS
@pytest.mark.parametrize("chunk", [64, 256, 512, 700])
def test_chunks_anywhere_in_the_store(chunk: int, kernels: str) -> None:
    """Several chunks, the last one short; those in the middle alone."""
    ids = rows(np.random.default_rng(1), 1500, 3000, 20, np.uint32)
    store = store_of(ids, chunk)
    for first, last in ((0, store.chunks), (1, store.chunks), (1, 2), (store.chunks - 1, store.chunks), (1, 1)):
        found = checked(store, kernels, chunks=(first, last))
        assert (found == ids[first * chunk : last * chunk]).all()


@KERNELS
@covering("chunk, wanted", [64, 512, 700], [[], [0], [3], [5], [1, 2, 4], range(6)], strength=1)
def test_only_marked_blocks_are_decoded(wanted: Any, chunk: int, kernels: str) -> None:
    """A block of a chunk is decoded as a whole; where chunks are not whole blocks that is more, on the host all."""
    ids = rows(np.random.default_rng(2), 1500, 3000, 20, np.uint32) | np.uint32(1 << 20)
    store = store_of(ids, chunk)
    mask = np.isin(np.arange(6), list(wanted))
    found = checked(store, kernels, marks=store.all_marks(mask))
    edges = np.arange(len(ids))
    asked = mask[edges // BLOCK]
    assert (found[asked] == ids[asked]).all()
    starts = edges // chunk * chunk + edges % chunk // BLOCK * BLOCK
    ends = np.minimum(np.minimum(starts + BLOCK, edges // chunk * chunk + chunk), len(ids))
    touched = mask[starts // BLOCK] | mask[(ends - 1) // BLOCK]
    assert (found[touched] == ids[touched]).all()
    if kernels == "cuda" or chunk % BLOCK == 0:
        assert (found[~touched] == 1).all()


def test_parts_of_a_chunk_find_their_first_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of two blocks, with all, none and some blocks wanted: `find_blocks` adds up what is before them."""
    monkeypatch.setattr("penstock.engine.kernels.packed.cuda_unpacker.PART", 2)
    monkeypatch.setattr("penstock.engine.kernels.packed.cuda_unpacker.MOST_BLOCKS", 3)
    ids = rows(np.random.default_rng(8), 5000, 1 << 20, 40, np.uint32)
    store = store_of(ids, 4096)
    assert (checked(store, "cuda") == ids).all()
    mask = np.isin(np.arange(20), [2, 9, 10, 18])
    found = checked(store, "cuda", marks=store.all_marks(mask))
    assert (found == np.where(mask[np.arange(5000) // BLOCK], ids, 1)).all()


def test_the_last_part_of_a_long_chunk() -> None:
    """More blocks before it than a CUDA block's threads look at in one turn."""
    ids = rows(np.random.default_rng(8), 70 * BLOCK, 1 << 20, 40, np.uint32)
    mask = np.isin(np.arange(70), [0, 64, 69])
    store = store_of(ids, 1 << 18)
    assert (checked(store, "cuda", marks=store.all_marks(mask)) == np.where(np.repeat(mask, BLOCK), ids, 1)).all()


@pytest.mark.parametrize(
    ("chunks", "blocks", "room", "most", "each"),
    [(32, 1024, 660, 64, 52), (1, 1024, 660, 64, 2), (256, 1024, 660, 64, 64), (0, 1, 3, 8, 1), (9, 9999, 3, 8, 8)],
)
def test_parts_fill_the_device(chunks: int, blocks: int, room: int, most: int, each: int) -> None:
    assert part_of(chunks, blocks, room, most) == each


def test_lines_begin_where_the_memory_does() -> None:
    words = np.zeros(64, np.uint32)
    assert [(skew_of(words[at:]) - skew_of(words)) % 8 for at in range(9)] == [0, 1, 2, 3, 4, 5, 6, 7, 0]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_words_read_in_place_are_copied_first(dtype: Any) -> None:
    ids = rows(np.random.default_rng(9), 2000, 1 << 20, 40, dtype)
    mask = np.isin(np.arange(8), [1, 2, 7])
    for store in (store_of(ids, 512), store_of(ids[:700] // dtype(1 << 19), 700)):
        assert (checked(store, "cuda", in_place=True) == store.items).all()
        marks = store.all_marks(mask)
        found = checked(store, "cuda", marks=marks, in_place=True)
        assert (found == np.where(mask[np.arange(len(found)) // BLOCK], store.items, 1)).all()
    assert (decoded(forged(FORGED, 9, 1 << 20), unpacker_of(DEVICE, "cuda"), DEVICE) < 5000).all()


@KERNELS
def test_ids_at_the_limit_are_zero_and_flagged(kernels: str) -> None:
    unpacker = unpacker_of(DEVICE, kernels)
    found = decoded(FORGED, unpacker, DEVICE, limit=4000)
    assert (found == np.where(FORGED.items < 4000, FORGED.items, 0)).all()
    with pytest.raises(RunError, match=r"packed edges of chunk 0 are malformed.*penstock verify"):
        unpacker.check()


@KERNELS
@pytest.mark.parametrize("lost", [1, 8, 100])
def test_a_payload_that_is_cut_off(lost: int, kernels: str) -> None:
    store = store_of(rows(np.random.default_rng(4), 600, 5000, 30, np.uint32), 300)
    store.starts[-1] -= lost
    unpacker = unpacker_of(DEVICE, kernels)
    found = decoded(store, unpacker, DEVICE)
    assert (found == np.where(np.arange(600) < 300, store.items, 0)).all()
    assert is_flagged(unpacker)


@KERNELS
def test_a_payload_that_is_not_there(kernels: str) -> None:
    """The second begins elsewhere than the store says, and ends after the words that have come."""
    for shift in (-5, 5):
        store = store_of(rows(np.random.default_rng(4), 600, 5000, 30, np.uint32), 300)
        store.starts[1:] += shift
        unpacker = unpacker_of(DEVICE, kernels)
        found = decoded(store, unpacker, DEVICE)
        assert (found < store.limit).all()
        assert is_flagged(unpacker)


SOMEWHERE = st.integers(0, 1 << 16)
INTERESTING = st.one_of(
    st.integers(0, 0xFFFFFFFF), st.integers(0, 1 << 21), st.sampled_from([0, 1, 32, 33, 63, 0xFFFFFFFF])
)


@KERNELS
@pytest.mark.parametrize("store", [FORGED, FORGED_WIDE], ids=["uint32", "uint64"])
@settings(max_examples=25)
@given(changes=st.lists(st.tuples(st.one_of(SOMEWHERE, st.integers(0, 20)), INTERESTING), min_size=1, max_size=3))
def test_forged_payloads(store: Store, kernels: str, changes: list[tuple[int, int]]) -> None:
    """Whatever a payload says, nothing is read or written elsewhere, and no id is too large; reading too far raises."""
    for at, word in changes:
        store = forged(store, at, word)
    unpacker = unpacker_of(DEVICE, kernels)
    found = decoded(store, unpacker, DEVICE)
    assert (found < store.limit).all()
    largest = unpack(store.words, np.empty_like(store.items))
    if largest == -2:
        assert is_flagged(unpacker)
    elif is_flagged(unpacker):
        assert kernels == "host" or largest >= store.limit or (found == 0).any()


@KERNELS
@covering(
    "word, block", [33, 63, 33 << 6, 63 << 6, 257 << 12, 0xFFFFFFFF, 32 | 32 << 6 | 256 << 12], [0, 1, 2], strength=1
)
def test_forged_descriptions(block: int, word: int, kernels: str) -> None:
    store = forged(FORGED, HEADER_WORDS + 2 * 3 + block, word)
    unpacker = unpacker_of(DEVICE, kernels)
    found = decoded(store, unpacker, DEVICE)
    assert (found[(np.arange(600) >= block * BLOCK)] == 0).all()
    assert is_flagged(unpacker)


def test_a_simulated_gpu_runs_on_packed_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which its stream of kernels decodes, as that of a GPU."""
    edges = weighed(EdgeList(60, *skewed(60, 700, 5), None, True), "uint8")
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=128)
    packing(monkeypatch, 2, 2, 0.2, host=0.3)
    given = {"device": "emulated", "kernels": "cuda", "device_edge_memory": 1 << 12}
    with Session(graph, route="filter", **given) as session:
        check("sssp", edges, session.run(program_of("sssp", edges)).fields)
