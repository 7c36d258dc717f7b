"""Whether edges travel to a device packed, and what that takes of its memory and the host's.

Packed edges are the payloads of a graph file's chunks (`storage/encoding/bitpack.py`); a graph in memory is packed
once. Edges travel packed where the device does not hold all of them plain, and either every iteration walks all of
them or host memory has no room for them plain: a frontier's rows are best read in place, plain, where they are. So are
those of a union that leaves most rows out. An option may ask for what only plain edges can do. Plain edges are in host
memory as well where that has room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.resources.host_resources import budget_of
from penstock.storage.format.packed_layout import packed_layout
from penstock.transfer.planning.packed_budget import PackedBudget, divide_packed_budget
from penstock.transfer.staging.staging import Packing

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.packed_layout import PackedLayout
    from penstock.transfer.planning.device_budget import DeviceBudgetRequest
    from penstock.transfer.planning.host_budget import HostBudget

PACKED_ROUTES = ("filter", "blocks")
"""Routes that, when forced, are meant to bring packed edges."""
PLAIN_ROUTES = ("compaction", "zero-copy", "cel", "resident")
"""Routes that, when forced, read plain edges."""
AT_HAND = 0.05
"""Share of the edges that a device must hold for a union to begin with these, and to leave out rows of the others."""


@dataclass(frozen=True)
class PackedPlan:
    """layouts: of the adjacencies that a run reads. plain: whether host memory holds plain edges beside packed ones."""

    layouts: tuple[PackedLayout, ...]
    budget: PackedBudget
    plain: bool

    @property
    def loading(self) -> bool:
        """Whether host memory keeps all packed edges that are read from disk."""
        return self.budget.host is not None and self.budget.host.whole

    @property
    def packing(self) -> Packing:
        """The pieces of partitions of the size that the budget has."""
        return Packing.of(self.layouts, self.budget.partition_edges, self.budget.slabs)


def plan_packed(
    graph: Graph,
    config: Config,
    needs: MemoryRequest,
    wish: DeviceBudgetRequest,
    edge_memory: int,
    divided: HostBudget | None,
) -> PackedPlan | None:
    """Return how edges travel packed, None where they travel plain.

    needs: `one_pass` of a union that finds less than AT_HAND of its edges on the device at first. edge_memory: bytes of
    the device for edges. divided: how the host would hold plain edges, None: it has them.
    """
    if config.packed == "never" or config.model == "published" or config.route in PLAIN_ROUTES:
        return None
    if not packing_pays(config, needs, divided) and not needs.one_pass:
        return None
    found = [packed_layout(adjacency, config.thread_count, needs.weighted) for adjacency in needs.adjacencies]
    layouts = tuple(layout for layout in found if layout is not None)
    if not layouts or len(layouts) < len(found):
        return None
    size = sum(layout.nbytes for layout in layouts)
    if not size:
        return None
    edge_bytes = max(one.edge_bytes(needs.weighted) for one in needs.adjacencies)
    if divided is None:
        if size > config.memory_bytes - needs.fixed:
            return None
        budget = divide_packed_budget(edge_memory, layouts, wish, edge_bytes)
        return None if budget is None else PackedPlan(layouts, budget, plain=True)
    host = budget_of(config, needs, graph, wish.partition_bytes)
    budget = divide_packed_budget(edge_memory, layouts, wish, edge_bytes, host)
    if budget is None or budget.host is None:
        return None
    plain = divided.whole and budget.host.whole and budget.host.spare >= needs.edge_bytes
    return PackedPlan(layouts, budget, plain)


def packing_pays(config: Config, needs: MemoryRequest, divided: HostBudget | None) -> bool:
    """Whether packed edges serve a run better than plain ones that the device does not all hold.

    They do where every iteration walks all edges, where host memory does not hold plain ones, and where a route is
    forced that is meant for them. divided: how the host would hold plain edges, None: it has them.
    """
    return needs.sweeps or config.route in PACKED_ROUTES or not (divided is None or divided.whole)
