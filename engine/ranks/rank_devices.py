"""Where the ranks of a run compute: on cores, on GPUs, or some on these and some on those; and how they exchange there.

Where it is not told, ranks of a host that see GPUs take one each. GPUs that are all different, one to a rank, exchange
over NCCL. Otherwise arrays go by way of host memory.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.ranks.communicator import ArrayRanks, number_of, ranks_of_host
from penstock.storage.base.errors import InputError
from penstock.transfer.devices import cuda

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.ranks.communicator import Communicator
    from penstock.transfer.devices.device import Device, DeviceArray

_log = logging.getLogger("penstock.engine.ranks.rank_devices")


AUTO = "auto"
KINDS = ("cpu", "cuda", "emulated", AUTO)
NAMES = ("cpu", "cuda:{}", "emulated", AUTO)
"""What a rank may ask for, and how it is called; of the second kind there are several, by number."""


def devices_of_host(ranks: Communicator, asked: str) -> tuple[tuple[str, ...], int]:
    """The devices of the ranks of this host, in their order, and which of these ranks this process is.

    asked: `cpu`, `cuda:N`, `emulated`, or `auto` where this rank takes what is there. All ranks call it: those of a
    host tell each other which of its GPUs they see, which a batch system may decide. Raises InputError where these are
    fewer than the ranks that want one.
    """
    kind, _, number = asked.partition(":")
    seen = cuda.addresses() if kind == AUTO else ()
    asks = KINDS.index(kind) if kind in KINDS else 0
    wanted = int(number) if number.isdecimal() else 0
    told = np.array([asks, wanted, number_of(seen), len(seen)], dtype=np.uint64)
    every, mates = ranks.gather_numbers(told), ranks_of_host(ranks)
    return chosen(every[list(mates)].tolist()), mates.index(ranks.rank)


def chosen(told: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """The devices of the ranks of a host, by what each tells the others.

    That is: the number of the kind of device that it asks for, which one, a number for the GPUs that it sees, and how
    many these are. Of ranks that see the same GPUs and leave the choice, the first takes the first, and so on; where
    a rank sees none, it takes the cores. Raises InputError where there are fewer GPUs than ranks that see them.
    """
    taken: Counter[int] = Counter()
    found = []
    for kind, number, view, count in told:
        name = NAMES[kind]
        if name == AUTO:
            name, number = (NAMES[1], taken[view]) if count else (NAMES[0], 0)
            taken[view] += 1
        found.append(name.format(number))
    for *_, view, count in told:
        ranks = taken[view]
        if ranks > count > 0:
            names = ",".join([*(f"cuda:{at}" for at in range(count)), *["cpu"] * (ranks - count)])
            raise InputError(
                f"{ranks} ranks of this host see {count} GPU{'s' * (count > 1)}: start one for each (mpiexec -n "
                f"{count}, srun --ntasks-per-node {count}), or name all their devices, as in --devices {names}"
            )
    return tuple(found)


@dataclass(frozen=True)
class RankDevices:
    """What all ranks know of each other's devices.

    linked: whether any rank's edges may come over a link. on_devices: whether any rank's vertex state is on a device.
    alike: whether all compute on the same kind of processor, so that the same kernel gives the same floats everywhere.
    arrays: what exchanges arrays of the vertex state with other ranks, wherever they are; None without ranks.
    """

    linked: bool = False
    on_devices: bool = False
    alike: bool = True
    arrays: ArrayRanks | None = None

    @classmethod
    def of(cls, ranks: Communicator, device: Device, *, state_there: bool) -> RankDevices:
        """Ask all ranks; state_there: whether vertex state is on the device, behind a link."""
        facts = device.facts()
        kind = [facts["kind"], facts.get("name")] if state_there else "cores"
        ours = [not device.reads_host, state_there, number_of(kind)]
        found = ranks.gather_numbers(np.array(ours, dtype=np.uint64))
        arrays = array_ranks(ranks, device, state_there=state_there)
        alike = bool((found[:, 2] == found[0, 2]).all())
        return cls(bool(found[:, 0].any()), bool(found[:, 1].any()), alike, arrays)


def array_ranks(ranks: Communicator, device: Device, *, state_there: bool) -> ArrayRanks:
    """What exchanges this rank's arrays, which are on a device or, where not `state_there`, in host memory.

    All ranks call it. Over NCCL where each of them has a GPU of its own, else by way of host memory.
    """
    if ranks.gather_numbers(np.array([state_there and device.address is not None])).all():
        from penstock.engine.ranks.nccl import NcclCommunicator, unusable

        reason = unusable(ranks, device)
        if reason is None:
            return NcclCommunicator(ranks, device)
        if ranks.rank == 0:
            _log.warning("GPUs exchange by way of host memory: %s", reason)
    return StagedCommunicator(ranks, device) if state_there else ranks


class StagedCommunicator(ArrayRanks):
    """For arrays on a device, by the verbs of the host, so that ranks on cores may join."""

    def __init__(self, ranks: Communicator, device: Device) -> None:
        self._ranks, self._device = ranks, device
        self.rank, self.size = ranks.rank, ranks.size

    def gather_slices(self, whole: DeviceArray, bounds: NDArray[np.int64]) -> None:
        """Fill `whole` with every rank's slice of it; rank r has items bounds[r] to bounds[r + 1] - 1."""
        first, last = int(bounds[self.rank]), int(bounds[self.rank + 1])
        host = np.empty(whole.shape, dtype=whole.dtype)
        if first < last:
            host[first:last] = self._out(whole[first:last])
        self._ranks.gather_slices(host, bounds)
        for others in (slice(int(bounds[0]), first), slice(last, int(bounds[-1]))):
            if others.start < others.stop:
                self._in(whole[others], host[others])

    def exchange_slices(self, whole: DeviceArray, bounds: NDArray[np.int64], found: DeviceArray) -> None:
        """Fill `found`, shape (size, items of this rank's slice, ...), with what every rank has in that slice."""
        host = np.empty(found.shape, dtype=found.dtype)
        self._ranks.exchange_slices(self._out(whole), bounds, host)
        self._in(found, host)

    def _out(self, array: DeviceArray) -> NDArray[Any]:
        """A copy in host memory, after all kernels launched so far."""
        self._device.finish()
        return np.ascontiguousarray(self._device.to_host(array))

    def _in(self, array: DeviceArray, values: NDArray[Any]) -> None:
        """Copy values of host memory to the device, before kernels launched from now on."""
        if array.size:
            self._device.copy_in(array, np.ascontiguousarray(values).reshape(array.shape), None)
            self._device.finish()
