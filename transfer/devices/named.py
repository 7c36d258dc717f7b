"""Which device an option names: `cpu`, `emulated`, `cuda:N`, or `auto`, the first GPU if there is one."""

from __future__ import annotations

from collections.abc import Callable

from penstock.transfer.devices import cuda
from penstock.transfer.devices.device import Device
from penstock.transfer.devices.emulated import EmulatedDevice


def expected_name(asked: str, kernels: str, found: Callable[[], object]) -> str:
    """The name of the device that is asked for; kernels: the option; found: whether there are GPUs."""
    if asked != "auto":
        return asked
    return "cuda:0" if kernels == "host" and found() else "cpu"


def expected_kernels(asked: str, kernels: str) -> str:
    """The kind of kernels that it runs if what is installed is there: no device is asked, which takes long."""
    return "cuda" if expected_name(asked, kernels, cuda.may_be_here).startswith("cuda") else kernels


def device_named(asked: str, kernels: str, threads: int, memory_bytes: int | None, link_bytes: float | None) -> Device:
    """The device; memory_bytes: of its own memory, if it has any. Raises InputError where it is not here."""
    name = expected_name(asked, kernels, cuda.count)
    if name == "cpu":
        return Device(threads=threads)
    if name == "emulated":
        return EmulatedDevice("emulated:0", threads, memory_bytes or 1 << 62, link_bytes)
    return cuda.CudaDevice(cuda.number_of(name), memory_bytes)
