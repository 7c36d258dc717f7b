"""Blocks of whole rows: every row in one of them, none longer than the buffer, places without gaps."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.execution.triangles import strips
from penstock.engine.state.row_blocks import (
    MESSAGES,
    RowBlock,
    RowOffsets,
    block_capacity,
    blocks,
    message_capacity,
    offsets,
)
from penstock.storage.format.index import Index, from_offsets

DEGREES = np.array([3, 0, 9, 1, 1, 0, 4, 0])
OTHERS = np.array([1, 2, 0, 6, 0, 0, 1, 5])


def index_of(degrees: np.ndarray) -> Index:
    return from_offsets(np.concatenate([[0], np.cumsum(degrees)]))


@pytest.mark.parametrize("sides", [(DEGREES,), (DEGREES, OTHERS)])
@pytest.mark.parametrize("most", [1, 9, 12, 1000])
def test_rows_are_cut_into_blocks(sides: tuple[np.ndarray, ...], most: int) -> None:
    indexes = [index_of(degrees) for degrees in sides]
    capacity = block_capacity(indexes, most)
    total = np.sum(sides, axis=0)
    assert capacity == (total.sum() if total.sum() <= most else max(most, total.max()))
    found = list(blocks(indexes, capacity))
    assert [found[0].first, *(block.last for block in found)] == [*(block.first for block in found), len(DEGREES)]
    for block in found:
        assert block.messages == total[block.first : block.last].sum() <= capacity
        assert np.array_equal(np.diff(offsets(block)), total[block.first : block.last])
        more = total[block.first : block.last + 1].sum()
        assert block.last == len(DEGREES) or more > capacity, "the next row would have found room"


def test_edges_of_a_block_in_each_walk() -> None:
    block = RowBlock(2, 4, (index_of(DEGREES), index_of(OTHERS)))
    assert (block.edges(0), block.edges(1)) == ((3, 13), (3, 9))


def test_a_row_longer_than_the_buffer_is_no_block() -> None:
    with pytest.raises(AssertionError, match="longer than the buffer"):
        list(blocks([index_of(DEGREES)], 8))


@pytest.mark.parametrize(("most", "wanted"), [(1000, [(0, 8)]), (9, [(0, 4), (4, 8)]), (1, None)])
def test_strips_hold_so_many_edges(most: int, wanted: list[tuple[int, int]] | None) -> None:
    """Rows are bounded by the square root of all neighbors (19 of them: 5), which cuts the 9 down."""
    found = strips(DEGREES, most)
    assert wanted is None or found == wanted
    assert [first for first, _ in found] == [0, *(last for _, last in found[:-1])]
    assert found[-1][1] == len(DEGREES)
    bounds = np.minimum(DEGREES, 5)
    assert all(bounds[first:last].sum() <= most or last == first + 1 for first, last in found)


def test_buffers_are_larger_behind_a_link() -> None:
    """There a partition travels once for every block that it has rows of; a small device does as the host does."""
    assert [message_capacity(size) for size in (None, 1 << 20, 1 << 40)] == [MESSAGES, MESSAGES, 1 << 33]


def test_kept_offsets_are_those_of_the_block_that_was_asked_for() -> None:
    indexes, kept = [index_of(DEGREES), index_of(OTHERS)], RowOffsets()
    for one in (indexes[:1], indexes):
        for block in blocks(one, 12):
            expected = offsets(block)
            found = kept.of(block)
            assert np.array_equal(found, expected)
            assert kept.of(block) is found
    kept.release()
    assert np.array_equal(kept.of(block), expected)
