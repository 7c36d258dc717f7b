"""The host's side of a link: where a device with memory of its own gets the edges that it does not hold.

Host memory that the device copies from is page-locked. It holds all edges of the adjacencies where the host memory
budget allows it; else edges are read from disk into a cache and slabs of the host, from which they are carried on.
Refuses, through `layout`, a budget in which neither works.
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

    source: brings edges to the device. staging, disk: what the host stages edges in and reads them with, None if it
    holds all of them.
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
            adjacency.index()  # what fails here leaves no thread behind
        self._timeline = timeline
        self._host = PinnedHost(device, config.thread_count)
        self.disk: Reader | None = None
        self.staging: Staging | None = None
        self.source: LinkSource
        try:
            if divided is None or divided.whole:
                arrays = {
                    a.direction: self._whole(graph, config, a, needs.weighted, divided) for a in needs.adjacencies
                }
                self.source = PinnedReader(device, arrays)
                return
            self.disk = open_reader(graph, config, divided, timeline)
            cache = make_cache(graph, needs, divided, self._host.host_array)
            self.staging = host_staging(graph, divided, self._host, self.disk, cache)
            self.source = StagedReader(device, self.staging, needs.adjacencies)
        except BaseException:
            self.close()
            raise

    def _whole(
        self, graph: Graph, config: Config, adjacency: Adjacency, weighted: bool, divided: HostBudget | None
    ) -> tuple[Any, Any]:
        """All edges of an adjacency in page-locked memory: neighbors, and weights or None."""
        if adjacency.arrays is not None:
            neighbors, weights = adjacency.arrays
            for array in (neighbors, weights if weighted else None):
                if array is not None:
                    self._host.register(array)
            return neighbors, weights if weighted else None
        neighbors = self._host.host_array(adjacency.edges, adjacency.neighbor_dtype)
        kind = adjacency.weight_dtype if weighted else None
        weights = None if kind is None else self._host.host_array(adjacency.edges, kind)
        assert divided is not None, "a graph on disk has its host's memory divided"
        with open_reader(graph, config, divided, self._timeline) as reader:
            reader.fetch_all(adjacency, neighbors, weights)
        return neighbors, weights

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
