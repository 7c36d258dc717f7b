"""What a session has to give back when it is closed, or dropped without being closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine.resources.host_resources import HostResources
    from penstock.transfer.devices.device import Device


class SessionResources:
    """What a session has to give back: its equipment, its device, and the kernels that hold memory of it."""

    def __init__(self, device: Device | None, kernels: dict[Any, Any]) -> None:
        self.equipment: HostResources | None = None
        self._device, self._kernels = device, kernels

    def close(self) -> None:
        """Stop reading, and free the caches and what is on the device."""
        equipment, self.equipment = self.equipment, None
        if equipment is not None:
            equipment.close()
        if self._device is not None:
            for kernels in self._kernels.values():
                kernels.close()
            self._device.close()
        self._kernels.clear()
