"""Where the ranks of a run compute: on cores, on GPUs, or some on these and some on those; and how they exchange there.

GPUs that are all different, one to a rank, exchange over NCCL. Otherwise arrays go by way of host memory.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from penstock.engine.ranks.staged import StagedCommunicator
from penstock.storage.encoding.codec import checksum
from penstock.transfer.devices.cuda import CudaDevice

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator, DeviceCommunicator
    from penstock.transfer.devices.device import Device

_log = logging.getLogger("penstock.engine.ranks.rank_devices")


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
        ours = [device is not None, state_there, checksum(np.frombuffer(kind.encode(), dtype=np.uint8))]
        found = ranks.gather_numbers(np.array(ours, dtype=np.uint64))
        communicator = device_communicator(ranks, device if state_there else None)
        alike = bool((found[:, 2] == found[0, 2]).all())
        return cls(bool(found[:, 0].any()), bool(found[:, 1].any()), alike, communicator)


def device_communicator(ranks: Communicator, device: Device | None) -> DeviceCommunicator | None:
    """How arrays on this rank's device are exchanged; None for a rank whose arrays are in host memory.

    All ranks call it. Over NCCL where each of them has a GPU of its own, else by way of host memory.
    """
    on_gpu = isinstance(device, CudaDevice)
    if ranks.gather_numbers(np.array([on_gpu])).all():
        from penstock.engine.ranks.nccl import NcclCommunicator, unusable

        reason = unusable(ranks, device)
        if reason is None:
            return NcclCommunicator(ranks, cast(CudaDevice, device))
        if ranks.rank == 0:
            _log.warning("GPUs exchange by way of host memory: %s", reason)
    return None if device is None else StagedCommunicator(ranks, device)
