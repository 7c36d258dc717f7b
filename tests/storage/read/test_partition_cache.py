"""The host cache: places, validity by chunk, and what it refuses to drop."""

from types import SimpleNamespace

import numpy as np
import pytest
from penstock.storage.read.partition_cache import PartitionCache


def sized(direction, edges):
    return SimpleNamespace(direction=direction, edges=edges, chunk_edges=8)


BOTH = [sized("out", 50), sized("in", 37)]


def cache_of(slots=None, weights=None, extents=BOTH):
    return PartitionCache(extents, 16, (np.uint32, weights), None if slots is None else 16 * slots)


def test_where_all_fits_each_adjacency_is_one_array():
    cache = cache_of()
    assert cache.whole
    assert cache.nbytes == (50 + 37) * 4
    out, weights = cache.arrays("out", 0, 4, False)
    into, _ = cache.arrays("in", 0, 3, False)
    assert (len(out), len(into), weights) == (50, 37, None)
    assert not np.shares_memory(out, into)
    part, _ = cache.arrays("out", 2, 2, False)
    assert len(part) == 18
    part[:] = 5
    assert (out[32:] == 5).all()


def test_slots_are_shared_by_both_adjacencies_and_never_overlap():
    cache = cache_of(slots=3)
    mine = [cache.entry("in", 2), cache.entry("out", 1), cache.entry("out", 0)]
    cache.replace([], mine)
    views = [cache.arrays("in", 2, 1, False)[0], cache.arrays("out", 1, 1, False)[0]]
    views.append(cache.arrays("out", 0, 1, False)[0])
    assert [len(v) for v in views] == [5, 16, 16]
    for i, view in enumerate(views):
        view[:] = i
    assert [set(v.tolist()) for v in views] == [{0}, {1}, {2}]
    assert cache.free == 0
    cache.replace([], [cache.entry("out", 2)])
    assert cache.starts[cache.entry("out", 2)] == -1


def test_partitions_lie_together_only_in_order():
    cache = cache_of(slots=3)
    cache.replace([], [1, 0])  # out 1 in the first slot, out 0 behind it
    with pytest.raises(ValueError, match=r"partitions 0\.\.1"):
        cache.arrays("out", 0, 2, False)
    with pytest.raises(ValueError, match="are at"):
        cache.arrays("out", 3, 1, False)


def test_an_evicted_partition_forgets_its_chunks():
    cache = cache_of(slots=2)
    cache.replace([], [0, 1])
    cache.mark("out", np.array([0, 1, 2]), False)
    cache.replace([1], [3])
    assert cache.held("out").tolist() == [1, 1, 0, 0, 0, 0, 0]
    assert cache.starts.tolist() == [0, -1, -1, 16, -1, -1, -1]
    cache.mark("out", np.array([6]), False)
    cache.replace([3], [cache.entry("in", 0)])
    assert cache.held("out").tolist() == [1, 1, 0, 0, 0, 0, 0]


def test_what_is_in_use_is_not_dropped():
    cache = cache_of(slots=2)
    cache.replace([], [0, 1])
    cache.pins[0] += 1
    cache.flights[1] = [object()]
    assert cache.busy.tolist() == [True, True] + [False] * 5
    for entry in (0, 1):
        with pytest.raises(ValueError, match="in use"):
            cache.replace([entry], [])


def test_complete_counts_neighbors_and_weights_apart():
    cache = cache_of(weights=np.float32)
    assert cache.nbytes == 87 * 8
    every = np.arange(7)
    cache.mark("out", every[:6], False)
    assert not cache.complete("out", False)
    cache.mark("out", every[6:], True)
    assert cache.complete("out", False)
    assert not cache.complete("out", True)
    assert not cache.complete("in", False)
    cache.mark("out", every, True)
    assert cache.complete("out", True)
    assert cache.arrays("out", 0, 4, True)[1].dtype == np.float32


def test_a_cache_without_weights_refuses_to_show_them():
    assert not cache_of().with_weights
    with pytest.raises(ValueError, match="without them"):
        cache_of().arrays("out", 0, 1, True)


def test_a_shared_cache_is_never_complete():
    cache = cache_of(slots=4, extents=BOTH[:1])
    assert cache.whole  # four slots for four partitions: that is whole
    cache = cache_of(slots=4)
    cache.replace([], range(4))
    cache.mark("out", np.arange(7), False)
    assert not cache.complete("out", False)


def test_a_cache_of_no_room_keeps_nothing():
    cache = cache_of(slots=0, weights=np.float32)
    assert (cache.nbytes, cache.free, cache.whole) == (0, 0, False)
    cache.replace([], range(cache.count))
    assert (cache.starts == -1).all()
    assert not cache.complete("out", False)
