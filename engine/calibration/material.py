"""What is calibrated: the machine and a device, by facts; a graph and its files. Imports no kernels: each run asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.storage.base import hardware_info
from penstock.storage.format.graph import Graph
from penstock.transfer.devices.device import Device


@dataclass(frozen=True)
class Material:
    """What to measure besides the device: a graph whose frames are decoded, files whose disk is read; both optional."""

    graph: Graph | None = None
    files: Sequence[Path] = ()

    @classmethod
    def of(cls, graph: Graph) -> Material:
        """A graph on disk and the files that hold its edges; nothing of a graph in memory."""
        return cls(graph, graph.files[1:] or graph.files)

    @property
    def disk(self) -> str:
        """The name under which the files' disk is measured: several disks that are read at once count as one."""
        return "+".join(sorted({hardware_info.disk_of(file) for file in self.files}))


def machine_facts(device: Device) -> dict[str, Any]:
    """Return what the rates depend on: this machine and the device."""
    return hardware_info.facts() | {"device": device.facts()}
