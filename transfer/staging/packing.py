"""What staging packed edges takes: the pieces of each adjacency, and on a device the means to unpack them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from penstock.storage.encoding.payload import BLOCK
from penstock.storage.format.packed_layout import PackedLayout, PieceTable
from penstock.transfer.devices.device import Device, DeviceArray, Event, Stream, Unpacker

FEWEST_SLABS = 2
"""Slabs of plain edges at least: kernels are at work on one while the next is unpacked."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The pieces of each adjacency (by direction) in partitions of one size."""

    tables: Mapping[str, PieceTable]
    slabs: int = FEWEST_SLABS

    @classmethod
    def of(cls, layouts: Sequence[PackedLayout], partition_edges: int, slabs: int = FEWEST_SLABS) -> Packing:
        """Return the pieces of these adjacencies; slabs: of plain edges, into which they are unpacked."""
        return cls({layout.direction: layout.pieces(partition_edges) for layout in layouts}, slabs)

    @property
    def longest(self) -> int:
        """Words of the longest piece."""
        return max((int(table.sizes.max()) for table in self.tables.values() if len(table.sizes)), default=0)


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
