"""Rows that pulls keep: what they may take, and when they are all that there are."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.state.unmatched_rows import UnmatchedRows, unmatched_bytes


@pytest.mark.parametrize(
    ("vertices", "free", "edges", "expected"),
    [
        (1 << 22, 1 << 30, 1 << 29, (24 << 20) + (64 << 10)),
        (1 << 22, 30 << 20, 1 << 29, 10 << 20),
        (1 << 22, 6 << 20, 1 << 29, 0),  # less than twice what the table of segments takes
        (1 << 22, 520 << 20, 1 << 29, 8 << 20),  # edges stay
        (1 << 22, 1 << 29, 1 << 29, 0),
        (1 << 22, -(1 << 20), 1 << 29, 0),
        (0, 1 << 30, 0, 64 << 10),
    ],
)
def test_room_follows_vertices_and_what_is_free(vertices: int, free: int, edges: int, expected: int) -> None:
    assert unmatched_bytes(vertices, free, edges) == expected


def test_room_is_what_was_asked_for() -> None:
    rows = UnmatchedRows.with_room(1 << 20, 1 << 16, np.uint32)
    assert 0 <= (1 << 20) - rows.items.nbytes - rows.starts.nbytes < 4


@pytest.mark.parametrize(
    ("segments", "items", "complete"), [(0, 0, True), (3, 100, True), (3, 101, False), (8, 100, True), (9, 100, False)]
)
def test_they_are_complete_where_all_found_room(segments: int, items: int, complete: bool) -> None:
    rows = UnmatchedRows(np.empty(100, np.uint32), np.zeros(9, np.int64))
    rows.complete = True
    rows.begin()
    assert not rows.complete
    rows.taken[0] += np.uint64(segments << 40 | items)
    rows.end()
    assert rows.complete == complete
    if complete:
        assert (rows.segments, rows.used, rows.starts[segments]) == (segments, items, items)
