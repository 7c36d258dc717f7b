"""How a device's edge budget is divided, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.errors import InputError
from penstock.transfer.layout import AdjacencySize
from penstock.transfer.share import SLABS, Share, share

ONE = [AdjacencySize(1000, 4, 1, chunk_edges=10)]


@pytest.mark.parametrize(
    ("memory", "route", "weights", "expected"),
    [
        (4000, "auto", False, Share(100, 0, 10, True)),
        (4000, "auto", True, Share(20, 3, 37, False)),
        (4000, "filter", False, Share(100, 3, 0, False)),
        (4000, "zero-copy", False, Share(100, 0, 0, False)),
        (120, "filter", False, Share(10, 3, 0, False)),
        (0, "zero-copy", True, Share(100, 0, 0, False)),
    ],
)
def test_divisions(memory, route, weights, expected):
    found = share(memory, ONE, 400, route, weights=weights)
    assert (found.slabs, found.whole) == (expected.slabs, expected.whole)
    assert found == expected or route == "auto"


def test_what_does_not_fit_is_refused_with_the_way_out():
    with pytest.raises(InputError, match="zero-copy"):
        share(100, ONE, 400, "filter", weights=False)
    with pytest.raises(InputError, match="--route auto"):
        share(3999, ONE, 400, "resident", weights=False)


@given(memory=st.integers(0, 6000), partition=st.integers(1, 2000), weights=st.booleans())
def test_what_is_taken_stays_within_the_budget(memory, partition, weights):
    for route in ("auto", "filter"):
        try:
            found = share(memory, ONE, partition, route, weights=weights)
        except InputError:
            assert memory < SLABS * 10 * (5 if weights else 4)
            continue
        each = 5 if weights else 4
        held = 1000 * each if found.whole else (found.slabs + found.slots) * found.partition_edges * each
        assert held <= memory
        assert found.partition_edges % 10 == 0
