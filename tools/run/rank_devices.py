"""Which device each rank of a host computes on, and its part of the host's threads and memory.

Ranks that `--devices` started have the device that it names for them. Those that mpiexec or srun started take theirs
from `--devices`, or with `--device auto` the GPU with the number of their place on the host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.storage.base.errors import InputError
from penstock.tools.base.joined_ranks import LAUNCHED

if TYPE_CHECKING:
    from penstock.tools.base.joined_ranks import Joined

ALL, AUTO = "all", "auto"
"""Instead of names: all GPUs of this host; these, and its cores where they make it faster."""
NAME = re.compile(r"cpu|emulated|cuda(:\d+)?")
GPU_THREADS = 4
"""Most threads of a GPU's rank beside ranks of CPU cores: it reads and gathers with them, and computes with none."""


def names_of(text: str) -> tuple[str, ...]:
    """The devices that `--devices` names, or ALL or AUTO alone. Raises InputError for anything else."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name in (ALL, AUTO):
            if len(names) > 1:
                raise InputError(f"--devices {text}: {name} stands alone")
        elif NAME.fullmatch(name) is None:
            raise InputError(
                f"--devices {text}: {name!r} is no device; name one for each rank, as in cuda:0,cuda:1 or cuda:0,cpu "
                "or cpu,cpu, or say all (every GPU here) or auto"
            )
    return tuple("cuda:0" if name == "cuda" else name for name in names)


def all_gpus() -> tuple[str, ...]:
    """The names of all GPUs of this host. Raises InputError where there is none."""
    from penstock.transfer.devices import cuda

    found = tuple(f"cuda:{number}" for number in range(cuda.count()))
    if not found:
        raise InputError(
            "--devices all: CUDA sees no device here; check the driver with nvidia-smi, or take ranks of CPU cores, as "
            "in --devices cpu,cpu"
        )
    return found


@dataclass(frozen=True)
class HostRanks:
    """The ranks of this host: the device of each, in their order, and which of them this process is."""

    devices: tuple[str, ...]
    own: int

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Those of this rank, of the engine's that were given: ranks of a host divide its memory and its threads."""
        from penstock.engine.resources.config import Config

        config = Config.of(**given)
        return {
            **given,
            "device": self.devices[self.own],
            "threads": threads_of(config.thread_count, self.devices)[self.own],
            "host_memory": config.memory_bytes // len(self.devices),
        }


def threads_of(threads: int, devices: Sequence[str]) -> list[int]:
    """How many of the host's threads each of its ranks takes: equal parts, but a GPU beside cores few."""
    equal = max(1, threads // len(devices))
    gpus = sum(_is_gpu(name) for name in devices)
    if gpus in (0, len(devices)):
        return [equal] * len(devices)
    few = min(equal, GPU_THREADS)
    rest = max(1, (threads - gpus * few) // (len(devices) - gpus))
    return [few if _is_gpu(name) else rest for name in devices]


def host_ranks(joined: Joined, devices: tuple[str, ...], device: str) -> HostRanks:
    """Which devices the ranks of this host compute on. Raises InputError where there are too few GPUs.

    devices: as `--devices` names them, none without it; device: as `--device` does. All ranks call it.
    """
    from penstock.engine.ranks.rank_devices import devices_of_host

    launched = os.environ.get(LAUNCHED)
    names = names_of(launched) if launched else () if devices == (AUTO,) else devices
    return HostRanks(*devices_of_host(joined.communicator, _named(names, joined) if names else device))


def _is_gpu(name: str) -> bool:
    return name.startswith("cuda")


def _named(names: tuple[str, ...], joined: Joined) -> str:
    """The device that `--devices` names for this rank."""
    names = all_gpus() if names == (ALL,) else names
    size, local = joined.communicator.size, len(joined.mates)
    if len(names) == local:
        return names[joined.mates.index(joined.communicator.rank)]
    if len(names) == size:
        return names[joined.communicator.rank]
    raise InputError(
        f"--devices names {len(names)} devices, and there are {size} ranks, {local} of them on this host: name one for "
        "each rank of a host"
    )
