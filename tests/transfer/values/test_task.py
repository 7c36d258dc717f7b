"""Cutting an adjacency into partitions, and demands over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.format.index import from_offsets
from penstock.transfer.values.task import partitions, whole_demand
from support.fakes import CHUNK, FakeIndex


def test_a_row_longer_than_a_partition_is_split():
    # rows: 0 has 3 edges, 1 has none, 2 has 40, 3 has 5, 4 and 5 none
    index = FakeIndex([0, 3, 3, 43, 48, 48, 48])
    table = partitions(index, "out", 48, 16, CHUNK)
    assert [(p.e0, p.e1, p.v0, p.v1) for p in table] == [(0, 16, 0, 3), (16, 32, 2, 3), (32, 48, 2, 4)]
    assert table[1].number == 1
    assert table.edges == 48


def test_no_edges_no_partitions():
    table = partitions(FakeIndex([0, 0, 0]), "in", 0, 16, CHUNK)
    assert len(table) == 0
    assert table.edges == 0


@pytest.mark.parametrize("size", [0, -8, 12])
def test_partitions_are_whole_chunks(size):
    with pytest.raises(InputError, match="--partition-bytes"):
        partitions(FakeIndex([0, 20]), "out", 20, size, CHUNK)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(1, 4))
def test_partitions_cover_every_edge_and_name_its_rows(degrees, step):
    offsets = np.r_[0, np.cumsum(degrees)]
    edges = int(offsets[-1])
    table = partitions(FakeIndex(offsets), "out", edges, step * CHUNK, CHUNK)
    owner = np.repeat(np.arange(len(degrees)), degrees)
    assert sum(p.e1 - p.e0 for p in table) == edges
    for p in table:
        assert p.e0 == p.number * step * CHUNK
        assert (p.v0, p.v1) == (owner[p.e0], owner[p.e1 - 1] + 1)


def test_whole_demand_wants_all():
    table = partitions(FakeIndex([0, 3, 43, 45]), "out", 45, 16, CHUNK)
    demand = whole_demand(table, edge_bytes=8)
    assert demand.active_edges.tolist() == [16, 16, 13]
    assert demand.lines.tolist() == [1, 1, 1]
    assert demand.active_vertices.tolist() == [2, 1, 2]
    assert demand.wanted.all()


def test_edges_of_no_row_count_with_the_nearest_row():
    index = from_offsets(np.array([0, 3, 9, 30, 40, 50])).of_rows(2, 4, 4)
    table = partitions(index, "out", 40, 8, CHUNK)
    assert table.v0.tolist() == [2, 2, 2, 2, 3]
    assert table.v1.tolist() == [3, 3, 3, 4, 4]
