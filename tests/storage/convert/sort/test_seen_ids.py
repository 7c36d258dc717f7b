"""The bitmap of the ids that occur: what it holds, their ranks, threads that mark side by side, and its limits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.convert.sort.run import MAX_VERTICES, NARROW_BITS, WIDE_BITS
from penstock.storage.convert.sort.seen_ids import PAGE_BYTES, PAGE_IDS, OccurringIds, SeenIds
from penstock.storage.ingest.core.edges import EdgeBatch

NEAR = st.one_of(st.integers(0, 700), st.integers(0, 3 * PAGE_IDS), st.integers(0, MAX_VERTICES - 1))
PAIRS = st.lists(st.tuples(NEAR, NEAR), max_size=50)


def batch_of(pairs: list[tuple[int, int]]) -> EdgeBatch:
    ends = np.array(pairs, np.uint64).reshape(-1, 2)
    return EdgeBatch(ends[:, 0].copy(), ends[:, 1].copy())


@given(PAIRS, st.lists(NEAR, max_size=5), st.integers(0, 70_000), st.booleans())
def test_vertices_are_ranks(pairs: list[tuple[int, int]], lone: list[int], named: int, drop: bool) -> None:
    seen = SeenIds(1 << 20)
    seen.see(batch_of(pairs), drop_loops=drop)
    seen.name(np.array(lone, np.uint64))
    assert seen.with_edges == len({end for pair in pairs if not drop or pair[0] != pair[1] for end in pair})
    wanted = sorted({end for pair in pairs for end in pair} | set(lone) | set(range(named)))
    found = seen.occurring(named)
    assert not seen.full
    if isinstance(found, int):
        assert wanted == list(range(found))
        return
    assert wanted != list(range(len(wanted)))
    assert (found.count, found.end, found.whole().tolist()) == (len(wanted), wanted[-1] + 1, wanted)
    assert found(np.array(wanted, np.uint64)).tolist() == list(range(len(wanted)))
    keys = np.empty(len(wanted), np.uint64)
    found.keys(np.array(wanted, np.uint64), np.array(wanted[::-1], np.uint64), keys)
    assert keys.tolist() == [rank << 32 | len(wanted) - 1 - rank for rank in range(len(wanted))]


@given(PAIRS.filter(bool), st.booleans(), st.booleans())
def test_keys_become_rows_of_ranks(pairs: list[tuple[int, int]], wide: bool, reverse: bool) -> None:
    pairs = sorted(pairs) if wide else sorted((one % (1 << 32), two % (1 << 32)) for one, two in pairs)
    seen = SeenIds(1 << 20)
    seen.see(batch_of([*pairs, (5, 5), (MAX_VERTICES - 1, 7)]), drop_loops=False)
    found = seen.occurring(0)
    assert isinstance(found, OccurringIds)
    bits = WIDE_BITS if wide else NARROW_BITS
    base = max(0, pairs[0][0] - 3) if wide else 0
    pairs = [pair for pair in pairs if pair[0] - base < 1 << (64 - bits)]
    keys = np.array([(one - base) << bits | two for one, two in pairs], np.uint64)
    neighbors, sources = np.empty(len(keys), np.uint64), np.empty(len(keys) if reverse else 0, np.uint64)
    first, degrees = found.rows(keys, bits, base, neighbors, sources)
    number = {one: rank for rank, one in enumerate(found.whole().tolist())}
    rows = np.repeat(np.arange(first, first + len(degrees)), degrees)
    wanted = [(number[one], number[two]) for one, two in pairs]
    assert list(zip(rows.tolist(), neighbors.tolist(), strict=True)) == wanted == sorted(wanted)
    assert sources.tolist() == (rows.tolist() if reverse else [])


@given(st.permutations(range(4)), st.sets(st.integers(0, 4 * PAGE_IDS - 1), min_size=1, max_size=20))
def test_ranks_in_full_pages(order: list[int], missing: set[int]) -> None:
    """The largest counts of a page, with its words in the order in which pages were met; ids at its borders."""
    seen = SeenIds(4 * PAGE_BYTES)
    ids = np.delete(np.arange(4 * PAGE_IDS, dtype=np.uint32), sorted(missing))
    for page in order:
        part = ids[ids >> 16 == page]
        seen.see(EdgeBatch(part, part), drop_loops=False)
    found = seen.occurring(0)
    if isinstance(found, int):
        assert found == len(ids) == ids[-1] + 1
        return
    assert np.array_equal(found(ids), np.arange(len(ids)))
    assert np.array_equal(found.whole(), ids)


def test_threads_mark_side_by_side() -> None:
    """Threads that set bits of the same words lose none."""
    seen, ids = SeenIds(1 << 22), np.arange(1 << 18, dtype=np.uint32)
    parts = [EdgeBatch(ids[first::16].copy(), ids[first::16].copy()) for first in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda part: seen.see(part, drop_loops=False), parts * 2))
    assert seen.with_edges == len(ids)
    assert seen.occurring(0) == len(ids)


@pytest.mark.parametrize("ids", [[MAX_VERTICES], [(1 << 64) - 1], [0, PAGE_IDS, 2 * PAGE_IDS, 3 * PAGE_IDS]])
def test_what_does_not_fit_makes_it_full(ids: list[int]) -> None:
    seen = SeenIds(3 * PAGE_BYTES)
    seen.see(batch_of([(0, PAGE_IDS), (2 * PAGE_IDS, 0)]), drop_loops=False)
    assert (seen.full, seen.with_edges) == (False, 3)
    seen.see(batch_of([(one, 0) for one in ids]), drop_loops=False)
    assert (seen.full, seen.with_edges) == (True, None)
