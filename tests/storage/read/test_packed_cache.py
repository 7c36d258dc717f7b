"""A cache of pieces: no word belongs to two, what finds no gap has no place, and what is dropped is forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.format.packed_layout import PIECE_WORDS, PackedLayout
from penstock.storage.read.partition_cache import PartitionCache

CHUNK = 256
WORDS = [500, 3000, 10, 1500, 2500, 100, 900, 2000]


def layout_of(direction: str, words: list[int]) -> PackedLayout:
    starts = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    return PackedLayout(direction, len(words) * CHUNK, CHUNK, starts)


LAYOUTS = [layout_of("out", WORDS), layout_of("in", WORDS[::-1])]
PIECES = 2 * len(WORDS)


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.sets(st.integers(0, PIECES - 1)), st.sets(st.integers(0, PIECES - 1))), max_size=12),
)
def test_no_word_belongs_to_two_pieces(pages: int, moves: list[tuple[set[int], set[int]]]) -> None:
    cache = PartitionCache(LAYOUTS, CHUNK, room=pages * PIECE_WORDS)
    assert cache.nbytes == 4 * cache.room
    for evict, admit in moves:
        placed = set(np.flatnonzero(cache.starts >= 0).tolist())
        cache.replace(evict & placed, admit - placed)
        assert not any(cache.starts[list((evict & placed) - admit)] >= 0)
        owners = np.zeros(cache.room, dtype=int)
        for entry in np.flatnonzero(cache.starts >= 0):
            owners[cache.starts[entry] : cache.starts[entry] + cache.sizes[entry]] += 1
        assert owners.max(initial=0) <= 1
        assert cache.free == int((owners == 0).sum())


def test_a_dropped_piece_is_forgotten_and_one_in_use_stays() -> None:
    cache = PartitionCache(LAYOUTS, CHUNK, room=4 * PIECE_WORDS)
    entry = cache.entry("in", 1)
    cache.replace([], [entry])
    piece = cache.arrays("in", 1, 1, False)[0]
    assert len(piece) == cache.sizes[entry]
    cache.mark("in", np.array([1]), False)
    cache.pins[entry] = 1
    with pytest.raises(ValueError, match="in use"):
        cache.replace([entry], [])
    cache.pins[entry] = 0
    cache.replace([entry], [])
    assert not cache.held("in").any()
    with pytest.raises(ValueError, match="are at"):
        cache.arrays("in", 1, 1, False)


def test_where_all_fit_each_has_its_place_in_order() -> None:
    for words in (None, 1 << 20):
        cache = PartitionCache(LAYOUTS, 2 * CHUNK, room=words)
        assert cache.whole
        assert cache.free == 0
        assert cache.starts.tolist() == (np.cumsum(cache.sizes) - cache.sizes).tolist()
        cache.replace([0], [])
        assert cache.starts[0] == 0
        for direction in ("out", "in"):
            cache.mark(direction, np.arange(len(WORDS)), False)
            assert cache.complete(direction, False)
            assert not cache.complete(direction, True)
