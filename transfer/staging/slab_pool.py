"""Slabs: reusable buffers, in the memory that kernels read, through which edges pass that the cache does not keep.

Owns a fixed number of them and which is free. Refuses a slab given back twice. Their memory comes from the
device (which may want it page-locked) when first needed, and is kept: arenas are allocated once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.slot_pool import SlotPool
from penstock.transfer.devices.device import Device


@dataclass(frozen=True, slots=True)
class Slab:
    """One buffer: `neighbors` and, for programs that read them, `weights`, both of the pool's length."""

    number: int
    neighbors: NDArray[Any]
    weights: NDArray[Any] | None


class Slabs:
    """`count` slabs of `edges` edges each."""

    def __init__(
        self, device: Device, count: int, edges: int, neighbor_dtype: DTypeLike, weight_dtype: DTypeLike | None
    ) -> None:
        self.edges = edges
        self._allocate = device.host_array if device.reads_host else device.array
        self._slots = SlotPool(count)
        self._types = (np.dtype(neighbor_dtype), None if weight_dtype is None else np.dtype(weight_dtype))
        self._neighbors: dict[int, NDArray[Any]] = {}
        self._weights: dict[int, NDArray[Any]] = {}

    @property
    def free(self) -> int:
        """Slabs that nobody has."""
        return self._slots.free

    @property
    def count(self) -> int:
        """Slabs in all."""
        return self._slots.count

    def take(self, with_weights: bool) -> Slab | None:
        """Take a free slab; None when all are in use."""
        neighbor_dtype, weight_dtype = self._types
        if with_weights and weight_dtype is None:
            raise ValueError("weights are wanted of slabs that were made without them")
        number = self._slots.take()
        if number is None:
            return None
        try:
            if number not in self._neighbors:
                self._neighbors[number] = self._allocate(self.edges, neighbor_dtype)
            if with_weights and weight_dtype is not None and number not in self._weights:
                self._weights[number] = self._allocate(self.edges, weight_dtype)
        except BaseException:
            self._slots.give(number)
            raise
        return Slab(number, self._neighbors[number], self._weights[number] if with_weights else None)

    def give(self, slab: Slab) -> None:
        """Give a slab back; its arrays may be overwritten from now on."""
        self._slots.give(slab.number)
