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
from penstock.storage.base.timeline import Timeline
from penstock.storage.read.reader import Reader
from penstock.transfer.devices.host import HostDevice
from penstock.transfer.staging.edge_source import LocalReader
from penstock.transfer.staging.link_reader import LinkReader
from penstock.transfer.staging.page_locks import PageLocks
from penstock.transfer.staging.staging import Staging

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.memory_plan import MemoryPlan
    from penstock.engine.resources.packed_edges import PackedPlan
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.storage.read.partition_cache import Allocate, PartitionCache
    from penstock.transfer.devices.device import Device
    from penstock.transfer.planning.host_budget import HostBudget


class PinnedHost(HostDevice):
    """The host, all of whose memory is such that `device` copies from it at full speed and reads it in place."""

    def __init__(self, device: Device, threads: int) -> None:
        super().__init__(f"host of {device.name}", threads)
        self._device = device
        self._arrays: list[NDArray[Any]] = []

    def host_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items of page-locked memory."""
        self._arrays.append(self._device.host_array(count, dtype))
        return self._arrays[-1]

    def plain_array(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Allocate `count` items whose pages are touched when written, and locked when given to `register`."""
        return super().host_array(count, dtype)

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
    place, None where host memory has none. staging, disk: what the host stages the edges of `source` in and reads them
    with, None for a graph in memory. paper: as in `HostResources`.
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
        self.staging: Staging | None = None
        self.plain: LinkReader | None = None
        self.source: LinkReader
        divided, packed = plan.host, plan.packed
        try:
            if divided is not None and not paper:
                self.disk = open_reader(graph, config, divided, timeline)
            if packed is None:
                self.source, self.staging = self._plain_source(divided)
                return
            if packed.plain:
                self.plain, _ = self._plain_source(divided)
            self.source, self.staging = self._packed_source(packed, config.thread_count)
        except BaseException:
            self.close()
            raise

    def _plain_source(self, divided: HostBudget | None) -> tuple[LinkReader, Staging | None]:
        """What brings plain edges, and what they are staged in."""
        adjacencies, device = self._needs.adjacencies, self._device
        if divided is None:
            return LinkReader(device, {one.direction: self._pinned(one) for one in adjacencies}), None
        cache = make_cache(self._graph, self._needs, divided, self._allocate(divided), apart=divided.whole)
        return self._from_disk(divided, cache)

    def _packed_source(self, packed: PackedPlan, threads: int) -> tuple[LinkReader, Staging | None]:
        """What brings packed edges, and what they are staged in."""
        adjacencies, device, budget = self._needs.adjacencies, self._device, packed.host
        if budget is None:
            stores = {one.direction: self._packed(one, threads) for one in adjacencies}
            return LinkReader(device, stores, packed=True), None
        return self._from_disk(budget, packed.cache(budget, self._allocate(budget)))

    def _allocate(self, budget: HostBudget) -> Allocate:
        """What allocates a cache: all of it is page-locked at once, or what has come is where it keeps every edge."""
        if self._paper:
            return numbers
        return self._host.plain_array if budget.whole else self._host.host_array

    def _from_disk(self, budget: HostBudget, cache: PartitionCache) -> tuple[LinkReader, Staging]:
        """What brings edges from disk, and what they are staged in."""
        dtypes = self._graph.out.neighbor_dtype, self._graph.out.weight_dtype
        staging = Staging(self._host, LocalReader(self.disk), cache, budget.options, dtypes)
        locks = PageLocks(self._host, cache) if cache.whole and not self._paper else None
        return LinkReader(self._device, host=staging, adjacencies=self._needs.adjacencies, locks=locks), staging

    def _packed(self, adjacency: Adjacency, threads: int) -> tuple[Any, Any]:
        """The payloads of an adjacency in memory, page-locked: of neighbors, and of weights or None."""
        assert adjacency.arrays is not None, "a graph on disk has its payloads there"
        found: list[NDArray[Any] | None] = [None, None]
        for weights in (False, True)[: 1 + self._needs.weighted]:
            store, items = adjacency.pack(weights, threads), adjacency.arrays[weights]
            assert items is not None, "a graph whose weights are wanted has them"
            words = items.view(np.uint32) if store is None else store[0]
            if not self._paper:
                self._host.register(words)
            found[weights] = words
        return found[0], found[1]

    def _pinned(self, adjacency: Adjacency) -> tuple[Any, Any]:
        """The arrays of an adjacency in memory, page-locked: neighbors, and weights or None."""
        assert adjacency.arrays is not None, "only a graph on disk has its host's memory divided"
        neighbors, weights = adjacency.arrays
        found = neighbors, weights if self._needs.weighted else None
        for array in found:
            if array is not None and not self._paper:
                self._host.register(array)
        return found

    def close(self) -> None:
        """Stop reading, and release the page-locked memory."""
        if self.disk is not None:
            self.disk.close()
        self._host.close()
