"""How a budget is divided: never more than there is, smaller parts before refusal, and an honest minimum."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.transfer.planning.host_budget import HostBudgetRequest, divide_host_budget, reader_bytes
from support.fakes import Sized

MIB = 1 << 20
CHUNK = 262_144


def spent(budget, plan, sizes):
    """Bytes that a layout uses beyond the fixed part."""
    slot = plan.partition_edges * plan.edge_bytes
    cached = sum(size.edges for size in sizes) * plan.edge_bytes if plan.whole else plan.slots * slot
    return cached + plan.slab_bytes + reader_bytes(budget, plan.reads_in_flight, one_by_one=plan.one_by_one)


def test_what_fits_is_cached_whole_without_slabs():
    sizes = [Sized(50 * MIB, 4)]
    plan = divide_host_budget(HostBudgetRequest(1 << 30, 100 * MIB), sizes, with_weights=False)
    assert plan.whole
    assert (plan.slabs, plan.slots, plan.partition_edges) == (0, 7, 8 * MIB)


def test_weights_and_both_directions_count():
    size = Sized(100 * MIB, 4, 1)
    assert divide_host_budget(HostBudgetRequest(600 * MIB, 0), [size], with_weights=False).whole
    assert divide_host_budget(HostBudgetRequest(600 * MIB, 0), [size], with_weights=True).edge_bytes == 5
    assert not divide_host_budget(HostBudgetRequest(600 * MIB, 0), [size, size], with_weights=False).whole
    assert not divide_host_budget(HostBudgetRequest(500 * MIB, 0), [size], with_weights=True).whole


def test_a_small_budget_shrinks_partitions_then_reads():
    sizes = [Sized(1 << 30, 4)]
    plans = [
        divide_host_budget(HostBudgetRequest(n * MIB, 0), sizes, with_weights=False)
        for n in (2000, 300, 100, 34, 20, 11)
    ]
    steps = [plan.partition_edges for plan in plans]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == 8 * MIB
    assert steps[-1] == CHUNK
    assert plans[0].slabs == 4
    assert plans[0].reads_in_flight == 8
    assert plans[-1].reads_in_flight < 8
    assert not any(plan.one_by_one for plan in plans)


def test_the_smallest_budgets_decode_with_one_thread():
    requests = [HostBudgetRequest(mib * MIB, 0, workers=4) for mib in (40, 20)]
    plans = [divide_host_budget(request, [Sized(1 << 30, 4)], with_weights=False) for request in requests]
    assert [plan.one_by_one for plan in plans] == [False, True]
    assert plans[1].reads_in_flight == 1


def test_a_sweep_has_large_slabs_before_a_small_cache_but_no_larger_ones_than_pay():
    sizes = [Sized(1 << 30, 4)]
    requests = [HostBudgetRequest(n * MIB, 0, sweeps=sweeps) for n in (45, 60, 500) for sweeps in (False, True)]
    plans = [divide_host_budget(request, sizes, with_weights=False) for request in requests]
    assert [plan.slab_bytes // MIB for plan in plans] == [8, 16, 8, 32, 96, 96]
    assert plans[1].slots < plans[0].slots
    for request, plan in zip(requests, plans, strict=True):
        assert spent(request, plan, sizes) <= request.host_memory
    tight = [
        divide_host_budget(HostBudgetRequest(12 * MIB, 0, sweeps=s), sizes, with_weights=False) for s in (False, True)
    ]
    assert tight[0] == tight[1]


@given(
    st.integers(1, 4000), st.integers(0, 3000), st.integers(0, 1 << 31), st.sampled_from([0, 1, 4]),
    st.integers(1, 16), st.integers(1, 4), st.booleans(), st.booleans(),
)  # fmt: skip
def test_never_more_than_the_budget_and_the_minimum_works(mib, fixed, edges, weight, workers, stripes, both, sweeps):
    sizes = [Sized(edges, 4, weight)] * (1 + both)
    budget = HostBudgetRequest(mib * MIB, fixed * MIB, 32 * MIB, workers, stripes, sweeps)
    try:
        plan = divide_host_budget(budget, sizes, with_weights=weight > 0)
    except InputError as error:
        least = int(re.search(r"give --host-memory (\d+)MiB or more", str(error))[1])
        assert least > mib
        again = HostBudgetRequest(least * MIB, fixed * MIB, 32 * MIB, workers, stripes)
        plan = divide_host_budget(again, sizes, with_weights=weight > 0)
        assert spent(again, plan, sizes) <= (least - fixed) * MIB
        with pytest.raises(InputError, match="too small"):
            divide_host_budget(
                HostBudgetRequest((least - 1) * MIB, fixed * MIB, 32 * MIB, workers, stripes),
                sizes,
                with_weights=weight > 0,
            )
        return
    assert spent(budget, plan, sizes) <= (mib - fixed) * MIB
    assert plan.partition_edges % CHUNK == 0
    assert plan.whole or plan.slabs >= 2
    assert plan.ahead >= 2


def test_the_error_shows_the_sum():
    with pytest.raises(
        InputError,
        match=r"100.0 MiB is too small.*state and index take 99.0 MiB.*at least 10.0 MiB.*and 2 read buffers, 2 slabs",
    ):
        divide_host_budget(HostBudgetRequest(100 * MIB, 99 * MIB), [Sized(1 << 30, 4)], with_weights=False)
