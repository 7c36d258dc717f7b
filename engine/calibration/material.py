"""What is calibrated: the machine and a device, by facts; a graph and its files. Imports no kernels: each run asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.storage.base import hardware_info
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.graph import Graph
from penstock.storage.format.read_plan import ReadRange
from penstock.storage.read.disk_probe import edge_stretches, whole_file
from penstock.transfer.calibration.calibration import NEW_FILE
from penstock.transfer.devices.device import Device


@dataclass(frozen=True)
class Material:
    """What to measure besides the device: a graph whose frames are decoded, files whose disk is read; both optional.

    Files without a graph have just been written.
    """

    graph: Graph | None = None
    files: Sequence[Path] = ()

    def reads(self) -> tuple[Sequence[OpenFile], list[ReadRange]]:
        """Return the files to read, open, and the stretches of them: of a graph file those that hold edges."""
        if self.graph is not None:
            return self.graph.open_files, edge_stretches(self.graph)
        files = [OpenFile(path) for path in self.files]
        return files, [whole_file(number, file.size) for number, file in enumerate(files)]

    @classmethod
    def of(cls, graph: Graph) -> Material:
        """A graph on disk and the files that hold its edges; nothing of a graph in memory."""
        return cls(graph, graph.files[1:] or graph.files)

    @property
    def disk(self) -> str:
        """The name under which the files' disk is measured: several disks that are read at once count as one."""
        files = self.files
        if self.graph is not None:  # open: their names may be gone
            files = [Path(file.name) for file in self.graph.open_files[-len(files) :]]
        name = "+".join(sorted({hardware_info.disk_of(file) for file in files}))
        return name if self.graph is not None else name + NEW_FILE


def machine_facts(device: Device) -> dict[str, Any]:
    """Return what the rates depend on: this machine and the device."""
    return hardware_info.facts() | {"device": device.facts()}


def machine_fingerprint(device: Device) -> str:
    """The name under which what was measured on this machine and device is kept (`Calibration.fingerprint`)."""
    return hardware_info.fingerprint(machine_facts(device))
