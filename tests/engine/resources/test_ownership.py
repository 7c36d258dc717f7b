"""Ranges of rows are contiguous, complete and fair."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine.resources.ownership import MARGIN, Ownership, seconds_for_edge
from penstock.storage.format.index import from_offsets
from penstock.transfer.values.rates import Rates


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 5))
def test_ranks_divide_all_rows_evenly(degrees: list[int], size: int) -> None:
    index = from_offsets(np.concatenate([[0], np.cumsum(degrees)]))
    shares = [Ownership.of([index], len(degrees), rank, size) for rank in range(size)]
    rows = [share.rows(index) for share in shares]
    assert [rows[0].v0, rows[-1].v1, rows[0].e0, rows[-1].e1] == [0, len(degrees), 0, sum(degrees)]
    assert all(one.v1 == other.v0 and one.e1 == other.e0 for one, other in pairwise(rows))
    assert max(one.e1 - one.e0 for one in rows) <= sum(degrees) / size + max(degrees)


def test_two_adjacencies_are_divided_together() -> None:
    ahead, back = (from_offsets(np.concatenate([[0], np.cumsum(each)])) for each in ([8, 0, 0, 0], [0, 0, 4, 4]))
    assert Ownership.of([ahead, back], 4, 0, 2).bounds.tolist() == [0, 1, 4]
    assert Ownership.of([back], 4, 0, 2).bounds.tolist() == [0, 3, 4]
    assert Ownership.of([], 4, 1, 2).vertices == (2, 4)


def test_kernels_may_read_a_block_beside_their_rows() -> None:
    index = from_offsets(np.arange(5) * MARGIN)
    assert Ownership.of([index], 4, 1, 4).read(index) == (0, 3 * MARGIN)
    assert Ownership.of([index], 4, 3, 8).read(index) == (2 * MARGIN, 2 * MARGIN)


def test_ranks_of_unequal_speed_begin_with_unequal_shares() -> None:
    index = from_offsets(np.arange(0, 81, 2))
    assert Ownership.of([index], 40, 0, 3, (1.0, 2.0, 1.0)).bounds.tolist() == [0, 10, 30, 40]
    assert Ownership.of([], 40, 0, 2, (1.0, 3.0)).bounds.tolist() == [0, 10, 40]


def test_what_an_edge_takes_to_read() -> None:
    rates = Rates(disk_bytes=2.0, decode_bytes=4.0, copy_bytes=8.0, kernel_edges=4.0)
    assert seconds_for_edge(2.0, 4.0, rates) == 2.25
    assert seconds_for_edge(0.0, 4.0, rates) == 0.25
