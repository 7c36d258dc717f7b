"""Which partitions the cache keeps: scan-resistant, and yet it follows the demand when that moves."""

import numpy as np
import pytest
from penstock.transfer.values import residency
from penstock.transfer.values.residency import age


def choose(use, kept, wanted, pinned, free):
    return residency.choose(use, kept, wanted, pinned, free, np.ones(len(use), np.int64))


class Sweeps:
    """A cache of `slots` over `count` partitions of one chunk each, driven by demand alone."""

    def __init__(self, count, slots):
        self.use = np.zeros(count)
        self.kept = np.zeros(count, bool)
        self.slots = slots
        self.hits = self.wanted = self.swaps = 0

    def want(self, numbers):
        wanted = np.zeros(len(self.use))
        wanted[list(numbers)] = 1
        self.hits += int(self.kept[wanted > 0].sum())
        self.wanted += len(numbers)
        self.use = age(self.use, wanted, slice(0, len(self.use)), len(self.use))
        free = self.slots - int(self.kept.sum())
        evict, admit = choose(self.use, self.kept, wanted > 0, np.zeros(len(self.use), bool), free)
        self.kept[evict] = False
        self.kept[admit] = True
        self.swaps += len(evict)
        assert self.kept.sum() <= self.slots


@pytest.mark.parametrize("batch", [1, 3, 20, 100])
@pytest.mark.parametrize("slots", [1, 10, 25, 70, 99])
def test_cyclic_sweeps_hit_by_cache_over_graph(batch, slots):
    cache = Sweeps(100, slots)
    for sweep in range(12):
        for first in range(0, 100, batch):
            cache.want(range(first, min(first + batch, 100)))
        if sweep == 0:
            cache.hits = cache.wanted = 0
    assert cache.hits / cache.wanted >= 0.9 * slots / 100
    assert cache.swaps == 0  # nothing is thrown out to be read again


def test_two_devices_taking_halves_in_turn_do_not_throw_each_other_out():
    cache = Sweeps(100, 60)
    for _ in range(10):
        cache.want(range(50))
        cache.want(range(50, 100))
    assert cache.swaps == 0


def test_the_cache_follows_the_demand_when_it_moves():
    cache = Sweeps(100, 20)
    for _ in range(5):
        cache.want(range(100))
    assert cache.kept[:20].all()
    for _ in range(6):
        cache.want(range(70, 90))
    assert cache.kept[70:90].all()


def test_the_most_used_take_the_free_slots():
    use = np.array([1.0, 9.0, 3.0, 9.0])
    evict, admit = choose(use, np.zeros(4, bool), np.ones(4, bool), np.zeros(4, bool), free=3)
    assert admit.tolist() == [1, 2, 3]
    assert evict.tolist() == []


def test_only_more_than_twice_the_use_replaces():
    kept, wanted = np.array([True, False]), np.array([False, True])
    none = np.zeros(2, bool)
    assert choose(np.array([1.0, 2.0]), kept, wanted, none, 0)[1].tolist() == []
    evict, admit = choose(np.array([1.0, 2.1]), kept, wanted, none, 0)
    assert (evict.tolist(), admit.tolist()) == ([0], [1])


def test_pinned_stay_and_unwanted_are_not_admitted():
    use = np.array([0.0, 5.0, 50.0])
    kept = np.array([True, False, False])
    assert choose(use, kept, np.array([False, True, False]), kept, 0)[1].tolist() == []
    assert choose(use, kept, np.array([False, True, False]), ~kept, 0)[1].tolist() == [1]


def test_age_halves_with_each_graph_of_chunks_wanted():
    use = np.array([8.0, 0.0, 4.0])
    aged = age(use, np.array([2.0, 0.0]), slice(1, 3), 4)
    np.testing.assert_allclose(aged, [8 * 0.5**0.5, 2, 4 * 0.5**0.5])
    assert use[0] == 8
