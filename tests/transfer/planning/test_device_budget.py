"""How a device's edge budget is divided, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.transfer.planning.device_budget import SLABS, DeviceBudget, DeviceBudgetRequest, divide_device_budget
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
