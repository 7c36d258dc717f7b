"""Chunks spread evenly over stripes, keep their neighbors, and shards are looked for in order."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.format import stripe


@given(st.integers(0, 500), st.integers(1, 7), st.integers(1, 9))
def test_every_chunk_has_one_place_and_shares_are_equal(chunks: int, stripes: int, run: int) -> None:
    where, local = stripe.place(chunks, stripes, run)
    assert len(set(zip(where.tolist(), local.tolist(), strict=True))) == chunks
    shares = np.bincount(where, minlength=stripes)
    assert len(shares) == stripes
    assert shares.max(initial=0) - shares.min(initial=chunks) <= 1
    for number in range(stripes):
        assert np.array_equal(local[where == number], np.arange(shares[number]))


def test_neighbors_stay_together_in_runs() -> None:
    where, local = stripe.place(10 * 4 * 8, 4, 8)
    runs = where.reshape(-1, 8)
    assert (runs == runs[:, :1]).all()
    assert (np.diff(local.reshape(-1, 8)) == 1).all()


def test_a_stride_in_the_graph_does_not_fall_on_one_stripe() -> None:
    where, _ = stripe.place(8 * 4 * 200, 4, 8)
    every_group = np.bincount(where[:: 8 * 4], minlength=4)
    assert every_group.min() > 20


def test_the_writer_and_the_reader_agree_on_groups() -> None:
    """The writer places group by group, not knowing how many follow."""
    chunks, stripes, run = 77, 3, 4
    size = stripes * run
    where, _ = stripe.place(chunks, stripes, run)
    for group, first in enumerate(range(0, chunks, size)):
        count = min(size, chunks - first)
        assert np.array_equal(stripe.group_stripes(group, count, stripes), where[first : first + count])


def test_shards_are_sought_where_told_then_where_written_then_beside() -> None:
    found = list(stripe.candidates(Path("/g/web.h5"), "web.0.h5", "/old", [Path("/new"), Path("/g")]))
    assert found == [Path("/new/web.0.h5"), Path("/g/web.0.h5"), Path("/old/web.0.h5")]
