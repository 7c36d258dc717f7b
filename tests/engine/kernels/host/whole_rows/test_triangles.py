"""Rows as tables: every neighbor is found and nothing else; keys fall; all triangles of a graph with hubs count."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from penstock.engine import Graph, Session, from_edges, run
from penstock.engine.kernels.host.whole_rows.triangles import (
    SLOT,
    candidates_of,
    count_users,
    fill_table,
    list_users,
    slot_of,
    sort_falling,
    table_bits,
)
from penstock.engine.programs.triangles import Triangles


@numba.njit
def find(row, ways, w, wanted, present, slots, slot_ways):  # type: ignore[no-untyped-def]
    bits = table_bits(len(row))
    fill_table(row, ways, w, bits, present, slots, slot_ways)
    candidates = np.empty(len(wanted) + 1, np.uint64)
    count, here = candidates_of(wanted, 0, w, bits, present, candidates)
    found = [(np.int64(candidates[0]), np.int64(0))][:0]
    for hit in range(count):
        slot = slot_of(w, bits, slots, wanted[candidates[hit]])
        if slots[slot] != w:
            found.append((np.int64(candidates[hit]), np.int64(slot_ways[slot])))
    return here, found


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("length", [1, 2, 63, 700])
def test_what_stands_before_a_vertex_is_found_in_its_row(kind, length) -> None:
    random = np.random.default_rng(length)
    w, *ids = random.choice(1 << 20, 2 * length + 1, replace=False).astype(kind)
    row, ways = np.array(ids[:length], kind), random.integers(1, 3, length).astype(np.uint8)
    wanted = random.permutation(np.array(ids, kind))
    end = int(random.integers(1, len(wanted) + 1))
    wanted = np.concatenate([wanted[:end], np.array([w], kind), wanted[end:]])
    bits = int(table_bits.py_func(length))
    room = np.empty(1 << (bits - 6), np.uint64), np.empty(1 << (bits - int(SLOT)), kind), np.empty(1 << bits, np.uint8)
    here, found = find(row, ways, np.uint64(w), wanted, *room)
    places = {int(x): int(way) for x, way in zip(row, ways, strict=True)}
    assert here == end
    assert found == [(i, places[int(x)]) for i, x in enumerate(wanted[:end]) if int(x) in places]


@pytest.mark.parametrize("count", [0, 1, 2, 15, 300])
def test_keys_fall(count) -> None:
    keys = np.random.default_rng(count).integers(0, 50, count + 1).astype(np.uint64)
    expected = [*np.sort(keys[:count])[::-1], keys[count]]
    numba.njit(lambda keys, count: sort_falling(keys, count))(keys, count)
    assert keys.tolist() == [int(key) for key in expected]


def test_rows_that_use_a_vertex_are_listed_by_vertex() -> None:
    starts, targets = np.array([0, 2, 3, 5]), np.array([7, 5, 7, 6, 7], np.uint32)
    ones = np.uint64(10), starts, targets, np.ones(5, np.uint8)
    begins = np.zeros(4, np.int64)
    count_users(1, 3, ones, np.uint64(5), np.uint64(8), begins)
    assert begins.tolist() == [1, 1, 2, 0]  # the row of one neighbor has no triangle
    np.cumsum(begins, out=begins)
    users = np.empty(4, np.uint32)
    list_users(1, 3, ones, np.uint64(5), np.uint64(8), begins, users)
    assert begins.tolist() == [0, 1, 2, 4]
    assert [users[0], users[1], *sorted(users[2:])] == [10, 12, 10, 12]


@pytest.mark.parametrize("strips", [1, 3])
def test_a_graph_with_hubs_has_the_triangles_of_its_matrix(strips, monkeypatch) -> None:
    random = np.random.default_rng(3)
    ends = (random.random((2, 4000)) ** 3 * 300).astype(np.int64)
    matrix = np.zeros((300, 300), np.int64)
    matrix[ends[0], ends[1]] = matrix[ends[1], ends[0]] = 1
    np.fill_diagonal(matrix, 0)
    offsets = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))])
    graph = Graph.from_arrays(offsets, np.nonzero(matrix)[1].astype(np.uint32), None, directed=False)
    if strips > 1:
        most = graph.edges // 3
        monkeypatch.setattr("penstock.engine.execution.triangles.strip_edges", lambda graph, memory_bytes: most)
    with Session(graph, device="cpu", threads=2) as session:
        found = session.run(Triangles()).fields["triangles"]
    np.testing.assert_array_equal(found, np.diagonal(matrix @ matrix @ matrix) // 2)


def test_large_cliques_are_trusses_of_their_sizes() -> None:
    """One of 80 vertices, one of 70, and an edge between them."""
    pairs = [(first + u, first + v) for first, size in ((0, 80), (80, 70)) for u in range(size) for v in range(u)]
    graph = from_edges(np.array([*pairs, (0, 80)]), undirected=True)
    assert run("trussness", graph)["truss"].tolist() == [80] * 80 + [70] * 70
