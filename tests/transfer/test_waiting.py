"""What waits: never everything, never for long, only what costs the disk much for little."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from penstock.transfer.planning.plan import make_plan
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import Demand
from penstock.transfer.waiting import MOST, Fetching, Prospect, waiting
from support.fakes import CHUNK, check, demand_of, make

RATES = Rates(disk_bytes=1e9, decode_bytes=2e9, copy_bytes=1e10)


def waits(value, fetch, work, waited=None):
    rows = [np.asarray(row, float) for row in (value, fetch, work)]
    return waiting(Prospect(*rows, np.zeros(len(value), np.int64) if waited is None else np.array(waited))).tolist()


def test_what_costs_the_disk_much_for_little_waits():
    assert waits([9, 9, 1], [1, 0, 1], [1, 1, 0.01]) == [False, False, True]
    assert waits([9, 9, 1], [0.001, 0, 0.001], [1, 1, 0.00001]) == [False, False, False], "for too small a gain"
    assert waits([9, 9, 0], [1, 0, 0], [1, 1, 0]) == [False, False, False], "where nothing is wanted"


def test_what_is_cached_goes_before_what_is_on_disk_while_it_is_worth_an_iteration():
    assert waits([1, 1, 1], [0, 1, 1], [0.01] * 3) == [False, True, True]
    assert waits([0.01, 1, 1], [0, 1, 1], [0.01] * 3) == [False, False, False]
    assert waits([1, 1, 1], [1, 1, 1], [0.01] * 3) == [False, False, False]


def test_nobody_waits_longer_than_the_bound():
    assert waits([1, 1, 1], [0, 1, 1], [0.01] * 3, [0, MOST - 1, MOST]) == [False, True, False]


NUMBERS = st.sampled_from([0.0, 1e-9, 1.0, 1e12]) | st.floats(0, 1e3)


@given(st.lists(st.tuples(NUMBERS | st.floats(-10, 10), NUMBERS, NUMBERS, st.integers(0, MOST)), max_size=20))
def test_some_of_what_is_wanted_always_goes(rows):
    value, fetch, work, waited = (np.array([row[at] for row in rows]) for at in range(4))
    waits = waiting(Prospect(value, fetch, work, waited))
    wanted = work > 0
    assert not (waits & ~wanted).any()
    assert not wanted.any() or (wanted & ~waits).any()
    assert not (waits & (fetch == 0)).any()
    assert not (waits & (waited >= MOST)).any()


def test_fetching_counts_the_busiest_stage_of_what_is_on_disk():
    bytes_of = Fetching(np.array([4, 1, 0]), np.array([4, 4, 0]), np.array([4, 100, 1000]))
    np.testing.assert_allclose(bytes_of.seconds(RATES), np.array([4e-9, 1e-8, 0]))


def test_a_pipeline_says_what_it_would_read_and_changes_nothing_by_saying_so():
    pipeline, reader = make(partitions=4, step=2, slots=2, tail=0)
    table = pipeline.table("out")
    demand = demand_of(table, [0, 1, 2, 7])
    before = pipeline.cache.use.copy()
    assert pipeline.fetching(demand).disk.tolist() == [32, 16, 0, 16]
    assert pipeline.fetching(demand).decode.tolist() == [64, 32, 0, 32]
    assert np.array_equal(pipeline.cache.use, before)
    assert pipeline.cache.free == 2
    for view in pipeline.arrivals(pipeline.plan(demand, RATES), demand):
        check(view, demand)
    assert pipeline.fetching(demand).disk.tolist() == [0, 0, 0, 16]
    assert reader.chunks == 4


def test_no_view_reaches_over_what_waits():
    """Partitions 0 to 2 have places one after another, but 1 misses the chunk that is wanted of it."""
    pipeline, _ = make(partitions=4, step=2, slots=3, tail=0)
    table = pipeline.table("out")
    first = demand_of(table, [0, 1, 2, 4, 5])
    for view in pipeline.arrivals(pipeline.plan(first, RATES), first):
        check(view, first)
    wanted = demand_of(table, [0, 4])
    assert [task.partitions for task in pipeline.plan(wanted, RATES).tasks] == [(0, 1, 2)]
    waits = Demand("out", *(np.array([1, 0, 1, 0]) * CHUNK for _ in range(3)), np.zeros(4), wanted.wanted_chunks,
                   waiting=np.array([False, True, False, False]))  # fmt: skip
    plan = make_plan(waits, table, pipeline.residency(waits), RATES, pipeline.options)
    assert [task.partitions for task in plan.tasks] == [(0,), (2,)]
