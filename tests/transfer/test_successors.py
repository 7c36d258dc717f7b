"""Whom active rows lead to equals a loop in Python; only whole rows of what is passed are left."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.storage.format.index import from_degrees
from penstock.transfer.staging.gather import ActiveRows, GatherSource
from penstock.transfer.successors import keep_whole_rows, mark_successors, unmark
from penstock.transfer.values.task import partitions

CHUNK = 4


def marked(words: NDArray[np.uint64]) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


@given(
    degrees=st.lists(st.integers(0, 9), min_size=1, max_size=140),
    seed=st.integers(0, 99),
    steps=st.integers(1, 3),
    every=st.booleans(),
)
def test_equals_a_loop_in_python(degrees: list[int], seed: int, steps: int, every: bool) -> None:
    rng, count = np.random.default_rng(seed), len(degrees)
    index = from_degrees(count, lambda: [np.array(degrees, np.int64)], widest=3)
    neighbors = rng.integers(0, count, index.edges).astype(np.uint32)
    starts = index.starts(0, count + 1)
    chosen = np.flatnonzero(rng.random(count) < 0.4)
    words = np.zeros(-(-count // 64), np.uint64)
    np.bitwise_or.at(words, chosen >> 6, np.uint64(1) << (chosen & 63).astype(np.uint64))
    active = ActiveRows(None if every else words, index.arrays())
    table = partitions(index, "out", index.edges, CHUNK * steps, CHUNK)
    found = np.zeros_like(words)
    for number in range(0, len(table), 2):
        part = table[number]
        mark_successors(active, part, GatherSource(neighbors[part.e0 : part.e1], None, part.e0), found)
    wanted = set()
    for v in range(count) if every else chosen.tolist():
        edges = [e for e in range(starts[v], starts[v + 1]) if e // (CHUNK * steps) % 2 == 0]
        wanted |= {int(neighbors[e]) for e in edges}
    assert marked(found) == wanted
    passed = (rng.random(-(-index.edges // CHUNK)) < 0.7).astype(np.uint8)
    counts = keep_whole_rows(found, active, passed, (CHUNK * steps, CHUNK))
    expected = np.zeros_like(counts)
    left = set()
    for v in wanted:
        row = range(starts[v], starts[v + 1])
        if len(row) and all(passed[e // CHUNK] for e in row) and len({e // (CHUNK * steps) for e in row}) == 1:
            left.add(v)
            expected[:, row[0] // (CHUNK * steps)] += 1, len(row)
    assert marked(found) == left
    np.testing.assert_array_equal(counts, expected)
    unmark(found, np.array(sorted(left)[::2] * 2, dtype=np.int64))
    assert marked(found) == set(sorted(left)[1::2])
