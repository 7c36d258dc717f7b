"""Slabs: reusable buffers, in the memory that kernels read, for edges that the cache does not keep.

A pool has a fixed number of them. Their memory comes from the device (which may want it page-locked) when first needed,
and is kept: buffers are allocated once. Refuses a slab that is given back twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike
from penstock.transfer.devices.device import Device, DeviceArray


@dataclass(frozen=True, slots=True, eq=False)
class Slab:
    """One buffer of a pool: `neighbors` and, for programs that read them, `weights`, both of the pool's length."""

    pool: SlabPool
    number: int
    neighbors: DeviceArray
    weights: DeviceArray | None


class SlabPool:
    """`count` slabs of `edges` edges each, of which `free` are not taken."""

    def __init__(
        self, device: Device, count: int, edges: int, neighbor_dtype: DTypeLike, weight_dtype: DTypeLike | None
    ) -> None:
        self.count = self.free = count
        self.edges = edges
        self._allocate = device.host_array if device.reads_host else device.array
        self._types = (np.dtype(neighbor_dtype), None if weight_dtype is None else np.dtype(weight_dtype))
        self._numbers = list(reversed(range(count)))
        self._neighbors: dict[int, DeviceArray] = {}
        self._weights: dict[int, DeviceArray] = {}

    def take(self, with_weights: bool) -> Slab | None:
        """Take a free slab, the last one given back first; None when all are taken."""
        neighbor_dtype, weight_dtype = self._types
        if with_weights and weight_dtype is None:
            raise ValueError("weights are wanted of slabs that were made without them")
        if not self.free:
            return None
        number = self._numbers[-1]
        if number not in self._neighbors:
            self._neighbors[number] = self._allocate(self.edges, neighbor_dtype)
        if with_weights and weight_dtype is not None and number not in self._weights:
            self._weights[number] = self._allocate(self.edges, weight_dtype)
        self._numbers.pop()
        self.free -= 1
        return Slab(self, number, self._neighbors[number], self._weights[number] if with_weights else None)

    def give(self, slab: Slab) -> None:
        """Give a slab back; its arrays may be overwritten from now on."""
        if slab.number in self._numbers:
            raise ValueError(f"slab {slab.number} of {self.count} is given back but is not taken")
        self._numbers.append(slab.number)
        self.free += 1
