"""How a budget is divided: never more than there is, smaller parts before refusal, and an honest minimum."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.transfer.planning.host_budget import (
    DECODERS,
    HostBudgetRequest,
    Reading,
    divide_host_budget,
    pass_seconds,
    reader_bytes,
)
from support.fakes import Sized

MIB = 1 << 20
CHUNK = 262_144


def spent(budget, plan, sizes):
    """Bytes that a layout uses beyond the fixed part."""
    slot = plan.partition_edges * plan.edge_bytes
    cached = sum(size.edges for size in sizes) * plan.edge_bytes if plan.whole else plan.slots * slot
    reader = reader_bytes(budget, plan.reads_in_flight, plan.decoders, plan.read_bytes)
    assert plan.reader_bytes == reader
    return cached + plan.slab_bytes + reader


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
        for n in (1000, 300, 100, 34, 20, 11)
    ]
    steps = [plan.partition_edges for plan in plans]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == 8 * MIB
    assert steps[-1] == CHUNK
    assert plans[0].slabs == 4
    assert plans[0].reads_in_flight == 8
    assert plans[-1].reads_in_flight < 8


def test_the_smallest_budgets_decode_with_one_thread():
    requests = [HostBudgetRequest(mib * MIB, 0, workers=4, frame_bytes=MIB // 2) for mib in (100, 20, 7)]
    plans = [divide_host_budget(request, [Sized(1 << 30, 4)], with_weights=False) for request in requests]
    assert [plan.decoders for plan in plans] == [4, 2, 1]
    assert plans[2].reads_in_flight == 1
    assert plans[2].read_bytes == 0


def test_a_large_graph_has_large_partitions_before_a_small_cache_but_a_large_cache_before_them():
    budget = HostBudgetRequest(400 * MIB, 0)
    huge, near = (divide_host_budget(budget, [Sized(n * MIB, 4)], with_weights=False) for n in (1 << 10, 120))
    assert huge.partition_edges == 8 * MIB
    assert near.partition_edges < 4 * MIB
    assert near.slots * near.partition_edges * 4 >= 0.8 * 400 * MIB


def test_a_sweep_has_larger_partitions():
    requests = [
        HostBudgetRequest(85 * MIB, 0, workers=2, frame_bytes=MIB // 2, sweeps=sweeps) for sweeps in (False, True)
    ]
    plans = [divide_host_budget(request, [Sized(30 * MIB, 4)], with_weights=False) for request in requests]
    assert plans[1].partition_edges > plans[0].partition_edges


def seconds_of(plan, budget, edges):
    """What a pass takes by the model."""
    size, kept = 4 * plan.partition_edges, plan.slots * plan.partition_edges
    reading = Reading(plan.reads_in_flight, plan.decoders, plan.read_bytes)
    read = edges if plan.whole else max(0, edges - kept)
    return pass_seconds(budget, reading, plan.slabs, size, 4 * read, 4 * edges)


@given(st.integers(12, 3000), st.integers(1, 1 << 30), st.integers(1, 64), st.integers(1, 64), st.booleans())
def test_more_threads_never_make_a_pass_longer_nor_share_a_budget_among_more_than_pay(mib, edges, some, others, sweeps):
    few, many = sorted((some, others))
    requests = [HostBudgetRequest(mib * MIB, 0, workers=workers, sweeps=sweeps) for workers in (few, many)]
    plans = [divide_host_budget(request, [Sized(edges, 4)], with_weights=False) for request in requests]
    assert plans[1].whole >= plans[0].whole
    assert seconds_of(plans[1], requests[1], edges) <= seconds_of(plans[0], requests[0], edges)
    if few >= DECODERS[0]:
        assert plans[0] == plans[1]


def test_a_graph_of_480_mib_in_54_is_read_alike_by_4_threads_and_by_16():
    """R-MAT 22 in 128 MiB, of which 16 threads once read 845 MiB for the 253 of two."""
    frames = {"frame_bytes": 540_000, "decoder_bytes": 2_660_000}
    requests = [HostBudgetRequest(54 * MIB, 0, workers=workers, **frames) for workers in (2, 4, 8, 16)]
    plans = [divide_host_budget(request, [Sized(128_301_846, 4)], with_weights=False) for request in requests]
    assert [plan.decoders for plan in plans] == [2, 4, 4, 4]
    assert len({plan.partition_edges for plan in plans}) == 1
    assert plans[1] == plans[2] == plans[3]


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
