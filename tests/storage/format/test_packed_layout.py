"""Pieces: the payloads of a partition's chunks in order, neighbors before weights, each piece with pages of its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.format.packed_layout import LINE_WORDS, PIECE_WORDS, PackedLayout

CHUNK = 256


def starts_of(words: list[int]) -> Any:
    return np.concatenate([[0], np.cumsum(words)]).astype(np.int64)


@st.composite
def layouts(draw: st.DrawFn) -> PackedLayout:
    """Of 1 to 9 chunks, with and without weights."""
    words = st.lists(st.integers(1, 3000), min_size=1, max_size=9)
    neighbors = draw(words)
    weights = draw(st.none() | st.lists(st.integers(1, 3000), min_size=len(neighbors), max_size=len(neighbors)))
    edges = len(neighbors) * CHUNK - draw(st.integers(0, CHUNK - 1))
    return PackedLayout("out", edges, CHUNK, starts_of(neighbors), None if weights is None else starts_of(weights))


@given(layouts(), st.integers(1, 4))
def test_a_piece_holds_every_payload_of_its_chunks_once(layout: PackedLayout, step: int) -> None:
    table = layout.pieces(step * CHUNK)
    assert table.firsts.tolist() == [*range(0, layout.chunks, step), layout.chunks]
    assert len(table.sizes) == -(-layout.chunks // step)
    for number in range(len(table.sizes)):
        chunks = range(int(table.firsts[number]), int(table.firsts[number + 1]))
        places = [table.neighbors(number, chunk, chunk + 1) for chunk in chunks]
        assert places[0].start == 0
        if layout.weights is not None:
            weights = [table.weights(number, chunk, chunk + 1) for chunk in chunks]
            assert weights[0].start % LINE_WORDS == 0
            assert 0 <= weights[0].start - places[-1].stop < LINE_WORDS
            assert table.weights(number, chunks[0], chunks[-1] + 1) == slice(weights[0].start, weights[-1].stop)
            places += weights
        for one, other in itertools.pairwise(places):
            assert one.stop <= other.start
        payloads = [table.layout.neighbors[c + 1] - table.layout.neighbors[c] for c in chunks]
        assert [place.stop - place.start for place in places[: len(chunks)]] == payloads
        assert table.sizes[number] % PIECE_WORDS == 0
        assert 0 <= table.sizes[number] - places[-1].stop < PIECE_WORDS


@given(layouts())
def test_bytes_are_those_of_the_payloads(layout: PackedLayout) -> None:
    ends = [layout.neighbors] if layout.weights is None else [layout.neighbors, layout.weights]
    assert layout.nbytes == layout.chunk_bytes.sum() == 4 * sum(int(starts[-1]) for starts in ends)
