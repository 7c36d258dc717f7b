"""Every byte that a run will hold, by purpose, as a value: the run builds it, a forecast prints it, a refusal reads it.

Computed before anything is allocated: graph, settings and needs in, sizes out. `plan_memory` alone makes one, and
refuses, through the divisions of `transfer/planning`, budgets that cannot work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.resources.packed_edges import AT_HAND, PackedPlan, plan_packed, plan_packed_sweeps
from penstock.engine.resources.requirements_types import SMALL_CHANGE
from penstock.engine.state.row_prefix_cache import longest_prefix, prefix_bytes
from penstock.storage.format.frames import READS
from penstock.transfer.planning.device_budget import (
    DeviceBudget,
    DeviceBudgetRequest,
    divide_device_budget,
    least_staging_bytes,
)
from penstock.transfer.planning.host_budget import (
    DECODE_BYTES,
    HostBudget,
    HostBudgetRequest,
    check_fixed,
    divide_host_budget,
    least_reading_bytes,
)
from penstock.transfer.routes.registry import serving

ANSWER_BYTES = 8 << 20
"""Ranges of an answer's columns while they are read and written: 131,072 rows for each thread and each that waits."""

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index


@dataclass(frozen=True)
class Memory:
    """Bytes by what takes them, within a budget. whole: every edge that is read has its place, and travels once."""

    budget: int
    parts: dict[str, int]
    whole: bool

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class HeldBytes:
    """Bytes of the edges that the runs read, and of those that host memory, and the device, have room to keep.

    Of packed edges where they travel packed. chunk: bytes of a chunk's edges when it has been read.
    """

    edges: int
    host: int
    device: int = 0
    chunk: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """What a run holds in host memory and, if there is one behind a link, on its device.

    needs: what the run asks for. budget: bytes of host memory; device_bytes: of the device, None without one. host: how
    host memory is divided, None where no edge is read from disk. device: how the device's is. packed: how edges travel
    packed, None where they travel plain; device, or on the cores host, is then in terms of pieces. head_edges,
    head_index: the longest head of a row and where heads are, None where there are none.
    """

    needs: MemoryRequest
    budget: int
    host: HostBudget | None
    packed: PackedPlan | None = None
    device_bytes: int | None = None
    device: DeviceBudget | None = None
    head_edges: int = 0
    head_index: Index | None = None

    def placed(self, graph: Graph, config: Config) -> MemoryPlan:
        """The same as a run builds it: with heads of rows, and with what travels packed."""
        needs = self.needs
        if self.device_bytes is None:
            request = budget_of(config, needs, graph, config.partition_bytes)
            packed = plan_packed_sweeps(graph, needs, self.host, request)
            return self if packed is None else replace(self, host=packed.host, packed=packed)
        wish, room = _budget_request(config, needs, self.device_bytes)
        heads = _row_prefixes(graph, config, needs, wish, room)
        room -= head_bytes(heads[1], graph.vertex_dtype.itemsize)
        host, parts = _divisions(graph, config, needs, wish, room)
        packed = None
        if not parts.whole:
            begins = parts.slots * parts.partition_edges >= AT_HAND * sum(one.edges for one in needs.adjacencies)
            asked = replace(needs, one_pass=needs.one_pass and not begins)  # else it begins with what is there, plain
            request = budget_of(config, needs, graph, wish.partition_bytes)
            packed = plan_packed(config, asked, wish, room, host, request)
        if packed is not None and packed.device is not None:
            parts = packed.device
            if host is not None and packed.host is not None:
                host = _plain_beside(host, packed.host, needs.edge_bytes) if packed.plain else packed.host
        return MemoryPlan(needs, self.budget, host, packed, self.device_bytes, parts, *heads)

    @property
    def whole(self) -> bool:
        """Whether all edges find room beside the state, where kernels read them."""
        return self.room == 2

    @property
    def room(self) -> int:
        """How many edges find room there: 2 all, 1 some, 0 none; heads of rows take only what slabs leave."""
        divided = self.device or self.host
        return 2 if divided is None or divided.whole else int(divided.slabs > 0)

    @property
    def host_spare(self) -> int:
        """Bytes of the host's budget that nothing takes."""
        return self.budget - self.needs.fixed if self.host is None else self.host.spare

    @property
    def spare(self) -> int:
        """Bytes that nothing takes, neither on the host nor, where edges are there, on the device."""
        if self.device is None or self.device_bytes is None:
            return self.host_spare
        if self.packed is not None or not self.device.whole:
            return 0
        return max(0, min(self.host_spare, self.device_bytes - self.needs.device_bytes - self.needs.edge_bytes))

    @property
    def loading(self) -> bool:
        """Whether host memory keeps every edge that is read from disk for a device, plain or packed."""
        return self.host is not None and (self.host.whole if self.packed is None else self.packed.loading)

    @property
    def host_memory(self) -> Memory:
        """What host memory holds."""
        needs, host, packed, linked = self.needs, self.host, self.packed, self.device is not None
        parts = {
            "state": needs.state_bytes - needs.value_room,
            "pages of values": needs.value_room,
            "index": needs.index_bytes,
            "ids": needs.id_bytes,
            "program": needs.working_bytes,
            "other": SMALL_CHANGE,
        }
        if host is not None:
            parts |= {"reader": host.reader_bytes, "slabs": host.slab_bytes if packed is None or not linked else 0}
        if not linked:
            parts["cache"] = self._cache_bytes(host)
        elif packed is not None:
            parts |= self._packed_parts(packed)
        elif host is not None:
            parts |= {"edges": needs.edge_bytes} if host.whole else {"cache": self._cache_bytes(host)}
        whole = host is None or (self.loading if linked else host.whole)
        if not linked and whole and needs.owned_edges is not None:  # of a rank: it touches no other part of its cache
            parts["cache"] = min(parts["cache"], needs.owned_edges * self._edge_bytes)
        if self.device is not None and "compaction" in self.routes:
            parts["gathered"] = self.device.staged_bytes
        return Memory(self.budget, parts, whole)

    def _packed_parts(self, packed: PackedPlan) -> dict[str, int]:
        """What host memory keeps for a device of packed edges, and of plain ones beside them."""
        if packed.host is None:
            return {"packed edges": sum(layout.nbytes for layout in packed.layouts if not layout.raw_weights)}
        kept = {"buffers": packed.host.slab_bytes, "packed edges": self._cache_bytes(packed.host)}
        return kept | ({"edges": self.needs.edge_bytes} if packed.plain else {})

    @property
    def device_memory(self) -> Memory | None:
        """What the device behind a link holds."""
        if self.device is None or self.device_bytes is None:
            return None
        parts = {
            "state and index": self.needs.device_bytes - self.needs.device_room,
            "pages of values and rows": self.needs.device_room,
            "heads of rows": head_bytes(self.head_index, self.needs.indexed[0].edge_bytes(with_weights=False)),
            "slabs": self.device.staged_bytes,
            "cache": self._cache_bytes(self.device),
        }
        return Memory(self.device_bytes, parts, self.device.whole)

    @property
    def held(self) -> HeldBytes:
        """What stays where: on the device what its cache and the heads hold, in host memory all or what it caches."""
        packed, device = self.packed, self.device
        edges, kept = (self.needs.edge_bytes, self.host) if packed is None else (packed.nbytes, packed.host)
        chunk = max((one.chunk_edges * one.edge_bytes(self.needs.weighted) for one in self.needs.indexed), default=0)
        if packed is not None and device is not None:
            chunk = edges // max(1, sum(layout.chunks for layout in packed.layouts))
        host = edges if kept is None else self._cache_bytes(kept)
        heads = 0 if self.head_index is None else self.head_index.edges * self.needs.indexed[0].neighbor_dtype.itemsize
        return HeldBytes(edges, min(edges, host), min(edges, self._cache_bytes(device) + heads), chunk)

    @property
    def _edge_bytes(self) -> int:
        return max((one.edge_bytes(self.needs.weighted) for one in self.needs.adjacencies), default=0)

    def _cache_bytes(self, budget: HostBudget | DeviceBudget | None) -> int:
        """Bytes of the cache of a division: of pieces, or of plain edges."""
        if budget is None:
            return 0
        if budget.words or not budget.slots:
            return 4 * budget.words
        return self.needs.edge_bytes if budget.whole else budget.slots * budget.partition_edges * self._edge_bytes

    @property
    def routes(self) -> tuple[str, ...]:
        """Routes by which edges may travel to the device.

        Rows are gathered from plain edges only, and read in place only where host memory has them.
        """
        assert self.device is not None, "only to a device behind a link"
        packed = self.packed
        plain = packed is None or packed.plain
        return serving(slabs=self.device.slabs > 0, packed=packed is not None, plain=plain)


def _budget_request(config: Config, needs: MemoryRequest, memory_bytes: int) -> tuple[DeviceBudgetRequest, int]:
    """What the user asked for, and the device's budget for edges."""
    given = config.device_edge_memory
    wish = DeviceBudgetRequest(
        config.partition_bytes,
        1 if config.tuning.link_rate else config.tuning.combine,  # such a link has no latency to share
        config.route,
        config.tuning.residency != "none",
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
    width = graph.out.neighbor_dtype.itemsize
    staged = replace(needs, sweeps=False)  # kernels wait for the link, not for slabs
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


def _plain_beside(host: HostBudget, packed: HostBudget, edge_bytes: int) -> HostBudget:
    """How a host holds plain edges beside packed ones, of which it has every piece: one reader brings both."""
    return replace(
        host,
        partition_edges=packed.partition_edges,
        spare=packed.spare - edge_bytes,
        reads_in_flight=packed.reads_in_flight,
        decoders=packed.decoders,
        read_bytes=packed.read_bytes,
        reader_bytes=packed.reader_bytes,
    )


def _row_prefixes(
    graph: Graph, config: Config, needs: MemoryRequest, wish: DeviceBudgetRequest, budget: int
) -> tuple[int, Index | None]:
    """Heads as long as fit where a cache of edge ranges would be, for what is pulled; None where of no use."""
    by_value = config.tuning.residency == "value" and wish.cached
    if not (needs.heads and by_value) or needs.edge_bytes <= budget:
        return 0, None
    pulled = graph.into
    assert pulled is not None
    chunk_bytes = max(one.chunk_edges * one.edge_bytes(needs.weighted) for one in needs.adjacencies)
    staged = least_staging_bytes(budget, chunk_bytes)
    index, threads = pulled.index(config.thread_count), config.thread_count
    each = longest_prefix(index, pulled.neighbor_dtype.itemsize, budget - staged, threads)
    return each, index.clipped(each, threads) if each else None


def plan_memory(graph: Graph, config: Config, needs: MemoryRequest, device_bytes: int | None) -> MemoryPlan:
    """Plan a run with these needs; device_bytes: memory of the device, None without one behind a link.

    Raises BudgetError where the run is refused.
    """
    if device_bytes is None or not needs.adjacencies:
        return MemoryPlan(needs, config.memory_bytes, host_division(graph, config, needs))
    host, parts = _divisions(graph, config, needs, *_budget_request(config, needs, device_bytes))
    return MemoryPlan(needs, config.memory_bytes, host, None, device_bytes, parts)


def head_bytes(index: Index | None, neighbor_bytes: int) -> int:
    """Bytes on the device of row heads of which `index` has the places."""
    return 0 if index is None else prefix_bytes(index.vertices, index.edges, neighbor_bytes)


def host_division(graph: Graph, config: Config, needs: MemoryRequest) -> HostBudget | None:
    """How the host's memory is divided where its own cores compute; None where no edge is read from disk.

    Raises BudgetError for a budget that cannot work.
    """
    if graph.out.arrays is None and needs.adjacencies:
        return divide_host_memory(config, needs, graph, config.partition_bytes)
    budget = budget_of(config, needs, graph, config.partition_bytes)
    if graph.out.arrays is None:  # what reading degrees and writing the answer take has otherwise the place of edges
        reading = max(READS, config.thread_count) * DECODE_BYTES
        budget = replace(budget, fixed=budget.fixed + reading + ANSWER_BYTES)
    check_fixed(budget)
    return None


def budget_of(config: Config, needs: MemoryRequest, graph: Graph, partition_bytes: int) -> HostBudgetRequest:
    """What there is to divide."""
    more = {"partition_bytes": partition_bytes, "sweeps": needs.sweeps, "owned_edges": needs.owned_edges}
    return HostBudgetRequest.of(graph, config.memory_bytes, needs.fixed, config.thread_count, **more)


def left_for_edges(config: Config, needs: MemoryRequest, graph: Graph) -> int:
    """Bytes of the host's budget that state, index and reading with a few threads leave at most; may be negative."""
    budget = budget_of(config, needs, graph, config.partition_bytes)
    reading = 0
    if graph.out.arrays is None:
        reading = least_reading_bytes(budget, needs.adjacencies, with_weights=needs.weighted, one_by_one=False)
    return budget.left - reading


def divide_host_memory(config: Config, needs: MemoryRequest, graph: Graph, partition_bytes: int) -> HostBudget:
    """How the host memory budget is divided, with partitions of at most so many bytes of neighbors."""
    budget = budget_of(config, needs, graph, partition_bytes)
    return divide_host_budget(budget, needs.adjacencies, with_weights=needs.weighted)
