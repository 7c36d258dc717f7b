"""The host's side of a link: where a device with memory of its own gets the edges that it does not hold.

Host memory that the device copies from is page-locked. Where the host memory budget allows it, it has a place for every
edge: those of a graph on disk are read when they are first wanted. Else edges are read from disk into a cache and slabs
of the host, from which they are carried on. Refuses a budget in which neither works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.engine.resources.device_memory_plan import edge_source_options
from penstock.engine.resources.host_resources import make_cache, open_reader
from penstock.storage.base.timeline import Timeline
from penstock.storage.read.packed_cache import PackedCache
from penstock.storage.read.reader import Reader
from penstock.transfer.devices.host import HostDevice
from penstock.transfer.staging.edge_source import LocalReader
from penstock.transfer.staging.link_reader import LinkReader
from penstock.transfer.staging.page_locks import PageLocks
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.options import TransferOptions

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.device_memory_plan import DeviceMemoryPlan
    from penstock.engine.resources.packed_edges import PackedPlan
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.storage.read.partition_cache import Allocate, HostCache
    from penstock.transfer.devices.device import Device
    from penstock.transfer.planning.host_budget import HostBudget
    from penstock.transfer.staging.edge_source import ChunkReader


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
    with, None for a graph in memory. loading: whether the host keeps all that is read from disk.
    """

    def __init__(
        self,
        graph: Graph,
        config: Config,
        needs: MemoryRequest,
        device: Device,
        placed: DeviceMemoryPlan,
        timeline: Timeline | None = None,
    ) -> None:
        for adjacency in needs.adjacencies:
            adjacency.index(config.thread_count)  # what fails here leaves no thread behind
        self._graph, self._needs, self._device = graph, needs, device
        self._host = PinnedHost(device, config.thread_count)
        self.disk: Reader | None = None
        self.staging: Staging | None = None
        self.plain: LinkReader | None = None
        self.source: LinkReader
        divided, packed = placed.divided, placed.packed
        self.loading = divided is not None and (divided.whole if packed is None else packed.loading)
        try:
            if divided is not None:
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
        allocate = self._host.plain_array if divided.whole else self._host.host_array
        cache = make_cache(self._graph, self._needs, divided, allocate, apart=divided.whole)
        staging = host_staging(self._graph, divided, self._host, self.disk, cache)
        return self._by_way_of(staging), staging

    def _packed_source(self, packed: PackedPlan, threads: int) -> tuple[LinkReader, Staging | None]:
        """What brings packed edges, and what they are staged in."""
        adjacencies, device, budget = self._needs.adjacencies, self._device, packed.budget
        if budget.host is None:
            stores = {one.direction: self._packed(one, threads) for one in adjacencies}
            return LinkReader(device, stores, packed=True), None
        whole = budget.host.whole
        allocate = self._host.plain_array if whole else self._host.host_array
        cache = packed_cache(packed, budget.host.words, allocate)
        staging = packed_staging(self._graph, packed, self._host, self.disk, cache)
        return self._by_way_of(staging), staging

    def _by_way_of(self, staging: Staging) -> LinkReader:
        """What brings edges from disk; where host memory keeps all of them, it page-locks what has come."""
        kept = staging.cache is not None and staging.cache.whole
        locks = PageLocks(self._host, staging.cache) if kept and staging.cache is not None else None
        return LinkReader(self._device, host=staging, adjacencies=self._needs.adjacencies, locks=locks)

    def _packed(self, adjacency: Adjacency, threads: int) -> tuple[Any, Any]:
        """The payloads of an adjacency in memory, page-locked: of neighbors, and of weights or None."""
        assert adjacency.arrays is not None, "a graph on disk has its payloads there"
        found: list[NDArray[Any] | None] = [None, None]
        for weights in (False, True)[: 1 + self._needs.weighted]:
            store, items = adjacency.pack(weights, threads), adjacency.arrays[weights]
            assert items is not None, "a graph whose weights are wanted has them"
            words = items.view(np.uint32) if store is None else store[0]
            self._host.register(words)
            found[weights] = words
        return found[0], found[1]

    def _pinned(self, adjacency: Adjacency) -> tuple[Any, Any]:
        """The arrays of an adjacency in memory, page-locked: neighbors, and weights or None."""
        assert adjacency.arrays is not None, "only a graph on disk has its host's memory divided"
        neighbors, weights = adjacency.arrays
        found = neighbors, weights if self._needs.weighted else None
        for array in found:
            if array is not None:
                self._host.register(array)
        return found

    def close(self) -> None:
        """Stop reading, and release the page-locked memory."""
        if self.disk is not None:
            self.disk.close()
        self._host.close()


def host_staging(
    graph: Graph, divided: HostBudget, host: HostDevice, reader: ChunkReader | None, cache: HostCache | None
) -> Staging:
    """What a host stages edges in for a device behind a link, by a division of its memory."""
    dtypes = graph.out.neighbor_dtype, graph.out.weight_dtype
    return Staging(host, LocalReader(reader), cache, edge_source_options(divided), dtypes)


def packed_cache(packed: PackedPlan, words: int, allocate: Allocate) -> PackedCache | None:
    """A cache of so many words of pieces; None where it has no room for any."""
    if not words:
        return None
    return PackedCache(packed.layouts, packed.budget.partition_edges, words, allocate)


def packed_staging(
    graph: Graph, packed: PackedPlan, host: HostDevice, reader: ChunkReader | None, cache: PackedCache | None
) -> Staging:
    """What a host stages pieces in for a device behind a link, by a division of its memory."""
    budget = packed.budget
    assert budget.host is not None, "a graph on disk has its host's memory divided"
    options = TransferOptions(budget.partition_edges, budget.host.buffers, budget.host.ahead)
    dtypes = graph.out.neighbor_dtype, graph.out.weight_dtype
    return Staging(host, LocalReader(reader), cache, options, dtypes, packed.packing)
