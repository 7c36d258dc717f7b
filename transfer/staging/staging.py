"""What carries the edges of one pipeline: their source, the cache, slabs and gather buffers.

Where edges are staged packed, the source, the cache and the buffers that `places` lends are of pieces
(`packed_layout.py`). On a device `unpacking` makes plain edges of them in the slabs; the host only hands pieces on, and
has no slabs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike
from penstock.storage.encoding.payload import BLOCK
from penstock.storage.format.packed_layout import PackedLayout
from penstock.storage.read.partition_cache import PartitionCache
from penstock.transfer.devices.device import Device, DeviceArray, Event, Stream, Unpacker
from penstock.transfer.staging.edge_source import EdgeSource, LinkSource
from penstock.transfer.staging.gather_buffers import GatherBuffer, GatherBuffers
from penstock.transfer.staging.slab_pool import Slab, SlabPool
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.task import Ints


class DevicePacking:
    """What unpacks on one device: kernels, a stream of their own, and where every payload begins.

    vertices: ids in payloads are below it. Frees what it placed on the device in `close`.
    """

    ahead = 3
    """Views on which kernels were launched that the device has not passed; the host waits rather than launch more."""

    def __init__(self, device: Device, unpacker: Unpacker, layouts: Sequence[PackedLayout], vertices: int) -> None:
        self.device, self.unpacker, self.vertices = device, unpacker, vertices
        self.stream: Stream = device.stream(of_kernels=True)
        self._starts: dict[tuple[str, bool], DeviceArray] = {}
        self._marks: dict[str, DeviceArray] = {}
        self._launched: deque[Event] = deque()
        for layout in layouts:
            self._starts[layout.direction, False] = device.to_device(np.ascontiguousarray(layout.neighbors))
            if layout.weights is not None and not layout.raw_weights:
                self._starts[layout.direction, True] = device.to_device(np.ascontiguousarray(layout.weights))

    def starts(self, direction: str, *, weights: bool) -> DeviceArray:
        """Return where the payloads of neighbors, or of weights, of an adjacency begin: int64[chunks + 1], there."""
        return self._starts[direction, weights]

    def pace(self, launched: Event) -> None:
        """Wait until the device is at most `ahead` views behind; launched: the event after the kernels on the last.

        Else all that is resident would be launched on, in a moment, before anything that has to travel has arrived.
        """
        self._launched.append(launched)
        if len(self._launched) > self.ahead:
            self.device.wait(self._launched.popleft())

    def marks(self, direction: str, edges: int) -> DeviceArray:
        """Return the bitmap for wanted blocks of an adjacency, uint32 words; one demand at a time has it."""
        if direction not in self._marks:
            self._marks[direction] = self.device.array(mark_words(edges), np.dtype(np.uint32))
        return self._marks[direction]

    def close(self) -> None:
        """Free what was placed on the device."""
        for array in (*self._starts.values(), *self._marks.values()):
            self.device.free(array)
        self._starts.clear()
        self._marks.clear()


def mark_words(edges: int) -> int:
    """Return the words of a bitmap with a bit for each block of an adjacency."""
    return max(1, -(-edges // (BLOCK * 32)))


class Staging:
    """What the directories of a pipeline share; dtypes: of neighbors, and of weights where there are any.

    cache: of none to all of the partitions; where it is of pieces, edges are staged packed. unpacking: what unpacks
    them on a device. plain: where a device that is fed packed edges reads plain ones in place, None where host memory
    does not hold them. kernels_unpack: whether kernels take pieces as they are.
    """

    def __init__(
        self,
        device: Device,
        source: EdgeSource,
        cache: PartitionCache,
        options: TransferOptions,
        dtypes: tuple[DTypeLike, DTypeLike | None],
        unpacking: DevicePacking | None = None,
        plain: LinkSource | None = None,
        *,
        kernels_unpack: bool = False,
    ) -> None:
        edges = options.partition_edges * options.combine
        self.device, self.source, self.cache, self.options = device, source, cache, options
        self.unpacking, self.plain, self.kernels_unpack = unpacking, plain, kernels_unpack
        if not cache.tables:
            self.slabs = self.places = SlabPool(device, options.slabs, edges, *dtypes)
        else:
            buffers = options.slabs * options.combine
            self.places = SlabPool(device, buffers, cache.longest, np.uint32, None, in_turn=True)
            self.slabs = SlabPool(device, options.plain_slabs, edges, *dtypes, in_turn=True)
        self.packs = GatherBuffers(device, options.slabs, edges, dtypes, options.gather_threads)
        self._pinned: Ints | None = None

    @property
    def link(self) -> LinkSource:
        """The source of a device behind a link, which alone has routes that gather or read over it."""
        return self.plain or self.source  # type: ignore[return-value]  # whoever made it chose the source by the device

    @property
    def packed_link(self) -> LinkSource:
        """The source of packed edges of a device behind a link."""
        assert self.unpacking is not None, "only a device that is fed packed edges has one"
        return self.source  # type: ignore[return-value]  # as `link`

    def take_room(self, with_weights: bool) -> tuple[GatherBuffer, Slab] | None:
        """Take a pack and the slab that it is copied to; None, and neither is taken, where one is missing."""
        pack = self.packs.take(with_weights)
        if pack is None:
            return None
        slab = None
        try:
            slab = self.slabs.take(with_weights)
        finally:
            if slab is None:
                self.packs.give(pack)
        return None if slab is None else (pack, slab)

    def pin(self, entries: Ints) -> None:
        """Keep cache entries in place, instead of those pinned before."""
        self.unpin()
        self._pinned = entries
        self.cache.pins[entries] += 1

    def unpin(self) -> None:
        """Let the cache drop what was pinned."""
        pinned, self._pinned = self._pinned, None
        if pinned is not None:
            self.cache.pins[pinned] -= 1

    def close(self) -> None:
        """Unpin, release the gather buffers, and free what unpacks."""
        self.unpin()
        self.packs.close()
        if self.unpacking is not None:
            self.unpacking.close()
