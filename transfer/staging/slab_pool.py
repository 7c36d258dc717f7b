"""Slabs: reusable buffers, in the memory that kernels read, for edges that the cache does not keep.

A pool has a fixed number of them. Their memory comes from the device (which may want it page-locked) when first needed,
and is kept: buffers are allocated once. Refuses a slab that is given back twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from penstock.transfer.devices.device import Device, DeviceArray


@dataclass(frozen=True, slots=True, eq=False)
class Slab:
    """One buffer of a pool: `neighbors` and, for programs that read them, `weights`, both of the pool's length.

    free: the device's event after which it may be written, None: at once.
    """

    pool: SlabPool
    number: int
    neighbors: DeviceArray
    weights: DeviceArray | None
    free: Any = None


class SlabPool:
    """`count` slabs of `edges` edges each, of which `free` are not taken.

    in_turn: the slab that was given back first is taken first, so that what is at work on the others goes on; else the
    one given back last, whose memory is there already.
    """

    def __init__(
        self,
        device: Device,
        count: int,
        edges: int,
        neighbor_dtype: DTypeLike,
        weight_dtype: DTypeLike | None,
        *,
        in_turn: bool = False,
    ) -> None:
        self.count = self.free = count
        self.edges = edges
        self._in_turn = in_turn
        self._allocate = device.array
        self._types = (np.dtype(neighbor_dtype), None if weight_dtype is None else np.dtype(weight_dtype))
        self._numbers = list(reversed(range(count)))
        self._neighbors: dict[int, DeviceArray] = {}
        self._weights: dict[int, DeviceArray] = {}
        self._events: dict[int, Any] = {}

    def take(self, with_weights: bool) -> Slab | None:
        """Take a free slab; None when all are taken."""
        neighbor_dtype, weight_dtype = self._types
        if with_weights and weight_dtype is None:
            raise ValueError("weights are wanted of slabs that were made without them")
        if not self.free:
            return None
        number = self._numbers[0 if self._in_turn else -1]
        if number not in self._neighbors:
            self._neighbors[number] = self._allocate(self.edges, neighbor_dtype)
        if with_weights and weight_dtype is not None and number not in self._weights:
            self._weights[number] = self._allocate(self.edges, weight_dtype)
        self._numbers.remove(number)
        self.free -= 1
        weights = self._weights[number] if with_weights else None
        return Slab(self, number, self._neighbors[number], weights, self._events.pop(number, None))

    def give(self, slab: Slab, free: Any = None) -> None:
        """Give a slab back; its arrays may be overwritten after the event `free`, or from now on."""
        if slab.number in self._numbers:
            raise ValueError(f"slab {slab.number} of {self.count} is given back but is not taken")
        if free is not None:
            self._events[slab.number] = free
        self._numbers.append(slab.number)
        self.free += 1
