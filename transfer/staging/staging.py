"""What carries the edges of one pipeline: their source, the cache, slabs and gather buffers."""

from __future__ import annotations

from numpy.typing import DTypeLike
from penstock.storage.read.partition_cache import HostCache
from penstock.transfer.devices.device import Device
from penstock.transfer.staging.edge_source import EdgeSource, LinkSource
from penstock.transfer.staging.gather_buffers import GatherBuffers
from penstock.transfer.staging.slab_pool import SlabPool
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.task import Ints


class Staging:
    """What the directories of a pipeline share; dtypes: of neighbors, and of weights where there are any."""

    def __init__(
        self,
        device: Device,
        source: EdgeSource,
        cache: HostCache | None,
        options: TransferOptions,
        dtypes: tuple[DTypeLike, DTypeLike | None],
    ) -> None:
        edges = options.partition_edges * options.combine
        self.device, self.source, self.cache, self.options = device, source, cache, options
        self.slabs = SlabPool(device, options.slabs, edges, *dtypes)
        self.packs = GatherBuffers(device, options.slabs, edges, dtypes, options.gather_threads)
        self._pinned: Ints | None = None

    @property
    def link(self) -> LinkSource:
        """The source of a device behind a link. Raises RuntimeError for one that reads host memory."""
        if self.device.reads_host:
            raise RuntimeError(f"{self.device.name} reads host memory; there is no link to gather for or to read over")
        return self.source  # type: ignore[return-value]  # whoever made it chose the source by the device

    def pin(self, entries: Ints) -> None:
        """Keep cache entries in place, instead of those pinned before."""
        self.unpin()
        if self.cache is not None:
            self._pinned = entries
            self.cache.pins[entries] += 1

    def unpin(self) -> None:
        """Let the cache drop what was pinned."""
        pinned, self._pinned = self._pinned, None
        if pinned is not None and self.cache is not None:
            self.cache.pins[pinned] -= 1

    def close(self) -> None:
        """Unpin, and release the gather buffers."""
        self.unpin()
        self.packs.close()
