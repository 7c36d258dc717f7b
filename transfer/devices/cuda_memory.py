"""Address space of a GPU of which some ranges have memory: an array of all items, a part of which is there.

Owns the calls of the driver's virtual memory management (CUDA Driver API, "Virtual Memory Management"), which CuPy does
not have. Memory is plain memory of the device, in multiples of GRAIN bytes. Kernels that touch an item without memory
fail.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from penstock.storage.base.errors import RunError

GRAIN = 2 << 20
"""Bytes of which each range that has memory is a multiple."""
PINNED, DEVICE, READ_WRITE = 1, 1, 3


class _Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = [("kind", ctypes.c_int), ("number", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("kind", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


@cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    """Call the driver. Raises RunError where it refuses."""
    status = getattr(_driver(), name)(*arguments)
    if status:
        raise RunError(f"the GPU's driver refused {name} with status {status}: lower --device-memory")


class ReservedDeviceArray:
    """An array of a GPU in reserved address space; `values` are its items, `ReservedArray` has the same for the host.

    cupy: the module, whose current device `number` names. The memory goes with it: `values` may not be read after it.
    Raises RunError where so much address space cannot be had.
    """

    def __init__(self, cupy: Any, number: int, count: int, dtype: DTypeLike) -> None:
        self.kind, self._number = np.dtype(dtype), number
        kind = self.kind
        size = max(GRAIN, -(-count * kind.itemsize // GRAIN) * GRAIN)
        address = ctypes.c_uint64()
        zero = ctypes.c_uint64(0)  # the address, as any is taken, and no flags
        _call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0), zero, zero)
        self._address: int = address.value
        self._ranges: dict[int, tuple[int, int]] = {}
        self._closed = weakref.finalize(self, _release, cupy.cuda.Device(number), self._address, size, self._ranges)
        self._closed.atexit = False
        memory = cupy.cuda.UnownedMemory(self._address, size, None, number)
        self.values: Any = cupy.ndarray((count, *kind.shape), kind.base, memptr=cupy.cuda.MemoryPointer(memory, 0))

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it has."""
        return sum(size for size, _ in self._ranges.values())

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Where the items first..last-1 are in the space, in whole grains."""
        size, ends = self.kind.itemsize, min(last, len(self.values))
        return first * size // GRAIN * GRAIN, -(-ends * size // GRAIN) * GRAIN

    def back(self, first: int, last: int) -> None:
        """Give the items of `span`, which have none, memory. Raises RunError where the device has no more."""
        begin, end = self.span(first, last)
        handle, place, size = ctypes.c_uint64(), _Location(DEVICE, self._number), ctypes.c_size_t(end - begin)
        wanted, at = _Properties(PINNED, 0, place), ctypes.c_uint64(self._address + begin)
        _call("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(wanted), ctypes.c_uint64(0))
        try:
            _call("cuMemMap", at, size, ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        except BaseException:
            _call("cuMemRelease", handle)
            raise
        self._ranges[begin] = end - begin, handle.value
        _call("cuMemSetAccess", at, size, ctypes.byref(_Access(place, READ_WRITE)), ctypes.c_size_t(1))

    def forget(self, first: int, last: int) -> None:
        """Give the memory of `span` back, which `back` has given; no kernel at work touches it."""
        begin, _ = self.span(first, last)
        _unmap(self._address + begin, *self._ranges.pop(begin))


def _unmap(address: int, size: int, handle: int) -> None:
    _call("cuMemUnmap", ctypes.c_uint64(address), ctypes.c_size_t(size))
    _call("cuMemRelease", ctypes.c_uint64(handle))


def _release(device: Any, address: int, size: int, ranges: dict[int, tuple[int, int]]) -> None:
    """Give all memory, and the address space, back, when the kernels that were launched on it are done."""
    device.synchronize()
    for begin, (length, handle) in ranges.items():
        _unmap(address + begin, length, handle)
    ranges.clear()
    _call("cuMemAddressFree", ctypes.c_uint64(address), ctypes.c_size_t(size))
