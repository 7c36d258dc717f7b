"""What a device with memory of its own may hold: row prefixes, resident places, slabs; and what the host does for it.

Owns the arithmetic before anything is allocated, so that a forecast and the run itself have the same: settings in,
sizes out. Refuses, through `share` and `layout`, budgets that cannot work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.resources.host_resources import divide_host_memory, host_division, spare_of
from penstock.engine.resources.packed_edges import AT_HAND, PackedPlan, plan_packed
from penstock.engine.state.row_prefix_cache import longest_prefix, prefix_bytes, prefix_index
from penstock.storage.read.packed_cache import PackedCache
from penstock.storage.read.partition_cache import HostCache
from penstock.transfer.planning.device_budget import (
    DeviceBudget,
    DeviceBudgetRequest,
    divide_device_budget,
    least_staging_bytes,
)
from penstock.transfer.planning.host_budget import HostBudget
from penstock.transfer.routes.registry import serving
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.residency import prior

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.storage.format.index import Index
    from penstock.transfer.values.task import PartitionTable


@dataclass(frozen=True)
class DeviceMemoryPlan:
    """What a device holds, and how the host feeds it.

    head_edges, head_index: the longest head and where heads lie (None: there are none). divided: how the host's memory
    is divided (None: the graph is in memory); parts: the device's. spare: bytes that nothing takes, neither here nor
    there. packed: how edges travel packed, None where they travel plain; `parts` is then the same in terms of slabs.
    """

    head_edges: int
    head_index: Index | None
    divided: HostBudget | None
    parts: DeviceBudget
    spare: int = 0
    packed: PackedPlan | None = None


def plan_device_memory(graph: Graph, config: Config, needs: MemoryRequest, memory_bytes: int) -> DeviceMemoryPlan:
    """Divide a device of so many bytes, and the host's budget with it. Raises InputError where either cannot work."""
    wish, budget = _budget_request(config, needs, memory_bytes)
    each, index = _row_prefixes(graph, config, needs, wish, budget)
    held = 0 if index is None else prefix_bytes(graph.vertices, index.edges, graph.vertex_dtype.itemsize)
    divided, parts = _divisions(graph, config, needs, wish, budget - held)
    packed = None
    if not parts.whole:
        begins = parts.slots * parts.partition_edges >= AT_HAND * sum(one.edges for one in needs.adjacencies)
        asked = replace(needs, one_pass=needs.one_pass and not begins)  # else it begins with what the device has, plain
        packed = plan_packed(graph, config, asked, wish, budget - held, divided)
    if packed is not None:
        return _packed_plan((each, index), needs, packed, divided)
    spare = spare_of(config, needs, divided)
    free = memory_bytes - needs.device_bytes - needs.edge_bytes if parts.whole else 0
    return DeviceMemoryPlan(each, index, divided, parts, max(0, min(spare, free)))


def _packed_plan(
    heads: tuple[int, Index | None],
    needs: MemoryRequest,
    packed: PackedPlan,
    divided: HostBudget | None,
) -> DeviceMemoryPlan:
    """The plan of a device whose edges travel packed, and of a host that has them so, and plain if there is room."""
    budget, host = packed.budget, packed.budget.host
    parts = DeviceBudget(budget.partition_edges, budget.buffers, 0, whole=False, combine=budget.combine)
    if divided is not None and host is not None and not packed.plain:
        plain = HostBudget(budget.partition_edges, 0, 0, host.reads_in_flight, False, 0, host.spare)
        return DeviceMemoryPlan(*heads, plain, parts, packed=packed)
    if divided is not None and host is not None:
        spare = host.spare - needs.edge_bytes
        divided = replace(divided, partition_edges=budget.partition_edges, spare=spare)
    return DeviceMemoryPlan(*heads, divided, parts, packed=packed)


def _budget_request(config: Config, needs: MemoryRequest, memory_bytes: int) -> tuple[DeviceBudgetRequest, int]:
    """What the user asked for, and the device's budget for edges."""
    given = config.device_edge_memory
    wish = DeviceBudgetRequest(
        config.partition_bytes,
        config.combine,
        config.route,
        config.residency != "none",
        device_memory=memory_bytes if given is None else None,
        fixed=needs.device_bytes,
    )
    return wish, max(0, memory_bytes - needs.device_bytes) if given is None else given


def _divisions(
    graph: Graph, config: Config, needs: MemoryRequest, wish: DeviceBudgetRequest, left: int
) -> tuple[HostBudget | None, DeviceBudget]:
    """How the host's and the device's budgets are divided, in partitions of one size.

    Where the host does not hold every edge a task is one partition, because one slab of the host holds one.
    """
    if graph.out.arrays is not None:
        return host_division(graph, config, needs), _device_budget(needs, wish, left)
    width, staged = (
        graph.out.neighbor_dtype.itemsize,
        replace(needs, sweeps=False),
    )  # kernels wait for the link, not for slabs
    while True:
        divided = divide_host_memory(config, staged, graph, wish.partition_bytes)
        if divided.whole:
            parts = _device_budget(needs, wish, left)
            return replace(divided, partition_edges=parts.partition_edges), parts
        wish = replace(wish, partition_bytes=divided.partition_edges * width, combine=1)
        parts = _device_budget(needs, wish, left)
        if parts.partition_edges == divided.partition_edges:
            return divided, parts
        wish = replace(wish, partition_bytes=parts.partition_edges * width)


def _device_budget(needs: MemoryRequest, wish: DeviceBudgetRequest, left: int) -> DeviceBudget:
    return divide_device_budget(left, needs.adjacencies, wish, weights=needs.weighted)


def _row_prefixes(
    graph: Graph, config: Config, needs: MemoryRequest, wish: DeviceBudgetRequest, budget: int
) -> tuple[int, Index | None]:
    """Heads as long as fit where a cache of edge ranges would be, for what is pulled; None where of no use."""
    by_value = config.residency == "value" and wish.cached
    if not (needs.heads and by_value) or needs.edge_bytes <= budget:
        return 0, None
    pulled = graph.into
    assert pulled is not None
    chunk_bytes = max(one.chunk_edges * one.edge_bytes(needs.weighted) for one in needs.adjacencies)
    staged = least_staging_bytes(budget, chunk_bytes)
    index, threads = pulled.index(config.thread_count), config.thread_count
    each = longest_prefix(index, pulled.neighbor_dtype.itemsize, budget - staged, threads)
    return each, prefix_index(index, each, threads) if each else None


class EdgeRoom(IntEnum):
    """Which edges find room beside the state, where kernels read them: on the device if there is one behind a link."""

    NONE = 1
    SOME = 2
    ALL = 3


def edge_room(graph: Graph, config: Config, needs: MemoryRequest, device_bytes: int | None) -> EdgeRoom:
    """Return which edges find room.

    device_bytes: memory of the device, None without one. Heads of rows take only what slabs leave, and do not count.
    Raises BudgetError where the run would be refused.
    """
    if device_bytes is None or not needs.adjacencies:
        divided = host_division(graph, config, needs)
        return EdgeRoom.ALL if divided is None or divided.whole else EdgeRoom.SOME
    parts = _divisions(graph, config, needs, *_budget_request(config, needs, device_bytes))[1]
    return EdgeRoom.ALL if parts.whole else EdgeRoom.SOME if parts.slabs else EdgeRoom.NONE


def link_options(
    config: Config, kind: str, parts: DeviceBudget, ahead: int, packed: PackedPlan | None = None
) -> TransferOptions:
    """What follows from a division for a device's pipeline; ahead: tasks that the host reads at once from disk.

    Rows are gathered from plain edges only, and read in place only where host memory has them.
    """
    plain = packed is None or packed.plain
    routes = serving(kind, slabs=parts.slabs > 0, packed=packed is not None, plain=plain)
    return TransferOptions(
        partition_edges=parts.partition_edges,
        slabs=parts.slabs,
        ahead=max(1, parts.slabs, ahead),
        combine=parts.combine,
        priority=config.priority,
        gather_threads=config.thread_count,
        routes=routes,
        route=config.route,
        model=config.model,
    )


def edge_source_options(divided: HostBudget) -> TransferOptions:
    """What follows from a division of the host's memory for the pipeline that feeds a device."""
    return TransferOptions(divided.partition_edges, divided.slabs, divided.ahead)


def initial_residents(
    needs: MemoryRequest, adjacency: Adjacency, table: PartitionTable, count: int
) -> NDArray[np.int64]:
    """The `count` partitions that go to the device before anything is known of the demand, ascending."""
    values = _values(needs, adjacency, table)
    return np.sort(np.argsort(-values, kind="stable")[:count])


def place_residents(
    cache: HostCache | PackedCache, needs: MemoryRequest, tables: Mapping[str, PartitionTable]
) -> NDArray[np.int64]:
    """Give places on the device to what is chosen for it before the first iteration; return its entries, ascending.

    tables: the partitions of each adjacency.
    """
    if isinstance(cache, PackedCache):
        entries = packed_residents(cache, needs, tables)
    else:
        shares = zip(needs.adjacencies, cache_shares(cache, needs.adjacencies), strict=True)
        chosen = [
            cache.entry(one.direction, 0) + initial_residents(needs, one, tables[one.direction], count)
            for one, count in shares
        ]
        entries = np.concatenate([*chosen, np.zeros(0, dtype=np.int64)])
    cache.replace((), entries)
    return entries


def cache_shares(cache: HostCache, adjacencies: Sequence[Adjacency]) -> list[int]:
    """How many partitions of each adjacency have a place, in proportion to their sizes."""
    entries = [cache.entries(adjacency.direction) for adjacency in adjacencies]
    counts = [entry.stop - entry.start for entry in entries]
    places, total = cache.slots, max(1, sum(counts))
    shares = [places * count // total for count in counts]
    if shares:
        shares[0] += min(places - sum(shares), counts[0] - shares[0])
    return shares


def packed_residents(
    cache: PackedCache, needs: MemoryRequest, tables: Mapping[str, PartitionTable]
) -> NDArray[np.int64]:
    """The entries whose pieces go to the device before anything is known of the demand, most value first.

    tables: the partitions of each adjacency.
    """
    values = np.concatenate([_values(needs, adjacency, tables[adjacency.direction]) for adjacency in needs.adjacencies])
    order = np.argsort(-values, kind="stable")
    fits = np.cumsum(cache.sizes[order]) <= cache.words
    return np.sort(order[fits])


def _values(needs: MemoryRequest, adjacency: Adjacency, table: PartitionTable) -> NDArray[np.float64]:
    return prior(table.lengths, table.v1 - table.v0, adjacency.edge_bytes(needs.weighted))


def link_rates(config: Config, kind: str) -> Rates:
    """The rates of runs on a device behind a link."""
    if config.rates is not None:
        return config.rates
    if kind == "emulated":
        return Rates.emulated(config.thread_count, config.link_rate)
    return Rates.pcie5(config.thread_count)
