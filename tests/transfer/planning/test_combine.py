"""Task combination: every wanted partition in exactly one task, and only what lies together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.transfer.planning.combine import Rules, combine

STEP = 100


def plain(*arguments):
    """(route, partitions) of every group; their members follow one another."""
    groups = combine(*arguments)
    assert [group.first for group in groups[1:]] == [group.last for group in groups[:-1]]
    return [group[:2] for group in groups]


def test_filter_partitions_travel_by_k():
    places = np.full(7, -1)
    groups = plain([0, 1, 2, 3, 4, 6], ["filter"] * 6, places, STEP, Rules(4))
    assert groups == [("filter", (0, 1, 2, 3)), ("filter", (4,)), ("filter", (6,))]


def test_filter_partitions_do_not_mix_cache_and_slab():
    places = np.array([-1, -1, 500, 600, 900])
    groups = plain([0, 1, 2, 3, 4], ["filter"] * 5, places, STEP, Rules(4))
    assert [numbers for _, numbers in groups] == [(0, 1), (2, 3), (4,)]


def test_resident_partitions_are_one_task_where_they_lie_in_order_even_over_gaps():
    places = np.array([0, 100, 200, 300, 800, 900])
    groups = plain([0, 3, 4, 5], ["resident"] * 4, places, STEP, Rules(1))
    assert groups == [("resident", (0, 1, 2, 3)), ("resident", (4, 5))]


def test_resident_tasks_stay_small_while_others_are_fetched():
    places = np.array([0, 100, 200, -1])
    groups = plain([0, 1, 2, 3], ["resident"] * 3 + ["filter"], places, STEP, Rules(2))
    assert groups == [("resident", (0, 1)), ("resident", (2,)), ("filter", (3,))]


@given(st.data(), st.integers(1, 40), st.integers(1, 5))
def test_every_wanted_partition_is_in_exactly_one_group(data, count, k):
    wanted = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    slots = data.draw(st.permutations(range(count)))
    kept = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    names = st.sampled_from(["resident", "filter", "compaction", "zero-copy"])
    places = np.where(kept, np.array(slots) * STEP, -1)
    numbers = [i for i in range(count) if wanted[i]]
    routes = [data.draw(names) for _ in numbers]
    groups = plain(numbers, routes, places, STEP, Rules(k))
    flat = [n for _, group in groups for n in group]
    assert sorted(n for n in flat if n in numbers) == numbers
    assert len(flat) == len(set(flat))
    for route, group in groups:
        assert np.all(np.diff(group) == 1)
        assert {routes[numbers.index(n)] for n in group if n in numbers} == {route}
        together = places[list(group)]
        assert len(group) == 1 or np.all(together == -1) or np.all(np.diff(together) == STEP)
        assert len(group) <= k or set(routes) == {"resident"}


def test_what_is_read_in_place_is_one_task_even_over_gaps():
    rules = Rules(2, ("resident", "zero-copy"))
    groups = plain([0, 2, 3, 5], ["zero-copy", "zero-copy", "filter", "zero-copy"], np.full(6, -1), STEP, rules)
    assert groups == [("zero-copy", (0, 1, 2)), ("filter", (3,)), ("zero-copy", (5,))]


def test_what_is_read_in_place_joins_only_where_the_host_has_it_in_one_run():
    host = np.array([0, 100, 200, 700, -1, -1])
    rules = Rules(2, ("resident", "zero-copy"), host)
    groups = plain([0, 2, 3, 4, 5], ["zero-copy"] * 5, np.full(6, -1), STEP, rules)
    assert [numbers for _, numbers in groups] == [(0, 1, 2), (3,), (4,), (5,)]


def test_compacted_partitions_join_while_a_slab_holds_them():
    rules = Rules(4, (), None, np.array([30, 60, 20, 200, 5, 5]), 100)
    groups = plain([0, 1, 3, 4, 5, 7], ["compaction"] * 6, np.full(8, -1), STEP, rules)
    assert [numbers for _, numbers in groups] == [(0, 1), (3,), (4,), (5, 6, 7)]
