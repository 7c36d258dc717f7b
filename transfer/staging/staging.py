"""What carries the edges of one pipeline: their source, the cache, slabs and gather buffers.

Where edges are staged packed, the source, the cache and the buffers that `places` lends are of pieces
(`packed_layout.py`). On a device `unpacking` makes plain edges of them in the slabs; the host only hands pieces on, and
has no slabs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from penstock.storage.format.packed_layout import PieceTable
from penstock.storage.read.packed_cache import PackedCache
from penstock.storage.read.partition_cache import HostCache
from penstock.transfer.devices.device import Device
from penstock.transfer.staging.edge_source import EdgeSource, LinkSource
from penstock.transfer.staging.gather_buffers import GatherBuffers
from penstock.transfer.staging.packing import DevicePacking, Packing
from penstock.transfer.staging.slab_pool import SlabPool
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.task import Ints


class Staging:
    """What the directories of a pipeline share; dtypes: of neighbors, and of weights where there are any.

    packing: the pieces that are staged, None for plain edges. unpacking: what unpacks them on a device. plain: where a
    device that is fed packed edges reads plain ones in place, None where host memory does not hold them.
    kernels_unpack: whether kernels take pieces as they are.
    """

    def __init__(
        self,
        device: Device,
        source: EdgeSource,
        cache: HostCache | PackedCache | None,
        options: TransferOptions,
        dtypes: tuple[DTypeLike, DTypeLike | None],
        packing: Packing | None = None,
        unpacking: DevicePacking | None = None,
        plain: LinkSource | None = None,
        *,
        kernels_unpack: bool = False,
    ) -> None:
        edges = options.partition_edges * options.combine
        self.device, self.source, self.cache, self.options = device, source, cache, options
        self.packing, self.unpacking, self.plain = packing, unpacking, plain
        self.kernels_unpack = kernels_unpack
        if packing is None:
            self.slabs = self.places = SlabPool(device, options.slabs, edges, *dtypes)
        else:
            buffers = options.slabs * options.combine
            self.places = SlabPool(device, buffers, packing.longest, np.uint32, None, in_turn=True)
            self.slabs = SlabPool(device, packing.slabs if options.slabs else 0, edges, *dtypes, in_turn=True)
        self.packs = GatherBuffers(device, options.slabs, edges, dtypes, options.gather_threads)
        self._pinned: Ints | None = None

    @property
    def link(self) -> LinkSource:
        """The source of a device behind a link. Raises RuntimeError for one that reads host memory."""
        if self.device.reads_host:
            raise RuntimeError(f"{self.device.name} reads host memory; there is no link to gather for or to read over")
        return self.plain or self.source  # type: ignore[return-value]  # whoever made it chose the source by the device

    @property
    def packed_link(self) -> LinkSource:
        """The source of packed edges of a device behind a link."""
        assert self.unpacking is not None, "only a device that is fed packed edges has one"
        return self.source  # type: ignore[return-value]  # as `link`

    def pieces(self, direction: str) -> PieceTable | None:
        """Return the pieces of an adjacency, None where its edges are staged plain."""
        return None if self.packing is None else self.packing.tables[direction]

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
        """Unpin, release the gather buffers, and free what unpacks."""
        self.unpin()
        self.packs.close()
        if self.unpacking is not None:
            self.unpacking.close()
