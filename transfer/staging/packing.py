"""What staging packed edges takes: the pieces of each adjacency, and on a device the means to unpack them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from penstock.storage.format.packed_layout import PackedLayout, PieceTable
from penstock.transfer.devices.device import Device, DeviceArray, Stream
from penstock.transfer.devices.unpacking import Unpacker


@dataclass(frozen=True, slots=True)
class Packing:
    """The pieces of each adjacency (by direction) in partitions of one size."""

    tables: Mapping[str, PieceTable]

    @classmethod
    def of(cls, layouts: Sequence[PackedLayout], partition_edges: int) -> Packing:
        """Return the pieces of these adjacencies."""
        return cls({layout.direction: layout.pieces(partition_edges) for layout in layouts})

    @property
    def longest(self) -> int:
        """Words of the longest piece."""
        return max((int(table.sizes.max()) for table in self.tables.values() if len(table.sizes)), default=0)


class DevicePacking:
    """What unpacks on one device: kernels, a stream of their own, and where every payload begins.

    vertices: ids in payloads are below it. Frees what it placed on the device in `close`.
    """

    def __init__(self, device: Device, unpacker: Unpacker, layouts: Sequence[PackedLayout], vertices: int) -> None:
        self.device, self.unpacker, self.vertices = device, unpacker, vertices
        self.stream: Stream = device.stream()
        self._starts: dict[tuple[str, bool], DeviceArray] = {}
        for layout in layouts:
            self._starts[layout.direction, False] = device.to_device(np.ascontiguousarray(layout.neighbors))
            if layout.weights is not None and not layout.raw_weights:
                self._starts[layout.direction, True] = device.to_device(np.ascontiguousarray(layout.weights))

    def starts(self, direction: str, *, weights: bool) -> DeviceArray:
        """Return where the payloads of neighbors, or of weights, of an adjacency begin: int64[chunks + 1], there."""
        return self._starts[direction, weights]

    def close(self) -> None:
        """Free what was placed on the device."""
        for array in self._starts.values():
            self.device.free(array)
        self._starts.clear()
