"""The host's side of a link: where a device with memory of its own gets the edges that it does not hold.

Host memory that the device copies from is page-locked. Where the host memory budget allows it, it has a place for every
edge: those of a graph on disk are read when they are first wanted. Else edges are read from disk into a cache and slabs
of the host, from which they are carried on. Refuses a budget in which neither works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.engine.resources.host_resources import make_cache, numbers, open_reader
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.base.timeline import Timeline
from penstock.storage.read.reader import Reader
from penstock.transfer.devices.device import Device
from penstock.transfer.staging.edge_source import EdgeSource
from penstock.transfer.staging.link_reader import LinkReader
from penstock.transfer.staging.page_locks import PageLocks
from penstock.transfer.staging.staging import Staging

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.memory_plan import MemoryPlan
    from penstock.engine.resources.packed_edges import PackedPlan
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.transfer.planning.host_budget import HostBudget


class PinnedHost(Device):
    """The host, all of whose memory is such that `device` copies from it at full speed and reads it in place."""

    def __init__(self, device: Device, threads: int) -> None:
        super().__init__(f"host of {device.name}", threads)
        self._device = device
        self._arrays: list[NDArray[Any]] = []

    def host_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items of page-locked memory."""
        self._arrays.append(self._device.host_array(count, dtype))
        return self._arrays[-1]

    array = host_array

    def register(self, array: NDArray[Any]) -> None:
        """Page-lock memory that was allocated elsewhere."""
        self._device.register(array)
        self._arrays.append(array)

    def close(self) -> None:
        """Release what was page-locked here."""
        for array in self._arrays:
            self._device.unregister(array)
        self._arrays.clear()


class HostEdgeSource:
    """What host memory holds for a device behind a link.

    source: brings edges to the device, packed ones where they travel so. plain: where it then reads plain edges in
    place, None where host memory has none. disk: what reads the edges of `source`, None for a graph in memory. paper:
    as in `HostResources`.
    """

    def __init__(
        self,
        graph: Graph,
        config: Config,
        plan: MemoryPlan,
        device: Device,
        timeline: Timeline | None = None,
        *,
        paper: bool = False,
    ) -> None:
        for adjacency in plan.needs.adjacencies:
            adjacency.index(config.thread_count)  # what fails here leaves no thread behind
        self._graph, self._needs, self._device, self._paper = graph, plan.needs, device, paper
        self._host = PinnedHost(device, config.thread_count)
        self.disk: Reader | None = None
        self.plain: LinkReader | None = None
        self.source: LinkReader
        packed, self._threads = plan.packed, config.thread_count
        try:
            if plan.host is not None and not paper:
                self.disk = open_reader(graph, config, plan.host, timeline)
            if packed is not None and packed.plain:
                self.plain = self._source(plan.host)
            self.source = self._source(plan.host if packed is None else packed.host, packed)
        except BaseException:
            self.close()
            raise

    def _source(self, budget: HostBudget | None, packed: PackedPlan | None = None) -> LinkReader:
        """What brings edges, plain ones without `packed`.

        A cache is page-locked at once or, where it keeps every edge, as edges arrive. budget: None in memory.
        """
        graph, needs, device = self._graph, self._needs, self._device
        if budget is None:
            arrays = {one.direction: self._arrays(one, packed=packed is not None) for one in needs.adjacencies}
            return LinkReader(device, arrays, packed=packed is not None)
        allocate = numbers if self._paper else aligned_empty if budget.whole else self._host.host_array
        cache = make_cache(graph, needs, budget, packed, allocate, apart=budget.whole)
        dtypes = graph.out.neighbor_dtype, graph.out.weight_dtype
        staging = Staging(self._host, EdgeSource(self.disk), cache, budget.options, dtypes)
        locks = PageLocks(self._host, cache) if budget.whole and not self._paper else None
        return LinkReader(device, host=staging, adjacencies=needs.adjacencies, locks=locks)

    def _arrays(self, adjacency: Adjacency, *, packed: bool) -> tuple[Any, Any]:
        """Neighbors, and weights or None, of an adjacency in memory, or the words of their payloads, page-locked."""
        assert adjacency.arrays is not None, "only a graph on disk has its host's memory divided"
        found: list[NDArray[Any] | None] = [None, None]
        for weights in (False, True)[: 1 + self._needs.weighted]:
            items = adjacency.arrays[weights]
            assert items is not None, "a graph whose weights are wanted has them"
            if packed:
                store = adjacency.pack(weights, self._threads)
                items = items.view(np.uint32) if store is None else store[0]
            if not self._paper:
                self._host.register(items)
            found[weights] = items
        return found[0], found[1]

    def close(self) -> None:
        """Stop reading, and release the page-locked memory."""
        if self.disk is not None:
            self.disk.close()
        self._host.close()
