"""Whether edges travel packed, and what that takes of a device's memory and the host's.

Packed edges are the payloads of a graph file's chunks (`storage/encoding/bitpack.py`); a graph in memory is packed
once. Edges travel packed to a device that does not hold all of them plain where either every iteration walks all of
them or host memory has no room for them plain: a frontier's rows are best read in place, plain, where they are. So are
those of a union that leaves most rows out. An option may ask for what only plain edges can do. Plain edges are in host
memory as well where that has room. On the cores sweeps take them packed where they are on disk, memory does not hold
all of them plain, and every kernel that reads them decodes what it reads: pieces take about half the memory of plain
edges, and are written and read once less. Where a budget has no room for a few pieces, edges stay plain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.kernels.interface import SCRATCH, STEP_EDGES
from penstock.storage.format.packed_layout import packed_layout
from penstock.transfer.planning.device_budget import divide_packed_budget, divide_packed_sweeps

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.packed_layout import PackedLayout
    from penstock.transfer.planning.device_budget import DeviceBudget, DeviceBudgetRequest
    from penstock.transfer.planning.host_budget import HostBudget, HostBudgetRequest

PACKED_ROUTES = ("filter", "blocks")
"""Routes that, when forced, are meant to bring packed edges."""
PLAIN_ROUTES = ("compaction", "zero-copy", "cel", "resident")
"""Routes that, when forced, read plain edges."""
AT_HAND = 0.05
"""Share of the edges that a device must hold for a union to begin with these, and to leave out rows of the others."""


@dataclass(frozen=True)
class PackedPlan:
    """layouts: of the adjacencies that a run reads. device: None on the cores, whose kernels take pieces as they are.

    host: None where host memory has every piece already. plain: whether it holds plain edges beside packed ones.
    """

    layouts: tuple[PackedLayout, ...]
    host: HostBudget | None
    device: DeviceBudget | None = None
    plain: bool = False

    @property
    def loading(self) -> bool:
        """Whether host memory keeps all packed edges that are read from disk."""
        return self.host is not None and self.host.whole

    @property
    def nbytes(self) -> int:
        """Bytes of all payloads."""
        return sum(layout.nbytes for layout in self.layouts)

    @property
    def partition_edges(self) -> int:
        """Edges of a partition, the same on the device and the host."""
        budget = self.device or self.host
        assert budget is not None, "something is divided"
        return budget.partition_edges


def plan_packed(
    config: Config,
    needs: MemoryRequest,
    wish: DeviceBudgetRequest,
    edge_memory: int,
    divided: HostBudget | None,
    host: HostBudgetRequest,
) -> PackedPlan | None:
    """Return how edges travel packed to a device, None where they travel plain.

    needs: `one_pass` of a union that finds less than AT_HAND of its edges on the device at first. edge_memory: bytes of
    the device for edges. divided: how the host would hold plain edges, None: it has them. host: what it has to divide.
    """
    if config.packed == "never" or config.tuning.model == "published" or config.route in PLAIN_ROUTES:
        return None
    if not packing_pays(config, needs, divided) and not needs.one_pass:
        return None
    layouts = _layouts(needs, config.thread_count, weighted=needs.weighted)
    size = sum(layout.nbytes for layout in layouts or ())
    if layouts is None or not size or (divided is None and size > host.left):
        return None
    edge_bytes = max(one.edge_bytes(needs.weighted) for one in needs.adjacencies)
    parts = divide_packed_budget(edge_memory, layouts, wish, edge_bytes, None if divided is None else host)
    if parts is None:
        return None
    device, held = parts
    plain = held is None or (divided is not None and divided.whole and held.whole and held.spare >= needs.edge_bytes)
    return PackedPlan(layouts, held, device, plain)


def packing_pays(config: Config, needs: MemoryRequest, divided: HostBudget | None) -> bool:
    """Whether packed edges serve a run better than plain ones that the device does not all hold.

    They do where every iteration walks all edges, where host memory does not hold plain ones, and where a route is
    forced that is meant for them. divided: how the host would hold plain edges, None: it has them.
    """
    return needs.sweeps or config.route in PACKED_ROUTES or not (divided is None or divided.whole)


def plan_packed_sweeps(
    graph: Graph, needs: MemoryRequest, divided: HostBudget | None, host: HostBudgetRequest
) -> PackedPlan | None:
    """Return how sweeps on the cores take packed edges, None where they take plain ones.

    divided: how memory would hold plain ones. host: what it has to divide.
    """
    if needs.plain or not needs.adjacencies or divided is None or divided.whole:
        return None
    layouts = _layouts(needs, 1, weighted=False)
    if layouts is None or not all(layout.chunks for layout in layouts):
        return None
    steps = -(-graph.out.chunk_edges // STEP_EDGES)
    budget = divide_packed_sweeps(host, layouts, steps * SCRATCH * graph.vertex_dtype.itemsize)
    return None if budget is None else PackedPlan(layouts, budget)


def _layouts(needs: MemoryRequest, threads: int, *, weighted: bool) -> tuple[PackedLayout, ...] | None:
    """Where the payloads of the adjacencies are; None where one of them is not packed, or there are none."""
    found = [packed_layout(adjacency, threads, weighted) for adjacency in needs.adjacencies]
    return tuple(layout for layout in found if layout is not None) if found and None not in found else None
