"""Where the ranks of a run compute: on cores, on GPUs, or some on these and some on those; and how they exchange there.

GPUs that are all different, one to a rank, exchange over NCCL. Otherwise arrays go by way of host memory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.ranks.staged import StagedCommunicator
from penstock.storage.encoding.codec import checksum

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator, DeviceCommunicator
    from penstock.transfer.devices.device import Device

ON_CORES, ON_DEVICE = 0, 1


@dataclass(frozen=True)
class RankDevices:
    """What all ranks know of each other's devices.

    linked: whether any rank's edges may come over a link. on_devices: whether any rank's vertex state is on a device.
    alike: whether all compute on the same kind of processor, so that the same kernel gives the same floats everywhere.
    communicator: for this rank's arrays, None where they are in host memory.
    """

    linked: bool = False
    on_devices: bool = False
    alike: bool = True
    communicator: DeviceCommunicator | None = None

    @classmethod
    def of(cls, ranks: Communicator, device: Device | None, *, state_there: bool) -> RankDevices:
        """Ask all ranks; device: behind a link, None for the host; state_there: whether vertex state is on it."""
        kind = "cores" if device is None or not state_there else json.dumps([device.kind, device.facts().get("name")])
        found = ranks.gather_numbers(np.array([device is not None, state_there, _number(kind)], dtype=np.uint64))
        communicator = device_communicator(ranks, device if state_there else None)
        alike = bool((found[:, 2] == found[0, 2]).all())
        return cls(bool(found[:, 0].any()), bool(found[:, 1].any()), alike, communicator)


def device_communicator(ranks: Communicator, device: Device | None) -> DeviceCommunicator | None:
    """How arrays on this rank's device are exchanged; None for a rank whose arrays are in host memory.

    All ranks call it. Over NCCL where each of them has a GPU of its own, else by way of host memory.
    """
    place = 0 if device is None or device.kind != "cuda" else _number(device.place)
    places = ranks.gather_numbers(np.array([place], dtype=np.uint64)).ravel()
    if device is None:
        return None
    if places.all() and len(np.unique(places)) == ranks.size:
        from penstock.engine.ranks.nccl import NcclCommunicator

        return NcclCommunicator(ranks, device)
    return StagedCommunicator(ranks, device)


def _number(text: str) -> int:
    """A number that is the same for the same text, and not 0."""
    return checksum(np.frombuffer(text.encode(), dtype=np.uint8)) | 1
