"""How the memory of walks is divided: a table of budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from penstock.engine.queries.walk_memory import WalkMemory, WalkMemoryRequest, divide_walk_memory
from penstock.storage.base.errors import BudgetError
from penstock.transfer.planning.host_budget import HostBudgetRequest, reader_bytes

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
    reading = reader_bytes(request.host, memory.reads, one_by_one=memory.one_by_one)
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
