"""How the memory of walks is divided, of a host and of a device: tables of budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from penstock.engine.queries.device_run import in_place_is_cheaper
from penstock.engine.queries.walk_memory import (
    SLAB_BYTES,
    DeviceWalkRequest,
    WalkMemory,
    WalkMemoryRequest,
    divide_device_walks,
    divide_walk_memory,
)
from penstock.storage.base.errors import BudgetError
from penstock.transfer.planning.host_budget import ONE_BY_ONE, HostBudgetRequest, reader_bytes
from penstock.transfer.values.rates import Rates
from support.covering import covering

MIB = 1 << 20
REQUEST = WalkMemoryRequest(
    host=HostBudgetRequest(host_memory=0, fixed=17 * MIB, workers=2),
    edges=128 << 20,
    in_memory=False,
    neighbor_bytes=4,
    weight_bytes=0,
    sum_bytes=0,
    longest=1 << 18,
    chunk_edges=1 << 18,
    walks=4 << 20,
    row_bytes=81 * 4,
    walker_bytes=24,
)


def divided(budget: int, **changes: int | bool) -> WalkMemory:
    return divide_walk_memory(replace(REQUEST, host=replace(REQUEST.host, host_memory=budget), **changes))


def taken(request: WalkMemoryRequest, memory: WalkMemory) -> int:
    """Bytes of what is counted, without a block of walks."""
    slabs = 2 * memory.slab_edges * request.slab_bytes
    walkers = memory.batch * request.walker_bytes if memory.slab_edges else 0
    reading = reader_bytes(request.host, *(ONE_BY_ONE if memory.one_by_one else (memory.reads,)))
    return request.host.fixed + slabs + walkers + reading + memory.kept_edges * request.kept_bytes + memory.log_bytes


def test_all_rows_stay_where_they_fit() -> None:
    memory = divided(1 << 30)
    assert (memory.kept_edges, memory.slab_edges) == (REQUEST.edges, 0)
    assert memory.batch == memory.block


@pytest.mark.parametrize("mebibytes", [50, 64, 128, 256, 500])
@pytest.mark.parametrize("changes", [{}, {"weight_bytes": 1, "sum_bytes": 8}, {"walker_bytes": 40, "row_bytes": 4000}])
def test_what_is_taken_is_within_the_budget(mebibytes: int, changes: dict[str, int]) -> None:
    memory = divided(mebibytes * MIB, **changes)
    request = replace(REQUEST, **changes)
    assert taken(request, memory) + memory.block * request.row_bytes * 4 <= mebibytes * MIB
    assert 0 < memory.kept_edges < request.edges
    assert memory.batch % memory.block == 0
    assert memory.slab_edges % request.chunk_edges == 0


def test_slabs_get_half_of_what_walkers_leave() -> None:
    memory = divided(128 * MIB)
    slabs, kept = 2 * memory.slab_edges * REQUEST.slab_bytes, memory.kept_edges * REQUEST.kept_bytes
    least = 2 * REQUEST.whole_chunks((128 - 17) * MIB // 16, REQUEST.slab_bytes) * REQUEST.slab_bytes
    assert kept < slabs - least + 4 * REQUEST.chunk_edges * REQUEST.slab_bytes  # slabs are of whole chunks
    assert slabs - least <= kept


@pytest.mark.parametrize("walks", [1_000, 1 << 20])
@pytest.mark.parametrize("mebibytes", [400, 460, 500])
def test_slabs_get_no_more_than_makes_eight_partitions(mebibytes: int, walks: int) -> None:
    memory = divided(mebibytes * MIB, walks=walks)
    least = REQUEST.whole_chunks(min(SLAB_BYTES, (mebibytes - 17) * MIB // 16), REQUEST.slab_bytes)
    fewer, lost = memory.slab_edges - REQUEST.chunk_edges, 2 * REQUEST.chunk_edges
    assert fewer < least or 8 * fewer < REQUEST.edges - memory.kept_edges - lost


def test_batches_are_even() -> None:
    memory = divided(100 * MIB)
    batches = -(-REQUEST.walks // memory.batch)
    assert REQUEST.walks - (batches - 1) * memory.batch > memory.batch - batches * memory.block


def test_the_least_budget_works_and_less_does_not() -> None:
    with pytest.raises(BudgetError) as refused:
        divided(17 * MIB)
    divided(refused.value.least_mib * MIB)
    with pytest.raises(BudgetError):
        divided((refused.value.least_mib - 4) * MIB)


def test_rows_in_memory_cost_nothing_but_their_sums() -> None:
    assert divided(64 * MIB, in_memory=True).kept_edges == REQUEST.edges
    with pytest.raises(BudgetError):
        divided(64 * MIB, in_memory=True, sum_bytes=8)


HOST = replace(REQUEST, host=replace(REQUEST.host, host_memory=1 << 30))
DEVICE = DeviceWalkRequest(memory=0, edge_memory=None, fixed=17 * MIB, walker_bytes=8 + 81 * 4)


def test_all_rows_stay_on_a_device_where_they_fit() -> None:
    found = divide_device_walks(HOST, replace(DEVICE, memory=2 << 30))
    assert (found.device_edges, found.device_slab_edges, found.sets) == (HOST.edges, 0, 2)
    assert found.kept_edges == 0
    few = divide_device_walks(replace(HOST, walks=100), replace(DEVICE, memory=600 * MIB))
    assert (few.batch, few.sets) == (100, 1)


@covering("mebibytes, edge_mebibytes, sum_bytes", [64, 128, 256, 500, 800], [None, 64, 128], [0, 8])
def test_what_is_taken_is_within_both_budgets(mebibytes: int, edge_mebibytes: int | None, sum_bytes: int) -> None:
    request = replace(HOST, weight_bytes=sum_bytes // 8, sum_bytes=sum_bytes)
    edge_memory = None if edge_mebibytes is None else edge_mebibytes * MIB
    device = replace(DEVICE, memory=mebibytes * MIB, edge_memory=edge_memory)
    found = divide_device_walks(request, device)
    edges = (found.device_edges + 2 * found.device_slab_edges) * (4 + sum_bytes)
    assert device.fixed + edges + found.sets * found.batch * device.walker_bytes <= device.memory
    assert edge_memory is None or edges <= edge_memory
    reading = reader_bytes(request.host, *(ONE_BY_ONE if found.one_by_one else (found.reads,)))
    taken = reading + 2 * found.slab_edges * request.slab_bytes + found.kept_edges * request.kept_bytes
    assert request.host.fixed + taken + 8 * found.block * request.row_bytes <= request.host.host_memory
    assert found.batch > 0
    assert found.device_slab_edges % request.chunk_edges == 0


def test_walkers_come_first_while_less_than_half_is_kept() -> None:
    """Bytes over the link are least so: (edges - kept)^2 / walkers."""
    little = divide_device_walks(HOST, replace(DEVICE, memory=200 * MIB))
    much = divide_device_walks(HOST, replace(DEVICE, memory=500 * MIB))
    assert little.device_edges == 0
    assert much.device_edges > HOST.edges // 2


def test_the_least_device_memory_works_and_less_does_not() -> None:
    with pytest.raises(BudgetError, match="--device-memory") as refused:
        divide_device_walks(HOST, replace(DEVICE, memory=17 * MIB))
    divide_device_walks(HOST, replace(DEVICE, memory=refused.value.least_mib * MIB))
    with pytest.raises(BudgetError):
        divide_device_walks(HOST, replace(DEVICE, memory=(refused.value.least_mib - 1) * MIB))


def test_no_room_for_slabs_reads_in_place_where_the_host_has_all() -> None:
    device = replace(DEVICE, memory=500 * MIB, edge_memory=MIB)
    roomy = replace(HOST, host=replace(HOST.host, host_memory=4 << 30))
    found = divide_device_walks(roomy, device)
    assert (found.device_edges, found.device_slab_edges) == (0, 0)
    assert found.kept_edges >= roomy.edges
    tight = replace(HOST, host=replace(HOST.host, host_memory=200 * MIB))
    with pytest.raises(BudgetError, match=r"--device-edge-memory 1.0 MiB is too small.*read in place"):
        divide_device_walks(tight, device)


def test_few_walkers_read_in_place() -> None:
    """A step of 700 walkers takes a microsecond over this link, and so does copying 53,000 bytes."""
    rates = Rates.pcie5(1)
    assert in_place_is_cheaper(rates, 700, 54_000, searched=False)
    assert not in_place_is_cheaper(rates, 700, 52_000, searched=False)
    assert not in_place_is_cheaper(rates, 700, 540_000, searched=True)
