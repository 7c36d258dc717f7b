"""How the memory of a device is divided for walks: a table of budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from penstock.engine.queries.device_run import in_place_is_cheaper
from penstock.engine.queries.walk_memory import DeviceWalkRequest, WalkMemoryRequest, divide_device_walks
from penstock.storage.base.errors import BudgetError
from penstock.transfer.planning.host_budget import HostBudgetRequest, reader_bytes
from penstock.transfer.values.rates import Rates

MIB = 1 << 20
HOST = WalkMemoryRequest(
    host=HostBudgetRequest(host_memory=1 << 30, fixed=17 * MIB, workers=2),
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
DEVICE = DeviceWalkRequest(memory=0, edge_memory=None, fixed=17 * MIB, walker_bytes=8 + 81 * 4)


def test_all_rows_stay_where_they_fit() -> None:
    found = divide_device_walks(HOST, replace(DEVICE, memory=2 << 30))
    assert (found.device_edges, found.device_slab_edges, found.sets) == (HOST.edges, 0, 2)
    assert found.kept_edges == 0
    few = divide_device_walks(replace(HOST, walks=100), replace(DEVICE, memory=600 * MIB))
    assert (few.batch, few.sets) == (100, 1)


@pytest.mark.parametrize("mebibytes", [64, 128, 256, 500, 800])
@pytest.mark.parametrize("edge_mebibytes", [None, 64, 128])
@pytest.mark.parametrize("sum_bytes", [0, 8])
def test_what_is_taken_is_within_both_budgets(mebibytes: int, edge_mebibytes: int | None, sum_bytes: int) -> None:
    request = replace(HOST, weight_bytes=sum_bytes // 8, sum_bytes=sum_bytes)
    edge_memory = None if edge_mebibytes is None else edge_mebibytes * MIB
    device = replace(DEVICE, memory=mebibytes * MIB, edge_memory=edge_memory)
    found = divide_device_walks(request, device)
    edges = (found.device_edges + 2 * found.device_slab_edges) * (4 + sum_bytes)
    assert device.fixed + edges + found.sets * found.batch * device.walker_bytes <= device.memory
    assert edge_memory is None or edges <= edge_memory
    reading = reader_bytes(request.host, found.reads, one_by_one=found.one_by_one)
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
