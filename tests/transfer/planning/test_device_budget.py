"""How a device's edge budget is divided, as a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.format.packed_layout import PackedLayout
from penstock.transfer.planning.device_budget import (
    DECODERS,
    FEWEST_SLABS,
    SLABS,
    DeviceBudget,
    DeviceBudgetRequest,
    divide_device_budget,
    divide_packed_budget,
    divide_packed_sweeps,
)
from penstock.transfer.planning.host_budget import HostBudget, HostBudgetRequest, reader_bytes
from penstock.transfer.staging.staging import mark_words
from support.fakes import Sized

ONE = [Sized(1000, 4, 1, chunk_edges=10)]


@pytest.mark.parametrize(
    ("memory", "route", "weights", "expected"),
    [
        (4000, "auto", False, DeviceBudget(100, 0, 10, True)),
        (4000, "auto", True, DeviceBudget(20, 3, 37, False)),
        (4000, "filter", False, DeviceBudget(100, 3, 0, False)),
        (4000, "zero-copy", False, DeviceBudget(100, 0, 0, False)),
        (120, "filter", False, DeviceBudget(10, 3, 0, False)),
        (80, "filter", False, DeviceBudget(10, 2, 0, False)),
        (0, "zero-copy", True, DeviceBudget(100, 0, 0, False)),
        (80, "auto", False, DeviceBudget(10, 2, 0, False)),
        (79, "auto", False, DeviceBudget(100, 0, 0, False)),
        (99, "auto", True, DeviceBudget(100, 0, 0, False)),
        (0, "auto", False, DeviceBudget(100, 0, 0, False)),
    ],
)
def test_divisions(memory, route, weights, expected):
    found = divide_device_budget(memory, ONE, DeviceBudgetRequest(400, route=route), weights=weights)
    assert (found.slabs, found.whole) == (expected.slabs, expected.whole)
    assert found.staged_bytes == found.slabs * found.partition_edges * (5 if weights else 4)
    found = replace(found, staged_bytes=0)
    assert found == expected or route == "auto"
    assert route != "auto" or memory > 80 or found == expected


@pytest.mark.parametrize("route", ["filter", "compaction", "cel"])
def test_what_does_not_fit_is_refused_with_the_way_out(route):
    with pytest.raises(
        InputError, match=r"79 B is too small: 2 slabs of one chunk take 80 B.*--route auto or zero-copy"
    ):
        divide_device_budget(79, ONE, DeviceBudgetRequest(400, route=route), weights=False)
    with pytest.raises(InputError, match="--route auto"):
        divide_device_budget(3999, ONE, DeviceBudgetRequest(400, route="resident"), weights=False)


@pytest.mark.parametrize("route", ["auto", "zero-copy"])
def test_what_is_read_in_place_needs_room_for_the_state_alone(route):
    wish = DeviceBudgetRequest(400, route=route, device_memory=5 << 20, fixed=5 << 20)
    assert divide_device_budget(0, ONE, wish, weights=False) == DeviceBudget(100, 0, 0, False)
    with pytest.raises(InputError, match=r"--device-memory 5.0 MiB is too small.*give --device-memory 6MiB or more$"):
        divide_device_budget(0, ONE, replace(wish, fixed=(5 << 20) + 1), weights=False)


def test_partitions_shrink_before_copies_and_copies_before_slabs():
    sizes = [Sized(10_000, 4, 0, chunk_edges=10)]

    def parts(memory, **wish):
        found = divide_device_budget(memory, sizes, DeviceBudgetRequest(400, route="filter", **wish), weights=False)
        return found.slabs, found.combine, found.partition_edges

    assert parts(4800, combine=4) == (3, 4, 100)
    assert parts(4799, combine=4) == (3, 4, 50)
    assert parts(480, combine=4) == (3, 4, 10)
    assert parts(479, combine=4) == (3, 2, 10)
    assert parts(120, combine=4) == (3, 1, 10)
    assert parts(119, combine=4) == (2, 1, 10)


def test_nothing_stays_where_that_is_not_wanted():
    found = divide_device_budget(10_000, ONE, DeviceBudgetRequest(400, stay=False), weights=False)
    assert (found.whole, found.slots) == (False, 0)


@pytest.mark.parametrize(("fixed", "told"), [(4 << 20, True), (6 << 20, False)])
def test_a_route_without_slabs_is_named_only_where_the_state_fits(fixed, told):
    wish = DeviceBudgetRequest(400, route="filter", device_memory=5 << 20, fixed=fixed)
    with pytest.raises(InputError, match=r"give --device-memory \dMiB or more") as refused:
        divide_device_budget(0, ONE, wish, weights=False)
    assert ("--route" in str(refused.value)) == told


@given(
    memory=st.integers(0, 6000), partition=st.integers(1, 2000), weights=st.booleans(), k=st.integers(1, 4),
    stay=st.booleans(),
)  # fmt: skip
def test_what_is_taken_stays_within_the_budget(memory, partition, weights, k, stay):
    for route in ("auto", "filter"):
        each = 5 if weights else 4
        enough = memory >= SLABS[-1] * 10 * each
        try:
            found = divide_device_budget(memory, ONE, DeviceBudgetRequest(partition, k, route, stay), weights=weights)
        except InputError:
            assert not enough
            assert route == "filter"
            continue
        assert found.whole or (found.slabs >= SLABS[-1]) == enough
        slabs = found.slabs * found.combine
        held = 1000 * each if found.whole else (slabs + found.slots) * found.partition_edges * each
        assert held <= memory
        assert found.partition_edges % 10 == 0


CHUNK = 1 << 16
WORDS = CHUNK // 2


def layouts(chunks: int, count: int = 1) -> list[PackedLayout]:
    """Chunks that take half of their plain bytes."""
    starts = np.arange(chunks + 1, dtype=np.int64) * WORDS
    return [PackedLayout(direction, chunks * CHUNK, CHUNK, starts) for direction in ("out", "in")[:count]]


def least(chunks: int = 40, count: int = 1) -> int:
    """Bytes of a device for partitions of one chunk: slabs, two pieces on their way, and the marks of blocks."""
    return FEWEST_SLABS * 4 * CHUNK + 2 * 4 * WORDS + 4 * count * mark_words(chunks * CHUNK)


@settings(max_examples=60)
@given(
    st.integers(0, 1 << 26),
    st.integers(1, 60),
    st.integers(1, 2),
    st.integers(1, 1 << 23),
    st.sampled_from(["auto", "filter"]),
    st.none() | st.integers(0, 1 << 26),
)
def test_what_is_planned_fits(
    memory: int, chunks: int, count: int, partition_bytes: int, route: str, host_memory: int | None
) -> None:
    found = layouts(chunks, count)
    wish = DeviceBudgetRequest(partition_bytes, 1, route, True)
    host = None
    if host_memory is not None:
        host = HostBudgetRequest(host_memory, 0, partition_bytes, 2)
    parts = divide_packed_budget(memory, found, wish, 4, host)
    if memory < least(chunks, count):
        assert parts is None
    if host is None and memory >= least(chunks, count):
        assert parts is not None
    if parts is None:
        return
    budget, held = parts
    assert budget.partition_edges % CHUNK == 0
    assert 4 * budget.partition_edges <= max(partition_bytes, 4 * CHUNK)
    total = sum(int(one.pieces(budget.partition_edges).sizes.sum()) for one in found)
    assert budget.staged_bytes + 4 * budget.words <= memory
    assert 0 <= budget.words <= total
    assert budget.words == 0 or wish.cached
    assert (host is None) == (held is None)
    if host is not None and held is not None:
        assert held.partition_edges == budget.partition_edges
        assert_host_fits(held, host, total)


def assert_host_fits(held: HostBudget, host: HostBudgetRequest, total: int) -> None:
    assert held.whole == (held.words == total)
    assert held.reader_bytes == reader_bytes(host, held.reads_in_flight)
    taken = 4 * held.words + held.slab_bytes + held.spare + held.reader_bytes
    assert taken <= host.host_memory
    assert held.whole or held.slabs >= 2
    assert held.ahead >= 2


def test_more_memory_keeps_more_packed() -> None:
    wish = DeviceBudgetRequest(4 * CHUNK, 1, "auto", True)
    kept = [divide_packed_budget(least() * times, layouts(40), wish, 4) for times in (2, 4, 100)]
    words = [parts[0].words for parts in kept if parts is not None]
    assert words == sorted(words)
    assert words[-1] == 40 * WORDS


def test_a_larger_cache_does_not_pay_for_twice_as_many_short_tasks() -> None:
    """A web graph of 134 M edges and 128 MiB: 16 tasks of 8 M edges, not 32, whose start takes longer than the link."""
    starts = np.arange(513, dtype=np.int64) * ((1 << 18) * 152 // 400)
    web = [PackedLayout("in", 512 << 18, 1 << 18, starts)]
    parts = divide_packed_budget(128 << 20, web, DeviceBudgetRequest(32 << 20, 1, "auto", True), 4)
    assert parts is not None
    assert parts[0].partition_edges == 8 << 20


@given(
    st.integers(0, 1 << 28), st.integers(1, 300), st.integers(1, 1 << 25), st.integers(0, 1 << 18), st.integers(1, 64)
)
def test_what_is_planned_for_sweeps_on_cores_fits(
    memory: int, chunks: int, partition_bytes: int, work: int, threads: int
) -> None:
    budget, found = HostBudgetRequest(memory, 0, partition_bytes, threads), layouts(chunks)
    host = divide_packed_sweeps(budget, found, work)
    request = replace(budget, workers=min(threads, DECODERS))
    if host is None:
        assert memory < reader_bytes(request, 1) + work + 2 * 4 * WORDS
        return
    edges = host.partition_edges
    assert host.decoders == request.workers
    assert edges % CHUNK == 0
    assert 4 * edges <= max(partition_bytes, 4 * CHUNK)
    assert host.reader_bytes == reader_bytes(request, host.reads_in_flight)
    taken = host.reader_bytes + edges // CHUNK * work + host.slab_bytes + 4 * host.words
    assert taken + host.spare <= memory
    assert host.whole == (host.slabs == 0)


def test_many_threads_have_more_read_ahead_and_few_of_them_copy() -> None:
    found = layouts(2000)
    few, many = (divide_packed_sweeps(HostBudgetRequest(192 << 20, 0, 32 << 20, threads), found) for threads in (2, 16))
    assert few is not None
    assert many is not None
    assert few.decoders == 2
    assert many.decoders == DECODERS
    assert few.slab_bytes <= 32 << 20 < many.slab_bytes <= 64 << 20
