"""Whether sweeps on the cores take their edges packed, and how the host's memory is divided then.

They do where the edges are on disk, memory does not hold all of them plain, and every kernel that reads them decodes
what it reads. Pieces (`storage/format/packed_layout.py`) take about half the memory of plain edges, and are written and
read once less. Where the budget has no room for a few of them, edges stay plain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.state.sweep_sizes import SCRATCH, STEP_EDGES
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.format.packed_layout import packed_layout
from penstock.storage.read.packed_cache import PackedCache
from penstock.transfer.planning.host_budget import HostBudget, HostBudgetRequest
from penstock.transfer.planning.packed_budget import PackedHost, divide_packed_sweeps
from penstock.transfer.staging.staging import Packing, Staging

if TYPE_CHECKING:
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.packed_layout import PackedLayout
    from penstock.storage.read.partition_cache import Allocate
    from penstock.transfer.devices.host import HostDevice
    from penstock.transfer.staging.edge_source import EdgeSource
    from penstock.transfer.values.options import TransferOptions


@dataclass(frozen=True)
class PackedSweeps:
    """How a run's sweeps take packed edges: of which adjacencies, in which partitions, with which memory."""

    layouts: tuple[PackedLayout, ...]
    partition_edges: int
    host: PackedHost

    @property
    def divided(self) -> HostBudget:
        """The division as readers and options take it; what pieces take is in `host`."""
        host = self.host
        return HostBudget(
            self.partition_edges,
            host.buffers,
            0,
            host.reads_in_flight,
            whole=host.whole,
            edge_bytes=0,
            spare=host.spare,
            decoders=host.decoders,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all payloads."""
        return sum(layout.nbytes for layout in self.layouts)

    def cache(self, allocate: Allocate = aligned_empty) -> PackedCache | None:
        """The cache of pieces; None where there is no room for one."""
        words = self.host.words
        return PackedCache(self.layouts, self.partition_edges, words, allocate) if words else None

    def staging(
        self, device: HostDevice, source: EdgeSource, cache: PackedCache | None, options: TransferOptions, graph: Graph
    ) -> Staging:
        """What pieces are staged in."""
        dtypes, packing = (graph.out.neighbor_dtype, None), Packing.of(self.layouts, self.partition_edges)
        return Staging(device, source, cache, options, dtypes, packing, kernels_unpack=True)


def plan_packed_sweeps(
    graph: Graph, needs: MemoryRequest, divided: HostBudget | None, budget: HostBudgetRequest
) -> PackedSweeps | None:
    """Return how sweeps take packed edges, None where they take plain ones; divided: how memory would hold these."""
    if needs.plain or not needs.adjacencies or divided is None or divided.whole:
        return None
    found = [packed_layout(adjacency, 1, weighted=False) for adjacency in needs.adjacencies]
    layouts = tuple(layout for layout in found if layout is not None and layout.chunks)
    if len(layouts) < len(found):
        return None
    steps = -(-graph.out.chunk_edges // STEP_EDGES)
    parts = divide_packed_sweeps(budget, layouts, steps * SCRATCH * graph.vertex_dtype.itemsize)
    return None if parts is None else PackedSweeps(layouts, *parts)
