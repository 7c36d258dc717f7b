"""Which `Unpacker` serves a device."""

from __future__ import annotations

from penstock.engine.kernels.packed.host_unpacker import HostUnpacker
from penstock.transfer.devices.device import Device, Unpacker


def unpacker_of(device: Device, *, cuda_kernels: bool = False) -> Unpacker:
    """What decodes payloads for a device; cuda_kernels: with a GPU's kernels on an emulated device, too (simulated)."""
    if device.kind != "cuda" and not cuda_kernels:
        return HostUnpacker()
    from penstock.engine.kernels.packed.cuda_unpacker import CudaUnpacker  # numba.cuda only where a device is used

    return CudaUnpacker(device)
