"""The packed store: what is packed comes back, only what is wanted is touched, and nothing forged leaves its items."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.storage.encoding.packed_store import (
    ALL,
    PackedStore,
    UnpackTarget,
    pack_arrays,
    unpack_wanted,
)
from penstock.storage.encoding.payload import BEYOND, BLOCK, MALFORMED
from support.covering import covering

CHUNK = 2 * BLOCK
GUARD = 300
UNTOUCHED = 77
KINDS = [(np.uint32, False), (np.uint64, False), (np.uint8, True), (np.uint16, True), (np.uint32, True)]


def some_items(kind: Any, count: int, seed: int = 1) -> NDArray[Any]:
    """Sorted rows below 1,000, with a few large items where the dtype has room."""
    random = np.random.default_rng(seed)
    items = np.concatenate([np.sort(part) for part in np.array_split(random.integers(0, 200, count), 9)]).astype(kind)
    if np.dtype(kind).itemsize > 1 and count:
        items[random.integers(0, count, count // 50)] = 60_000
    return items


def stored(items: NDArray[Any], values: bool, threads: int = 2) -> PackedStore:
    words, starts = pack_arrays(items, CHUNK, not values, threads)
    return PackedStore(words, 0, starts, CHUNK, len(items))


def bitmap(items: int, wanted: set[int]) -> NDArray[np.uint32]:
    marks = np.zeros(-(-items // (32 * BLOCK)) or 1, np.uint32)
    for block in wanted:
        marks[block >> 5] |= np.uint32(1 << (block & 31))
    return marks


class Room:
    """Room for some items inside an array that nothing else may change."""

    def __init__(self, kind: Any, count: int) -> None:
        self._all = np.full(count + 2 * GUARD, UNTOUCHED, kind)
        self.items = self._all[GUARD : GUARD + count]

    def check(self) -> None:
        assert (self._all[:GUARD] == UNTOUCHED).all(), "wrote before its items"
        assert (self._all[len(self._all) - GUARD :] == UNTOUCHED).all(), "wrote behind its items"


@covering("coding, count, threads", KINDS, [0, 1, 255, CHUNK, 5 * CHUNK, 5 * CHUNK + 257], [1, 3], strength=1)
def test_everything_comes_back(coding: tuple[Any, bool], count: int, threads: int) -> None:
    kind, values = coding
    items = some_items(kind, count)
    store, room = stored(items, values, threads), Room(kind, count)
    assert len(store.starts) == -(-count // CHUNK) + 1
    assert store.starts[-1] == len(store.words)
    status = unpack_wanted(store, UnpackTarget(room.items, 0, 0, ALL), 0, len(store.starts) - 1, values)
    assert not status.any()
    assert np.array_equal(room.items, items)
    room.check()


@pytest.mark.parametrize(("kind", "values"), KINDS)
def test_a_range_of_a_store_is_decoded_into_its_own_room(kind: Any, values: bool) -> None:
    items = some_items(kind, 7 * CHUNK + 3)
    whole = stored(items, values)
    first = int(whole.starts[2])
    part = whole._replace(words=whole.words[first : whole.starts[5]].copy(), first_word=first)
    room = Room(kind, 3 * CHUNK)
    assert not unpack_wanted(part, UnpackTarget(room.items, 2 * CHUNK, 0, ALL), 2, 5, values).any()
    assert np.array_equal(room.items, items[2 * CHUNK : 5 * CHUNK])
    room.check()


@pytest.mark.parametrize(("kind", "values"), KINDS)
@given(wanted=st.sets(st.integers(0, 79)))
def test_only_wanted_blocks_are_touched(kind: Any, values: bool, wanted: set[int]) -> None:
    items = some_items(kind, 79 * BLOCK + 9)
    store, room = stored(items, values), Room(kind, len(items))
    marks = bitmap(len(items), wanted)
    assert not unpack_wanted(store, UnpackTarget(room.items, 0, 0, marks), 0, 40, values).any()
    for block in range(80):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        if block in wanted:
            assert np.array_equal(room.items[part], items[part])
        else:
            assert (room.items[part] == UNTOUCHED).all()
    room.check()


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("marked", [False, True])
def test_ids_beyond_the_limit_are_written_as_0_and_reported(kind: Any, marked: bool) -> None:
    items = some_items(kind, 4 * CHUNK, 3)
    items[:CHUNK] %= 1000
    wanted = {0, 1, 2, 7} if marked else set(range(8))
    store, room = stored(items, False), Room(kind, len(items))
    marks = bitmap(len(items), wanted) if marked else ALL
    status = unpack_wanted(store, UnpackTarget(room.items, 0, 1000, marks), 0, 4, False)
    expected = np.where(items < 1000, items, 0)
    for block in range(8):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        assert np.array_equal(room.items[part], expected[part] if block in wanted else np.full(BLOCK, UNTOUCHED))
    assert status[0] == 0
    assert status[1] == (BEYOND if (items[2 * BLOCK : 3 * BLOCK] >= 1000).any() or not marked else 0)
    assert status[3] == BEYOND


def test_threads_decode_one_store_together() -> None:
    items = some_items(np.uint32, 64 * CHUNK)
    store, room = stored(items, False), Room(np.uint32, len(items))
    target = UnpackTarget(room.items, 0, 0, ALL)
    with ThreadPoolExecutor(4) as pool:
        status = list(pool.map(lambda chunk: unpack_wanted(store, target, chunk, chunk + 1, False), range(64)))
    assert not np.concatenate(status).any()
    assert np.array_equal(room.items, items)


@pytest.mark.parametrize("name", ["starts before", "starts behind", "falling starts", "shorter", "longer"])
def test_starts_that_lead_elsewhere_are_malformed(name: str) -> None:
    items = some_items(np.uint32, 3 * CHUNK)
    store = stored(items, False)
    starts = store.starts.copy()
    match name:
        case "starts before":
            starts[1] = -5
        case "starts behind":
            starts[2] = len(store.words) + 9
        case "falling starts":
            starts[1:3] = starts[2], starts[1]
        case "shorter":
            starts[2] -= 1
        case "longer":
            starts[2] += 2
    room = Room(np.uint32, len(items))
    target = UnpackTarget(room.items, 0, 0, ALL)
    status = unpack_wanted(store._replace(starts=starts), target, 1, 2, False)
    assert status.tolist() == [MALFORMED]
    assert (room.items[CHUNK : 2 * CHUNK] == 0).all()
    assert (room.items[:CHUNK] == UNTOUCHED).all()
    room.check()


@pytest.mark.parametrize(
    ("first", "last", "first_item", "marks"),
    [(-1, 1, 0, 0), (0, 4, 0, 0), (2, 1, 0, 0), (0, 3, 1, 0), (1, 3, 0, 0), (0, 1, 0, 0), (0, 0, 0, 3)],
)
def test_room_that_does_not_fit_is_refused(first: int, last: int, first_item: int, marks: int) -> None:
    """Before anything is written; the last two are the cases that fit."""
    items = some_items(np.uint32, 3 * CHUNK)
    room = np.full(CHUNK, UNTOUCHED, np.uint32)
    target = UnpackTarget(room, first_item, 0, np.zeros(marks, np.uint32))
    if (first, last) in ((0, 1), (0, 0)):
        unpack_wanted(stored(items, False), target, first, last, False)
        return
    with pytest.raises(ValueError, match=r"chunks|room"):
        unpack_wanted(stored(items, False), target, first, last, False)
    assert (room == UNTOUCHED).all()


def test_a_bitmap_that_is_too_short_is_refused() -> None:
    items = some_items(np.uint32, 40 * BLOCK)
    target = UnpackTarget(np.empty_like(items), 0, 0, np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="a bitmap of 1 words"):
        unpack_wanted(stored(items, False), target, 0, 1, False)


CHANGES = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 2**32 - 1) | st.integers(0, 31)),
    min_size=1,
    max_size=6,
)
"""Words of a payload (as a share of its length) that become a number, or where that is below 32 lose or get a bit."""


@pytest.mark.parametrize(("kind", "values"), KINDS)
@given(changes=CHANGES, header=st.booleans(), wanted=st.sets(st.integers(0, 5)) | st.none())
def test_forged_payloads_write_inside_their_items(
    kind: Any, values: bool, changes: list[tuple[float, int]], header: bool, wanted: set[int] | None
) -> None:
    """Whatever changes in the words of one chunk: others come back, ids are below the limit, nothing else changes."""
    items = some_items(kind, 3 * CHUNK)
    store, room = stored(items, values), Room(kind, len(items))
    first, last = store.starts[1:3].tolist()
    span = min(last - first, 16) if header else last - first
    for share, value in changes:
        at = first + int(share * span)
        store.words[at] = value if value >= 32 else store.words[at] ^ np.uint32(1 << value)
    limit = 0 if values else 60_001
    marks = ALL if wanted is None else bitmap(len(items), wanted)
    status = unpack_wanted(store, UnpackTarget(room.items, 0, limit, marks), 0, 3, values)
    room.check()
    here = set(range(6)) if wanted is None else wanted
    for block in range(6):
        part = room.items[block * BLOCK : (block + 1) * BLOCK]
        if block not in here:
            assert (part == UNTOUCHED).all()
        elif block not in (2, 3):
            assert np.array_equal(part, items[block * BLOCK : (block + 1) * BLOCK])
        elif status[1] == MALFORMED:
            assert (part == 0).all()
        elif not values:
            assert int(part.max()) < limit
    assert status[0] == status[2] == 0


@given(word=st.integers(0, 3), value=st.integers(0, 2**32 - 1))
def test_a_forged_size_is_refused(word: int, value: int) -> None:
    """Any other number of items, blocks or words than the payload has; any other kind or number of bits."""
    items = some_items(np.uint32, 3 * CHUNK)
    store, room = stored(items, False), Room(np.uint32, len(items))
    at = int(store.starts[1]) + word
    if value == store.words[at] or (word == 1 and 1 <= value <= 32):
        return
    store.words[at] = value
    status = unpack_wanted(store, UnpackTarget(room.items, 0, 0, ALL), 0, 3, False)
    assert status.tolist() == [0, MALFORMED, 0]
