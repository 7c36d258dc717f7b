"""The host's side of a link: where a device with memory of its own gets the edges that it does not hold.

Host memory that the device copies from is page-locked. Where the host memory budget allows it, it has a place for every
edge: those of a graph on disk are read when they are first wanted. Else edges are read from disk into a cache and slabs
of the host, from which they are carried on. Refuses a budget in which neither works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike, NDArray
from penstock.engine.resources.device_memory_plan import edge_source_options
from penstock.engine.resources.host_resources import make_cache, open_reader
from penstock.storage.base.timeline import Timeline
from penstock.storage.read.reader import Reader
from penstock.transfer.devices.host import HostDevice
from penstock.transfer.staging.edge_source import LocalReader
from penstock.transfer.staging.host_to_device import PinnedReader
from penstock.transfer.staging.loading_reader import LoadingReader
from penstock.transfer.staging.page_locked_runs import PageLockedRuns
from penstock.transfer.staging.staged_reader import StagedReader
from penstock.transfer.staging.staging import Staging

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.storage.read.partition_cache import HostCache
    from penstock.transfer.devices.device import Device
    from penstock.transfer.planning.host_budget import HostBudget
    from penstock.transfer.staging.edge_source import ChunkReader, LinkSource


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

    source: brings edges to the device. staging, disk: what the host stages edges in and reads them with, None for a
    graph in memory. loading: whether the host keeps all that is read from disk.
    """

    def __init__(
        self,
        graph: Graph,
        config: Config,
        needs: MemoryRequest,
        device: Device,
        divided: HostBudget | None,
        timeline: Timeline | None = None,
    ) -> None:
        for adjacency in needs.adjacencies:
            adjacency.index(config.thread_count)  # what fails here leaves no thread behind
        self._host = PinnedHost(device, config.thread_count)
        self.disk: Reader | None = None
        self.staging: Staging | None = None
        self.loading = divided is not None and divided.whole
        self.source: LinkSource
        try:
            if divided is None:
                self.source = PinnedReader(device, {a.direction: self._pinned(a, needs) for a in needs.adjacencies})
                return
            self.disk = open_reader(graph, config, divided, timeline)
            allocate = self._host.plain_array if divided.whole else self._host.host_array
            cache = make_cache(graph, needs, divided, allocate, apart=divided.whole)
            self.staging = host_staging(graph, divided, self._host, self.disk, cache)
            if cache is not None and divided.whole:
                locked = PageLockedRuns(self._host, cache)
                self.source = LoadingReader(device, self.staging, needs.adjacencies, locked)
            else:
                self.source = StagedReader(device, self.staging, needs.adjacencies)
        except BaseException:
            self.close()
            raise

    def _pinned(self, adjacency: Adjacency, needs: MemoryRequest) -> tuple[Any, Any]:
        """The arrays of an adjacency in memory, page-locked: neighbors, and weights or None."""
        assert adjacency.arrays is not None, "only a graph on disk has its host's memory divided"
        neighbors, weights = adjacency.arrays
        found = neighbors, weights if needs.weighted else None
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
